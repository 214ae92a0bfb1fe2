// suspension.hpp: how a coroutine lets a wait resume it; one way natively, one through Asio's
// public interface.
#pragma once

#include "runtime/behaviour.hpp"
#include "runtime/detail/behaviour_actor.hpp"
#include "runtime/detail/continuation.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <utility>

namespace duet::runtime::detail {

/// A wait for a timer or an answer, that holds a suspended coroutine. Derived classes say ready(),
/// begin() and take(), as Receive does.
class SuspendedWait : public Wait {
 public:
  using Wait::Wait;

  [[nodiscard]] BehaviourActor& actor() const noexcept {
    return static_cast<BehaviourActor&>(Wait::actor());
  }
  [[nodiscard]] Continuation& continuation() noexcept { return continuation_; }

  void resume() override {
    settle();
    continuation_.resume();
  }
  void abandon() noexcept override {
    settle();
    continuation_.abandon();
  }

 protected:
  ~SuspendedWait() override = default;

 private:
  Continuation continuation_;
};

#if DUET_AWAITABLE_PUBLIC

template <typename Op>
struct BeginOperation {
  template <typename Handler>
  void operator()(Handler&& handler, Op* op) const {
    const auto slot = boost::asio::get_associated_cancellation_slot(handler);
    op->continuation().suspend(std::forward<Handler>(handler));
    if (auto connected = slot; connected.is_connected()) {
      connected.assign([op](boost::asio::cancellation_type) { op->cancel(); });
    }
    op->begin();
  }
};

/// The actor outlives the coroutine; the rest travels by value.
template <typename Op, typename... Args>
Async<typename Op::result_type> run_operation(BehaviourActor* actor, Args... args) {
  Op op(*actor, std::move(args)...);
  if (!op.ready()) {
    const BeginOperation<Op> begin;
    const boost::asio::use_awaitable_t<actor_executor> token;
    co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<actor_executor>,
                                         void()>(begin, token, &op);
  }
  co_return op.take();
}

template <typename Op>
using Awaiting = Async<typename Op::result_type>;

template <typename Op, typename... Args>
Awaiting<Op> await_operation(BehaviourActor& actor, Args&&... args) {
  return run_operation<Op, std::decay_t<Args>...>(&actor, std::forward<Args>(args)...);
}

#else

/// What a member of Self returns: to be awaited at once.
template <typename Op>
class [[nodiscard]] Awaiting {
 public:
  using native_awaiter = void;

  template <typename... Args>
  explicit Awaiting(std::in_place_t, Args&&... args) : op_(std::forward<Args>(args)...) {}
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;

  [[nodiscard, gnu::always_inline]] bool await_ready() { return op_.ready(); }
  void await_suspend(AsioFrame& top, AsioThread& thread) noexcept {
    // The actor's own stack is cancelled through the actor, which knows its waits; a branch of a
    // race through Asio's slot.
    if (!op_.continuation().suspend(op_.actor().root(), top, thread)) [[unlikely]]
      use_slot();
    op_.begin();
  }
  [[gnu::always_inline]] typename Op::result_type await_resume() { return op_.take(); }

 private:
  void use_slot() noexcept {
    boost::asio::cancellation_slot slot = op_.continuation().slot();
    if (slot.is_connected()) {
      slot.assign([op = &op_](boost::asio::cancellation_type) { op->cancel(); });
    }
  }

  Op op_;
};

template <typename Op, typename... Args>
Awaiting<Op> await_operation(Args&&... args) {
  return Awaiting<Op>(std::in_place, std::forward<Args>(args)...);
}

#endif

}   // namespace duet::runtime::detail
