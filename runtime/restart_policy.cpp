// restart_policy.cpp: back-off and restart intensity.
#include "runtime/restart_policy.hpp"

#include <algorithm>

namespace duet::runtime {

Duration backoff_delay(const Backoff& backoff, std::uint32_t restart, double chance) noexcept {
  Duration delay = std::min(backoff.first, backoff.longest);
  for (std::uint32_t i = 1; i < restart && delay < backoff.longest && delay.count() > 0; ++i) {
    delay = delay > backoff.longest / 2 ? backoff.longest : 2 * delay;
  }
  const double share = std::clamp(backoff.jitter * chance, 0.0, 1.0);
  return delay - Duration(static_cast<Duration::rep>(static_cast<double>(delay.count()) * share));
}

bool RestartWindow::admit(TimePoint now) {
  while (!times_.empty() && now - times_.front() >= limit_.window) times_.pop_front();
  if (times_.size() >= limit_.restarts_max) return false;
  times_.push_back(now);
  return true;
}

}   // namespace duet::runtime
