// deadlock.cpp: a deadlock in words.
#include "runtime/simulation/deadlock.hpp"

#include <algorithm>

namespace duet::runtime::simulation {
namespace {

constexpr std::size_t lines_max = 20;   // of a report; the first ones tell the story

}   // namespace

std::string Deadlock::text() const {
  std::string text = "nothing is ready and nothing is due, but " + std::to_string(waiters.size()) +
                     (waiters.size() == 1 ? " actor waits:" : " actors wait:");
  for (std::size_t i = 0; i < std::min(waiters.size(), lines_max); ++i) {
    const Waiter& waiter = waiters[i];
    text += "\n  actor " + std::to_string(waiter.actor.number) + " of " + waiter.system + ", " +
            describe(waiter.actor, now);
    if (waiter.wakeup_lost) {
      text += ": " + std::to_string(waiter.actor.normal.depth + waiter.actor.urgent.depth) +
              " in its mailbox, but its wake-up was lost";
    }
  }
  if (waiters.size() > lines_max) {
    text += "\n  and " + std::to_string(waiters.size() - lines_max) + " more";
  }
  return text;
}

}   // namespace duet::runtime::simulation
