// spawn.hpp: makes actors of both kinds.
#pragma once

#include "runtime/behaviour.hpp"
#include "runtime/detail/behaviour_actor.hpp"
#include "runtime/detail/core.hpp"
#include "runtime/detail/message_node.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/ref.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include <optional>
#include <type_traits>
#include <utility>

namespace duet::runtime {

template <Language M>
class Self;

namespace detail {

template <typename M>
class BehaviourOf final : public BehaviourActor {
 public:
  BehaviourOf() = default;
  void set_body(Behaviour body) { body_.emplace(std::move(body)); }

  void stop_requested() override {
    if constexpr (HasMessage<M, Stop>) {
      auto* const node = create<MessageNode<Stop>>(Stop{}, message_ops<M, Stop>,
                                                   Stamp{address().generation(), {}, 0});
      slot().inject(*node);
    } else {
      unwind();
    }
  }

  void destroy() noexcept override {
    abandon_waits();
    detail::destroy(this);
  }

  ~BehaviourOf() override = default;

 private:
  void start() override {
#if DUET_AWAITABLE_PUBLIC
    const auto ended = [this](const std::exception_ptr& exception) { body_ended(exception); };
    boost::asio::co_spawn(actor_executor(address()), take_body(),
                          boost::asio::bind_cancellation_slot(unwind_signal().slot(), ended));
#else
    set_root(run(*this, take_body())).launch();
#endif
  }

  Behaviour take_body() {
    Behaviour body(std::move(*body_));
    body_.reset();
    return body;
  }

#if !DUET_AWAITABLE_PUBLIC
  static boost::asio::awaitable<AsioEntry, actor_executor> run(BehaviourOf& self, Behaviour body) {
    std::exception_ptr exception;
    try {
      co_await std::move(body);
    } catch (...) {
      exception = std::current_exception();
    }
    self.body_ended(exception);
  }
#endif

  std::optional<Behaviour> body_;   // until it starts
};

template <typename F>
struct BehaviourFunction;
template <typename M, typename... Params>
struct BehaviourFunction<Behaviour (*)(Self<M>, Params...)> {
  using language = M;
};

template <typename F, typename... Args>
auto spawn_behaviour(Core& core, const ActorOptions& options, F function, Args&&... args) {
  using M = typename BehaviourFunction<F>::language;
  auto* const actor = create<BehaviourOf<M>>();
  try {
    actor->set_body(function(Self<M>(*actor), std::forward<Args>(args)...));
  } catch (...) {
    detail::destroy(actor);
    throw;
  }
  return Ref<M>(core.spawn(options, *actor));
}

/// X is a handler actor, or void: then the first argument is a behaviour's function.
template <typename X = void, typename... Args>
auto spawn(Core& core, const ActorOptions& options, Args&&... args) {
  if constexpr (std::is_void_v<X>) {
    return spawn_behaviour(core, options, std::forward<Args>(args)...);
  } else {
    return X::spawn(core, options, std::forward<Args>(args)...);
  }
}

}   // namespace detail
}   // namespace duet::runtime
