// sim_clock.hpp: virtual time, which stands still until the simulation moves it.
#pragma once

#include "runtime/clock.hpp"
#include "runtime/timer_heap.hpp"

#include <cstddef>

namespace duet::runtime::simulation {

/// Begins at 0. One thread.
class SimClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }

  /// The run begins at midnight of 1 January 2026, UTC.
  [[nodiscard]] WallTime wall_now() const noexcept override;

  void arm(Timer& timer, TimePoint due) override { heap_.arm(timer, due); }
  bool cancel(Timer& timer) noexcept override { return heap_.remove(timer); }

  [[nodiscard]] std::size_t armed() const noexcept { return heap_.size(); }
  /// TimePoint::max() if no timer is armed; may lie in the past, after a stall.
  [[nodiscard]] TimePoint next_due() const noexcept {
    const Timer* const first = heap_.earliest();
    return first == nullptr ? TimePoint::max() : first->due();
  }
  [[nodiscard]] bool any_due() const noexcept { return next_due() <= now_; }

  /// Forward only.
  void move_to(TimePoint time) noexcept;
  /// The earliest timer expires, if it is due. False: none is.
  bool expire_one() noexcept;

 private:
  TimerHeap heap_;
  TimePoint now_{};
};

}   // namespace duet::runtime::simulation
