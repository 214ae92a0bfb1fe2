// behaviour_actor.hpp: an actor whose code is a coroutine.
#pragma once

#include "runtime/actor_base.hpp"
#include "runtime/assert.hpp"
#include "runtime/detail/configuration.hpp"
#include "runtime/detail/continuation.hpp"
#include "runtime/detail/description.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/slot.hpp"

#include <boost/asio/cancellation_signal.hpp>
#if !DUET_AWAITABLE_PUBLIC
#include "runtime/detail/stack.hpp"

#include <boost/asio/cancellation_state.hpp>
#endif

#include <cstdint>
#include <exception>
#include <optional>
#include <source_location>
#include <utility>

namespace duet::runtime::detail {

[[noreturn]] void throw_cancelled();

/// A wait of a coroutine; it lies in the frame that awaits it.
class Wait : public Pending {
 public:
  explicit Wait(ActorBase& actor) noexcept : Pending(actor) {}

  /// Marks it complete; it resumes once the running code has come back to the activation.
  void complete_later() noexcept;
  [[nodiscard]] bool complete() const noexcept { return complete_; }

  /// Unlinks it and resumes its coroutine. Called by the activation only.
  virtual void resume() = 0;

  void cancel() noexcept override { complete_later(); }

 protected:
  ~Wait() override {
    if (complete_) uncount();
  }

  /// Links it; shows what it waits for.
  void wait_for(const char* what, const std::source_location& where, bool holds_work) noexcept;
  /// The wait is over; it may be destroyed.
  void settle() noexcept {
    if (complete_) uncount();
    actor().slot().side().clear_wait();
    if (linked()) unlink();
  }
  /// Throws errc::cancelled once the behaviour is to unwind.
  void throw_if_unwinding() const;

 private:
  void uncount() noexcept;

  bool complete_ = false;
};

class BehaviourActor : public ActorBase {
 public:
  Outcome activate() noexcept override;

  /// Unwinds it like a stop, so that the operations it awaits are cancelled; only the reason
  /// differs.
  void kill(std::exception_ptr why) override;

  [[nodiscard]] std::optional<Properties> properties() const final {
    if (describer_ == nullptr) return std::nullopt;
    return describer_->say();
  }
  /// Returns the one before; null: there was none.
  const Describer* set_describer(const Describer* describer) noexcept {
    return std::exchange(describer_, describer);
  }

  // The wait for the next message. One at a time; in the root or in a branch.

  /// Takes a message if there is one that the activation may still handle: true, then received().
  [[nodiscard, gnu::always_inline]] bool receive_at_once() {
    if ((flags_ & (unwinding_flag | receiving_flag)) != 0) [[unlikely]]
      cannot_receive();
    if (left_ == 0) [[unlikely]]
      return false;
    slot().take_urgent();
    message_ = slot().next_message();
    if (message_ == nullptr) {
      flags_ = dry_flag;   // the others are not set
      return false;
    }
    --left_;
    return true;
  }
  /// Of the coroutine that waits.
  [[nodiscard]] Continuation& receive_continuation() noexcept { return continuation_; }
  void begin_receive(const std::source_location& where) noexcept {
    SideRecord& side = slot().side();
    side.set_message(nullptr);
    side.set_wait("message", where);
    flags_ |= receiving_flag;
  }
  /// Goes on without a message, once the running code has come back to the activation.
  void cancel_receive() noexcept {
    if ((flags_ & (receiving_flag | receive_complete_flag)) != receiving_flag) return;
    flags_ |= receive_complete_flag;
    ++complete_;
  }
  void resume_receive() {
    stop_receiving();
    slot().side().end_wait();
    continuation_.resume();
  }
  /// The message, begun: whoever asks destroys what it carries, before it awaits. Null: there is
  /// none.
  [[nodiscard, gnu::always_inline]] MessageHeader* received() noexcept {
    MessageHeader* const message = std::exchange(message_, nullptr);
    if (message != nullptr) [[likely]] {
      envelope_ = envelope_of(*message);
      slot().handling(*message);
    }
    return message;
  }

  /// Once true, our awaits throw: the behaviour is to unwind.
  [[nodiscard]] bool unwinding() const noexcept { return (flags_ & unwinding_flag) != 0; }

#if !DUET_AWAITABLE_PUBLIC
  /// Of the coroutine that started with the actor, as opposed to the branches of a race.
  [[nodiscard]] RootStack& root() noexcept {
    return *root_;
  }
#endif

  /// Of the message received last.
  [[nodiscard]] const Envelope& envelope() const noexcept {
    return envelope_;
  }

 protected:
  ~BehaviourActor() override = default;

  /// Makes the coroutine run for the first time.
  virtual void start() = 0;

  void body_ended(const std::exception_ptr& exception) noexcept;
  /// Lets go of all suspended coroutines; their frames are destroyed.
  void abandon_waits() noexcept;
  /// Ends the behaviour where it waits: our waits throw, Asio's operations are cancelled.
  void unwind();

  [[nodiscard]] boost::asio::cancellation_signal& unwind_signal() noexcept {
    return signal_;
  }
#if !DUET_AWAITABLE_PUBLIC
  [[nodiscard]] RootStack& set_root(boost::asio::awaitable<AsioEntry, actor_executor> bottom) {
    return root_.emplace(std::move(bottom), actor_executor(address()), signal_.slot(),
                         boost::asio::cancellation_state(signal_.slot()));
  }
#endif

 private:
  friend class Wait;
  // Bits of flags_, so that one comparison tells what is usual.
  static constexpr std::uint32_t receiving_flag = 1;
  static constexpr std::uint32_t receive_complete_flag = 2;   // resume it without a message
  static constexpr std::uint32_t unwinding_flag = 4;
  // The behaviour has looked for a message since it was resumed, and there was none.
  static constexpr std::uint32_t dry_flag = 8;

  [[nodiscard, gnu::always_inline]] inline bool work_once();
  void resume_complete();
  [[noreturn, gnu::cold]] void cannot_receive() const;
  [[nodiscard]] bool receiving() const noexcept {
    return (flags_ & receiving_flag) != 0;
  }
  /// It waits for the next message, there was none when it looked, and there is nothing else to do.
  [[nodiscard]] bool resting() const noexcept {
    return (flags_ & (receiving_flag | dry_flag)) == (receiving_flag | dry_flag) &&
           complete_ == 0 && !slot().has_task();
  }
  void stop_receiving() noexcept {
    if ((flags_ & receive_complete_flag) != 0) --complete_;
    flags_ &= unwinding_flag;
  }

  Envelope envelope_;
  boost::asio::cancellation_signal signal_;
  MessageHeader* message_ = nullptr;   // taken for the coroutine that goes on
  Continuation continuation_;
  const Describer* describer_ = nullptr;
#if !DUET_AWAITABLE_PUBLIC
  std::optional<RootStack> root_;
#endif
  std::uint32_t left_ = 0;   // messages and tasks that this activation may still handle
  std::uint32_t complete_ = 0;
  std::uint32_t flags_ = 0;
};

inline void Wait::uncount() noexcept {
  complete_ = false;
  --static_cast<BehaviourActor&>(actor()).complete_;
}

inline void Wait::throw_if_unwinding() const {
  if (static_cast<BehaviourActor&>(actor()).unwinding()) [[unlikely]]
    throw_cancelled();
}

}   // namespace duet::runtime::detail
