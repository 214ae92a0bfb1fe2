// callbacks.hpp: what a handler actor waits for, each with the function that goes on.
#pragma once

#include "runtime/ask.hpp"
#include "runtime/detail/compute_call.hpp"
#include "runtime/ref.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace duet::runtime {

/// Names a timer of one actor.
enum class TimerId : std::uint64_t {};

/// What offload() gives a handler actor: a value, or an error (overloaded), or what was thrown.
template <typename R>
struct Offloaded {
  boost::system::result<R> result;
  std::exception_ptr exception;
};

namespace detail {

/// Owns itself from begin to end; the end moves what it needs out first.
template <typename Derived>
class Callback : public Pending {
 public:
  using Pending::Pending;
  void cancel() noexcept override {}   // a handler actor's waits end with it
  void abandon() noexcept final { destroy(static_cast<Derived*>(this)); }

 protected:
  ~Callback() override = default;
};

template <typename X, typename T>
class CallbackTimer final : public Callback<CallbackTimer<X, T>> {
 public:
  CallbackTimer(X& actor, T message) noexcept
      : Callback<CallbackTimer>(actor), message_(std::move(message)) {}
  ~CallbackTimer() override = default;

  TimerId begin(TimePoint due) {
    this->link(false);
    this->arm(due);
    return static_cast<TimerId>(this->id());
  }
  void expired() override {
    X& actor = static_cast<X&>(this->actor());
    T message(std::move(message_));
    destroy(this);
    actor.slot().side().set_message(type_name<T>());
    actor.on(std::move(message));
  }

 private:
  T message_;
};

template <typename X, typename T>
TimerId begin_timer(X& actor, TimePoint due, T message) {
  return create<CallbackTimer<X, T>>(actor, std::move(message))->begin(due);
}

template <typename R, typename F>
class CallbackAsk final : public Callback<CallbackAsk<R, F>> {
 public:
  CallbackAsk(ActorBase& actor, const Address& to, F callback) noexcept
      : Callback<CallbackAsk>(actor), to_(to), callback_(std::move(callback)) {}
  ~CallbackAsk() override = default;

  Reply<R> begin(TimePoint due) {
    this->link(true);
    this->arm(due);
    return Reply<R>(*create<ReplyNode<R>>(this->actor().address(), this->id()));
  }
  void answered(Node& node) override {
    auto& reply = static_cast<ReplyNode<R>&>(node);
    if (reply.value.has_value()) {
      result_.emplace(std::move(*reply.value));
    } else {
      result_.emplace(AskFailure(reply.error));
    }
  }
  void resolved() override { go_on(std::move(*result_)); }
  void expired() override { go_on(AskFailure::timed_out(to_)); }

 private:
  void go_on(AskResult<R> result) {
    F callback(std::move(callback_));
    destroy(this);
    callback(std::move(result));
  }

  const Address to_;
  F callback_;
  std::optional<AskResult<R>> result_;
};

template <typename N, typename T, typename F>
void begin_ask(ActorBase& actor, const Ref<N>& to, T request, Duration timeout, F callback) {
  const TimePoint due = actor.core().clock().now() + timeout;
  auto* const wait = create<CallbackAsk<ReplyOf<T>, F>>(actor, to.address(), std::move(callback));
  request.reply = wait->begin(due);
  static_cast<void>(to.send(std::move(request), due));   // a refusal comes through the reply
}

template <typename R, typename C>
class CallbackOffload final : public Callback<CallbackOffload<R, C>> {
 public:
  CallbackOffload(ActorBase& actor, C callback) noexcept
      : Callback<CallbackOffload>(actor), callback_(std::move(callback)) {}
  ~CallbackOffload() override = default;

  template <typename F>
  void begin(F function) {
    this->link(true);
    auto* const call =
        create<ComputeCall<F, R>>(std::move(function), this->actor().address(), this->id());
    if (this->actor().core().compute(*call)) return;
    ComputeCall<F, R>::drop(*call, errc::overloaded);
    // Told like every other end, in a later turn of the strand.
    this->arm(this->actor().core().clock().now());
  }
  void answered(Node& node) override {
    auto& call = static_cast<ComputeHeader<R>&>(node);
    value_ = std::move(call.value);
    exception_ = std::move(call.exception);
  }
  void resolved() override { go_on(errc::cancelled); }
  void expired() override { go_on(errc::overloaded); }

 private:
  void go_on(errc without_value) {
    C callback(std::move(callback_));
    Offloaded<R> offloaded{make_error_code(without_value), std::move(exception_)};
    if (value_.has_value()) {
      if constexpr (std::is_void_v<R>) {
        offloaded.result = boost::system::result<void>();
      } else {
        offloaded.result = std::move(*value_);
      }
    }
    destroy(this);
    callback(std::move(offloaded));
  }

  C callback_;
  std::optional<Computed<R>> value_;
  std::exception_ptr exception_;
};

template <typename F, typename C>
void begin_offload(ActorBase& actor, F function, C callback) {
  using R = std::invoke_result_t<F&>;
  create<CallbackOffload<R, C>>(actor, std::move(callback))->begin(std::move(function));
}

}   // namespace detail
}   // namespace duet::runtime
