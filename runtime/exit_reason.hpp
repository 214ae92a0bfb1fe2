// exit_reason.hpp: how an actor ended, and the notice that its watchers get.
#pragma once

#include "runtime/address.hpp"
#include "runtime/message.hpp"

#include <cstdint>
#include <exception>
#include <string>

namespace duet::runtime {

enum class ExitKind : std::uint8_t {
  running,    ///< It has not ended.
  finished,   ///< By itself.
  stopped,    ///< It was asked to.
  failed,     ///< An exception left it.
  gone,       ///< It had ended before somebody asked to watch it.
};

[[nodiscard]] const char* to_string(ExitKind kind) noexcept;

class ExitReason {
 public:
  ExitReason() = default;
  explicit ExitReason(ExitKind kind, std::exception_ptr exception = nullptr) noexcept
      : exception_(std::move(exception)), kind_(kind) {}

  [[nodiscard]] ExitKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::exception_ptr& exception() const noexcept { return exception_; }

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

/// For the host's callback when an actor fails.
struct ActorFailure {
  std::string name;
  Address actor;
  ExitReason reason;
};

}   // namespace duet::runtime
