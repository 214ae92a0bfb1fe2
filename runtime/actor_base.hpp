// actor_base.hpp: what coroutine behaviours and handler actors have in common.
#pragma once

#include "runtime/address.hpp"
#include "runtime/detail/pending.hpp"
#include "runtime/exit_reason.hpp"
#include "runtime/properties.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

namespace duet::runtime {

namespace detail {
class Core;
class Slot;
}   // namespace detail

/// Everything here runs on the actor's strand, except where a comment says otherwise.
class ActorBase {
 public:
  enum class Outcome : std::uint8_t {
    idle,    ///< The activation is over; nothing of the actor may be touched.
    again,   ///< There is more to do, in another activation.
    ended    ///< exit_reason() says how.
  };

  ActorBase() = default;
  ActorBase(const ActorBase&) = delete;
  ActorBase& operator=(const ActorBase&) = delete;

  /// Handles what came, up to limits::activation_messages_max.
  [[nodiscard]] virtual Outcome activate() noexcept = 0;

  /// Somebody asked the actor to end.
  virtual void stop_requested() = 0;

  /// The actor is to end whether it wants to or not; `why` becomes that of its exit reason.
  virtual void kill(std::exception_ptr why) { end(ExitReason(ExitKind::killed, std::move(why))); }

  /// What the actor says about itself; nothing if it does not.
  [[nodiscard]] virtual std::optional<Properties> properties() const { return std::nullopt; }

  /// Ends the actor's object; all that it waits for is let go of.
  virtual void destroy() noexcept = 0;

  [[nodiscard]] detail::Slot& slot() const noexcept { return *slot_; }
  [[nodiscard]] detail::Core& core() const noexcept;
  [[nodiscard]] Address address() const noexcept;

  [[nodiscard]] bool ended() const noexcept {
    return exit_kind_ != static_cast<std::uint64_t>(ExitKind::running);
  }
  [[nodiscard]] ExitReason exit_reason() const noexcept {
    return ExitReason(static_cast<ExitKind>(exit_kind_), exception_);
  }
  /// The first call counts.
  void end(const ExitReason& reason) noexcept {
    if (ended()) return;
    exit_kind_ = static_cast<std::uint8_t>(reason.kind());
    exception_ = reason.exception();
  }

  [[nodiscard]] detail::PendingList& pending() noexcept { return pending_; }
  /// Of what the actor waits for; never the same again in its life.
  [[nodiscard]] std::uint64_t next_pending_id() noexcept {
    return last_pending_id_ = last_pending_id_ + 1;
  }

 protected:
  /// Why it is being killed, until it ends; the first call counts.
  void keep_kill_reason(std::exception_ptr why) noexcept {
    if (exception_ == nullptr) exception_ = std::move(why);
  }
  /// Null unless it is being killed, or ended by an exception.
  [[nodiscard]] const std::exception_ptr& kill_reason() const noexcept { return exception_; }

  virtual ~ActorBase() = default;

  [[nodiscard]] bool has_begun() const noexcept { return begun_ != 0; }
  void set_begun() noexcept { begun_ = 1; }

 private:
  friend class detail::Slot;
  detail::Slot* slot_ = nullptr;
  detail::PendingList pending_;
  std::exception_ptr exception_;   // of the exit reason, or of a kill in progress
  // One word, because every idle actor has it. At ten million waits a second the ids last a
  // century.
  std::uint64_t last_pending_id_ : 55 = 0;
  std::uint64_t begun_ : 1 = 0;
  std::uint64_t exit_kind_ : 8 = static_cast<std::uint64_t>(ExitKind::running);
};

}   // namespace duet::runtime
