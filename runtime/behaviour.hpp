// behaviour.hpp: the coroutine type of behaviours, over Asio's awaitable.
#pragma once

#include "runtime/actor_executor.hpp"
#include "runtime/detail/configuration.hpp"
#include "runtime/detail/on_actor.hpp"

#include <boost/asio/awaitable.hpp>

namespace duet::runtime {

/// A coroutine of an actor that gives a value. Await it in the behaviour, or in a race (`||`).
template <typename T = void>
using Async = boost::asio::awaitable<T, actor_executor>;

/// The coroutine that is an actor: a free function, its parameters by value, the first of them a
/// Self. Any Async and any Asio operation may be awaited in it; it resumes on the actor's strand.
using Behaviour = Async<void>;

/// The completion token for Asio operations in behaviours:
///   std::size_t size = co_await socket.async_read_some(buffer, use_async);
/// Wherever the operation completes, on a strand, another context or a library's own thread, the
/// behaviour resumes on its actor; until then the host's run() does not return.
inline constexpr UseAsync use_async{};

}   // namespace duet::runtime

#if !DUET_AWAITABLE_PUBLIC
#include "runtime/detail/native_promise.hpp"
#endif
