// sim_clock.cpp: virtual time over a heap of timers.
#include "runtime/simulation/sim_clock.hpp"

#include "runtime/assert.hpp"

namespace duet::runtime::simulation {
namespace {

constexpr WallTime wall_begin{std::chrono::seconds(1'767'225'600)};

}   // namespace

WallTime SimClock::wall_now() const noexcept {
  return wall_begin +
         std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch());
}

void SimClock::move_to(TimePoint time) noexcept {
  DUET_ASSERT(time >= now_, time.time_since_epoch().count(), now_.time_since_epoch().count());
  now_ = time;
}

bool SimClock::expire_one() noexcept {
  Timer* const timer = heap_.pop_due(now_);
  if (timer == nullptr) return false;
  timer->expired();
  return true;
}

}   // namespace duet::runtime::simulation
