// suspension.hpp: how a coroutine lets a wait resume it; one way natively, one through Asio's
// public interface.
#pragma once

#include "runtime/behaviour.hpp"
#include "runtime/detail/behaviour_actor.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#if DUET_AWAITABLE_PUBLIC
#include <boost/asio/any_completion_handler.hpp>
#endif

#include <optional>
#include <utility>

namespace duet::runtime::detail {

#if DUET_AWAITABLE_PUBLIC
using Continuation = boost::asio::any_completion_handler<void()>;
#else
using Continuation = SuspendedStack;
#endif

/// A wait that can hold a suspended coroutine. Derived classes say ready(), begin() and take().
template <typename Base>
class Suspendable : public Base {
 public:
  using Base::Base;

  void suspend(Continuation continuation) { continuation_.emplace(std::move(continuation)); }

  void resume() override {
    this->settle();
    Continuation continuation = take_continuation();
#if DUET_AWAITABLE_PUBLIC
    std::move(continuation)();
#else
    continuation.resume();
#endif
  }

  void abandon() noexcept override {
    this->settle();
    const Continuation continuation = take_continuation();   // destroyed here, and we with it
  }

 private:
  Continuation take_continuation() noexcept {
    Continuation continuation(std::move(*continuation_));
    continuation_.reset();
    return continuation;
  }

  std::optional<Continuation> continuation_;
};

#if DUET_AWAITABLE_PUBLIC

template <typename Op>
struct BeginOperation {
  template <typename Handler>
  void operator()(Handler&& handler, Op* op) const {
    const auto slot = boost::asio::get_associated_cancellation_slot(handler);
    op->suspend(Continuation(std::forward<Handler>(handler)));
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

  void attach(AsioFrame& frame) noexcept { frame_ = &frame; }
  [[nodiscard]] bool await_ready() { return op_.ready(); }
  void await_suspend() noexcept {
    SuspendedStack stack(frame_->detach_thread());
    // The root is cancelled through its actor, which knows its waits; a branch of a race through
    // Asio's slot.
    if (stack.identity() != static_cast<BehaviourActor&>(op_.actor()).root()) {
      boost::asio::cancellation_slot slot = stack.get_cancellation_slot();
      if (slot.is_connected()) {
        slot.assign([op = &op_](boost::asio::cancellation_type) { op->cancel(); });
        uses_slot_ = true;
      }
    }
    op_.suspend(std::move(stack));
    op_.begin();
  }
  typename Op::result_type await_resume() {
    if (uses_slot_) frame_->clear_cancellation_slot();
    return op_.take();
  }

 private:
  Op op_;
  AsioFrame* frame_ = nullptr;
  bool uses_slot_ = false;
};

template <typename Op, typename... Args>
Awaiting<Op> await_operation(Args&&... args) {
  return Awaiting<Op>(std::in_place, std::forward<Args>(args)...);
}

#endif

}   // namespace duet::runtime::detail
