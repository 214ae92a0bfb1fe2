// deadlock.hpp: who waits although nothing will ever come.
#pragma once

#include "runtime/snapshot.hpp"
#include "runtime/time.hpp"

#include <string>
#include <vector>

namespace duet::runtime::simulation {

/// An actor that waits for an answer, or for its turn, when nothing is ready and nothing is due.
struct Waiter {
  std::string system;
  ActorSnapshot actor;
  bool wakeup_lost = false;   ///< messages lie in its mailbox, but nobody will run it
};

struct Deadlock {
  TimePoint now{};
  std::vector<Waiter> waiters;   ///< never empty

  /// A line for each: who waits for what, since when, at which source line.
  [[nodiscard]] std::string text() const;
};

}   // namespace duet::runtime::simulation
