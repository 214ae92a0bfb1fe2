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

  [[nodiscard]] bool ended() const noexcept { return exit_.kind() != ExitKind::running; }
  [[nodiscard]] const ExitReason& exit_reason() const noexcept { return exit_; }
  /// The first call counts.
  void end(ExitReason reason) noexcept {
    if (!ended()) exit_ = std::move(reason);
  }

  [[nodiscard]] detail::PendingList& pending() noexcept { return pending_; }

 protected:
  virtual ~ActorBase() = default;

 private:
  friend class detail::Slot;
  detail::Slot* slot_ = nullptr;
  detail::PendingList pending_;
  ExitReason exit_;
};

}   // namespace duet::runtime
