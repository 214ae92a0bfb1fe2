// supervisor_event.hpp: what a supervisor tells its host.
#pragma once

#include "runtime/exit_reason.hpp"
#include "runtime/snapshot.hpp"
#include "runtime/time.hpp"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace duet::runtime {

/// Valid during the call of the hook; what outlives it is copied.
struct SupervisorEvent {
  enum class Kind : std::uint8_t {
    started,      ///< `child` has a new life at `address`.
    ended,        ///< The life at `address` ended for `reason`; no address: its factory threw.
    restarting,   ///< `child` (and others, by the strategy) will be started in `delay`.
    late,         ///< `child` did not stop in time and is ended by force; `stragglers` shows it.
    abandoned,    ///< Not even that helped: `address` is left behind, perhaps for ever.
    giving_up,    ///< The supervisor stops its children and fails for `reason`.
    refused,      ///< A StartChild that was not taken.
    stopped       ///< The supervisor has stopped all; `stragglers` are those who were late.
  };
  Kind kind = Kind::started;
  std::string_view supervisor;
  std::string_view child;   ///< empty if it is about the supervisor itself
  Address address;
  ExitReason reason;
  std::uint32_t restarts = 0;   ///< within the window
  Duration delay{};
  TimePoint now{};
  std::vector<ActorSnapshot> stragglers;
};

/// Runs on the supervisor's strand; must neither block nor throw.
using SupervisorHook = std::function<void(const SupervisorEvent&)>;

/// One line for people: "services: worker ended (the disk is full); it starts again in 0.100 s".
[[nodiscard]] std::string describe(const SupervisorEvent& event);

/// Why a supervisor failed.
class SupervisorError : public std::runtime_error {
 public:
  SupervisorError(const std::string& text, std::string child, std::uint32_t restarts,
                  bool beyond_restart)
      : std::runtime_error(text),
        child_(std::move(child)),
        restarts_(restarts),
        beyond_restart_(beyond_restart) {}

  [[nodiscard]] const std::string& child() const noexcept { return child_; }
  /// How many there had been within the window.
  [[nodiscard]] std::uint32_t restarts() const noexcept { return restarts_; }
  /// An actor could not be ended. Another life beside it could do harm, so the supervisors above do
  /// not restart this one; each gives up in turn.
  [[nodiscard]] bool beyond_restart() const noexcept { return beyond_restart_; }

 private:
  std::string child_;
  std::uint32_t restarts_;
  bool beyond_restart_;
};

}   // namespace duet::runtime
