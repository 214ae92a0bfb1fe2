// exit_reason.hpp: how an actor ended, and the notice that its watchers get.
#pragma once

#include "runtime/address.hpp"
#include "runtime/message.hpp"

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace duet::runtime {

enum class ExitKind : std::uint8_t {
  running,    ///< It has not ended.
  finished,   ///< By itself.
  stopped,    ///< It was asked to.
  failed,     ///< An exception left it.
  killed,     ///< Ended by force: by a link, by kill(), or because it did not stop in time.
  gone,       ///< It had ended before somebody asked to watch it.
};

[[nodiscard]] const char* to_string(ExitKind kind) noexcept;

class ExitReason {
 public:
  ExitReason() = default;
  explicit ExitReason(ExitKind kind, std::exception_ptr exception = nullptr) noexcept
      : exception_(std::move(exception)), kind_(kind) {}

  [[nodiscard]] ExitKind kind() const noexcept { return kind_; }
  /// Of failed and killed: what left it, or why it was ended.
  [[nodiscard]] const std::exception_ptr& exception() const noexcept { return exception_; }

  /// What a link passes on and what a transient child is restarted after: failed, killed, and gone,
  /// since how an actor ended that is gone can no longer be known.
  [[nodiscard]] bool abnormal() const noexcept {
    return kind_ == ExitKind::failed || kind_ == ExitKind::killed || kind_ == ExitKind::gone;
  }

  /// For people: the exception's text, else the kind.
  [[nodiscard]] std::string text() const;

 private:
  std::exception_ptr exception_;
  ExitKind kind_ = ExitKind::running;
};

/// To the watcher of an actor, once, after that actor's destructor has run.
struct Down {
  Down(Address address, ExitReason why) noexcept : actor(address), reason(std::move(why)) {}
  Address actor;
  ExitReason reason;
};
template <>
inline constexpr MessageClass message_class<Down> = MessageClass::guaranteed;

/// Why an actor was ended by force, when a link did not do it: the text that was given.
class KilledError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Why an actor was ended by a link. Along a chain of links it stays the same: it tells of the
/// actor that failed first.
class LinkedActorEnded : public KilledError {
 public:
  LinkedActorEnded(const Address& actor, const std::string& text)
      : KilledError(text), actor_(actor) {}
  [[nodiscard]] const Address& actor() const noexcept { return actor_; }

 private:
  Address actor_;
};

/// For the host's callback when an actor fails.
struct ActorFailure {
  std::string name;
  Address actor;
  ExitReason reason;
};

}   // namespace duet::runtime
