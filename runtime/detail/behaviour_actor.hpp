// behaviour_actor.hpp: an actor whose code is a coroutine.
#pragma once

#include "runtime/actor_base.hpp"
#include "runtime/detail/description.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/slot.hpp"

#include <boost/asio/cancellation_signal.hpp>

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

/// A wait for the next message; one at a time, so the actor knows it without a list. One with a
/// timer is linked nevertheless.
class MessageWait : public Wait {
 public:
  using Wait::Wait;
  virtual void deliver(MessageHeader& message) = 0;
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

  /// The next message, if the activation may still handle one.
  [[nodiscard, gnu::always_inline]] MessageHeader* try_message() noexcept {
    if (left_ == 0) return nullptr;
    slot().take_urgent();
    MessageHeader* const message = slot().next_message();
    dry_ = message == nullptr;
    if (message != nullptr) --left_;
    return message;
  }

  void set_receiving(MessageWait* wait) noexcept { receiving_ = wait; }
  [[nodiscard]] MessageWait* receiving() const noexcept { return receiving_; }

  /// Once true, our awaits throw: the behaviour is to unwind.
  [[nodiscard]] bool unwinding() const noexcept { return unwinding_; }

  /// The coroutine that started with the actor, as opposed to the branches of a race.
  [[nodiscard]] const void* root() const noexcept { return root_; }

  /// Of the message received last.
  [[nodiscard]] const Envelope& envelope() const noexcept { return envelope_; }
  [[gnu::always_inline]] void received(const MessageHeader& message) noexcept {
    envelope_ = envelope_of(message);
    slot().handling(message);
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

  [[nodiscard]] boost::asio::cancellation_signal& unwind_signal() noexcept { return signal_; }
  void set_root(const void* root) noexcept { root_ = root; }

 private:
  friend class Wait;
  [[nodiscard, gnu::always_inline]] inline bool work_once();
  [[nodiscard]] Wait* first_complete() noexcept;

  Envelope envelope_;
  boost::asio::cancellation_signal signal_;
  MessageWait* receiving_ = nullptr;
  const Describer* describer_ = nullptr;
  const void* root_ = nullptr;
  std::uint32_t left_ = 0;   // messages and tasks that this activation may still handle
  std::uint32_t complete_ = 0;
  bool dry_ = false;   // the behaviour has looked for a message since, and there was none
  bool unwinding_ = false;
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
