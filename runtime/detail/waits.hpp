// waits.hpp: what a behaviour can await: a message, a time, a reply, a computation.
#pragma once

#include "runtime/ask.hpp"
#include "runtime/detail/compute_call.hpp"
#include "runtime/detail/message_node.hpp"
#include "runtime/detail/suspension.hpp"
#include "runtime/ref.hpp"

#include <boost/system/result.hpp>

#include <optional>
#include <source_location>
#include <utility>

namespace duet::runtime::detail {

template <typename M>
class ReceiveBase : public Suspendable<MessageWait> {
 public:
  ReceiveBase(BehaviourActor& actor, const std::source_location& where) noexcept
      : Suspendable<MessageWait>(actor), where_(where) {}

  [[nodiscard]] bool ready() {
    throw_if_unwinding();
    DUET_ASSERT(behaviour().receiving() == nullptr, "one receive at a time");
    message_ = behaviour().try_message();
    return message_ != nullptr;
  }
  void begin() noexcept {
    SideRecord& side = actor().slot().side();
    side.set_message(nullptr);
    side.set_wait("message", where_);
    behaviour().set_receiving(this);
  }
  void deliver(MessageHeader& message) override {
    message_ = &message;
    ReceiveBase::resume();   // no virtual call: nothing overrides it further
  }
  void resume() final {
    behaviour().set_receiving(nullptr);
    Suspendable<MessageWait>::resume();
  }
  void abandon() noexcept override {
    behaviour().set_receiving(nullptr);
    Suspendable<MessageWait>::abandon();
  }

 protected:
  [[gnu::always_inline]] ~ReceiveBase() override {
    if (message_ != nullptr && message_->ops->discard != nullptr) {
      message_->ops->discard(*message_, errc::receiver_gone);
    }
    if (behaviour().receiving() == this) behaviour().set_receiving(nullptr);
  }
  [[nodiscard]] BehaviourActor& behaviour() const noexcept {
    return static_cast<BehaviourActor&>(actor());
  }
  [[nodiscard]] bool has_message() const noexcept { return message_ != nullptr; }
  [[nodiscard, gnu::always_inline]] M take_message() noexcept {
    MessageHeader& header = *std::exchange(message_, nullptr);
    behaviour().received(header);
    return detail::take_message<M>(header);
  }

 private:
  const std::source_location where_;
  MessageHeader* message_ = nullptr;
};

template <typename M>
class Receive final : public ReceiveBase<M> {
 public:
  using result_type = M;
  using ReceiveBase<M>::ReceiveBase;
  [[gnu::always_inline]] ~Receive() override {}
  void expired() override { DUET_UNREACHABLE(); }
  [[nodiscard]] M take() {
    if (!this->has_message()) throw_cancelled();
    return this->take_message();
  }
};

template <typename M>
class ReceiveUntil final : public ReceiveBase<M> {
 public:
  using result_type = boost::system::result<M>;
  ReceiveUntil(BehaviourActor& actor, TimePoint due, const std::source_location& where) noexcept
      : ReceiveBase<M>(actor, where), due_(due) {}
  void begin() noexcept {
    ReceiveBase<M>::begin();
    this->link(false);
    this->arm(due_);
  }
  void expired() override {
    expired_ = true;
    this->resume();
  }
  [[nodiscard]] result_type take() {
    if (this->has_message()) return this->take_message();
    if (!expired_) throw_cancelled();
    return make_error_code(errc::timed_out);
  }

 private:
  const TimePoint due_;
  bool expired_ = false;
};

class Sleep final : public Suspendable<Wait> {
 public:
  using result_type = void;
  Sleep(BehaviourActor& actor, TimePoint due, const std::source_location& where) noexcept
      : Suspendable<Wait>(actor), due_(due), where_(where) {}
  [[nodiscard]] bool ready() const {
    throw_if_unwinding();
    return false;
  }
  void begin() noexcept {
    wait_for("timer", where_, false);
    arm(due_);
  }
  void expired() override {
    expired_ = true;
    resume();
  }
  void take() const {
    if (!expired_) throw_cancelled();
  }

 private:
  const TimePoint due_;
  const std::source_location where_;
  bool expired_ = false;
};

template <typename M, typename T>
class Ask final : public Suspendable<Wait> {
 public:
  using value_type = ReplyOf<T>;
  using result_type = AskResult<value_type>;
  Ask(BehaviourActor& actor, const Ref<M>& to, T message, Duration timeout,
      const std::source_location& where) noexcept
      : Suspendable<Wait>(actor),
        to_(to),
        message_(std::move(message)),
        timeout_(timeout),
        where_(where) {}

  [[nodiscard]] bool ready() const {
    throw_if_unwinding();
    return false;
  }
  void begin() noexcept {
    wait_for("reply", where_, true);
    actor().slot().side().set_waits_on(to_.address().slot(), to_.address().generation());
    const TimePoint due = actor().core().clock().now() + timeout_;
    arm(due);
    auto* const node = create<ReplyNode<value_type>>(actor().address(), id());
    message_.reply = Reply<value_type>(*node);
    // A refusal comes back through the reply, like every other end.
    static_cast<void>(to_.send(std::move(message_), due));
  }
  void answered(Node& node) override {
    auto& reply = static_cast<ReplyNode<value_type>&>(node);
    if (reply.value.has_value()) {
      result_.emplace(std::move(*reply.value));
    } else {
      result_.emplace(AskFailure(reply.error));
    }
  }
  void resolved() override { resume(); }
  void expired() override {
    result_.emplace(AskFailure::timed_out(to_.address()));
    resume();
  }
  [[nodiscard]] result_type take() {
    if (!result_.has_value()) return AskFailure(errc::cancelled);
    return std::move(*result_);
  }

 private:
  const Ref<M> to_;
  T message_;
  const Duration timeout_;
  const std::source_location where_;
  std::optional<result_type> result_;
};

template <typename F, typename R>
class Offload final : public Suspendable<Wait> {
 public:
  using result_type = boost::system::result<R>;
  Offload(BehaviourActor& actor, F function, const std::source_location& where)
      : Suspendable<Wait>(actor), function_(std::move(function)), where_(where) {}

  [[nodiscard]] bool ready() const {
    throw_if_unwinding();
    return false;
  }
  void begin() noexcept {
    wait_for("computation", where_, true);
    auto* const call = create<ComputeCall<F, R>>(std::move(function_), actor().address(), id());
    if (actor().core().compute(*call)) return;
    ComputeCall<F, R>::drop(*call, errc::overloaded);
    overloaded_ = true;
    complete_later();
  }
  void answered(Node& node) override {
    auto& call = static_cast<ComputeHeader<R>&>(node);
    value_ = std::move(call.value);
    exception_ = std::move(call.exception);
  }
  void resolved() override { resume(); }
  void expired() override { DUET_UNREACHABLE(); }
  [[nodiscard]] result_type take() {
    if (exception_ != nullptr) std::rethrow_exception(exception_);
    if (!value_.has_value()) {
      return make_error_code(overloaded_ ? errc::overloaded : errc::cancelled);
    }
    if constexpr (std::is_void_v<R>) {
      return {};
    } else {
      return std::move(*value_);
    }
  }

 private:
  F function_;
  const std::source_location where_;
  std::optional<Computed<R>> value_;
  std::exception_ptr exception_;
  bool overloaded_ = false;
};

}   // namespace duet::runtime::detail
