// async_ask.hpp: asks an actor from outside, as an Asio operation of the host.
#pragma once

#include "runtime/ask.hpp"
#include "runtime/detail/outside_ask.hpp"
#include "runtime/ref.hpp"
#include "runtime/system.hpp"

#include <boost/asio/async_result.hpp>

#include <utility>

namespace duet::runtime {

/// Sends `request` with a Reply in it to `to` and waits for the answer, at most for `timeout`. For
/// handlers and coroutines that are no actors:
///   Permit permit(client);
///   auto answer = co_await async_ask(system, limiter, std::move(permit), 50ms, use_awaitable);
///
/// Completes exactly once with an AskResult: a value, or timed_out, receiver_gone, overloaded,
/// cancelled. Runs the handler through its associated executor, or the system's (Asio's
/// system_executor if the system has ended), never before this returns; until then the host's run()
/// does not return. While it waits, an actor of the system named "ask" stands for it; stopping the
/// system cancels it, destroying the system says receiver_gone. If the host's context is destroyed
/// first, the handler is destroyed unrun, as Asio's own operations do it.
///
/// Any thread. Cancellation (any type) through the handler's slot: completes with cancelled; the
/// answer is then late.
template <Language N, Request T,
          boost::asio::completion_token_for<void(AskResult<ReplyOf<T>>)> Token>
requires HasMessage<N, T>
auto async_ask(const System& system, const Ref<N>& to, T request, Duration timeout, Token&& token) {
  return boost::asio::async_initiate<Token, void(AskResult<ReplyOf<T>>)>(
      detail::BeginOutsideAsk(system.core()), token, to, std::move(request), timeout);
}

}   // namespace duet::runtime
