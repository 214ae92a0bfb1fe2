// timer_heap.hpp: timers ordered by due time, then by the order of arming. No lock, no clock; both
// clocks use it.
#pragma once

#include "runtime/clock.hpp"

#include <vector>

namespace duet::runtime {

class TimerHeap {
 public:
  [[nodiscard]] bool empty() const noexcept { return timers_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return timers_.size(); }
  [[nodiscard]] Timer* earliest() const noexcept {
    return timers_.empty() ? nullptr : timers_.front();
  }

  /// Adds or moves. O(log n); allocates only when more timers are armed than ever before.
  void arm(Timer& timer, TimePoint due);

  /// False if it was not armed.
  bool remove(Timer& timer) noexcept;

  /// Removes and returns the earliest timer if it is due at `now`, else null.
  [[nodiscard]] Timer* pop_due(TimePoint now) noexcept;

 private:
  [[nodiscard]] static bool before(const Timer& a, const Timer& b) noexcept;
  void sift_up(std::size_t position) noexcept;
  void sift_down(std::size_t position) noexcept;
  void place(Timer& timer, std::size_t position) noexcept;

  std::vector<Timer*> timers_;
  unsigned long long armed_ = 0;
};

}   // namespace duet::runtime
