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

/// For the next message. One at a time, so it lies in the actor.
template <typename M>
class Receive {
 public:
  using result_type = M;
  [[gnu::always_inline]] Receive(BehaviourActor& actor, const std::source_location& where) noexcept
      : actor_(actor), where_(where) {}
  Receive(const Receive&) = delete;
  Receive& operator=(const Receive&) = delete;

  [[nodiscard]] BehaviourActor& actor() const noexcept { return actor_; }
  [[nodiscard]] Continuation& continuation() const noexcept {
    return actor_.receive_continuation();
  }

  [[nodiscard, gnu::always_inline]] bool ready() const { return actor_.receive_at_once(); }
  void begin() const noexcept { actor_.begin_receive(where_); }
  void cancel() const noexcept { actor_.cancel_receive(); }
  [[nodiscard, gnu::always_inline]] M take() const {
    MessageHeader* const message = actor_.received();
    if (message == nullptr) [[unlikely]]
      throw_cancelled();
    return take_message<M>(*message);
  }

 private:
  BehaviourActor& actor_;
  const std::source_location where_;
};

/// The end of a wait for a message.
class Expiry final : public Wait {
 public:
  explicit Expiry(BehaviourActor& actor) noexcept : Wait(actor) {}
  void begin(TimePoint due) {
    link(false);
    arm(due);
  }
  /// The wait is over: another may begin before we are destroyed. True: it was by our time.
  [[nodiscard]] bool end() noexcept {
    if (linked()) unlink();
    return expired_;
  }

  void expired() override {
    expired_ = true;
    resume();
  }
  void resume() override { static_cast<BehaviourActor&>(actor()).resume_receive(); }
  void cancel() noexcept override {}                         // the wait itself is
  void abandon() noexcept override { DUET_UNREACHABLE(); }   // the wait itself was, and we with it

 private:
  bool expired_ = false;
};

template <typename M>
class ReceiveUntil final : public Receive<M> {
 public:
  using result_type = boost::system::result<M>;
  ReceiveUntil(BehaviourActor& actor, TimePoint due, const std::source_location& where) noexcept
      : Receive<M>(actor, where), due_(due), expiry_(actor) {}
  void begin() noexcept {
    Receive<M>::begin();
    expiry_.begin(due_);
  }
  [[nodiscard]] result_type take() {
    if (!expiry_.end()) return Receive<M>::take();
    return make_error_code(errc::timed_out);
  }

 private:
  const TimePoint due_;
  Expiry expiry_;
};

class Sleep final : public SuspendedWait {
 public:
  using result_type = void;
  Sleep(BehaviourActor& actor, TimePoint due, const std::source_location& where) noexcept
      : SuspendedWait(actor), due_(due), where_(where) {}
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
class Ask final : public SuspendedWait {
 public:
  using value_type = ReplyOf<T>;
  using result_type = AskResult<value_type>;
  Ask(BehaviourActor& actor, const Ref<M>& to, T message, Duration timeout,
      const std::source_location& where) noexcept
      : SuspendedWait(actor),
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
class Offload final : public SuspendedWait {
 public:
  using result_type = boost::system::result<R>;
  Offload(BehaviourActor& actor, F function, const std::source_location& where)
      : SuspendedWait(actor), function_(std::move(function)), where_(where) {}

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
