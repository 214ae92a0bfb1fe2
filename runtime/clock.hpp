// clock.hpp: the seam through which time is read and waited for.
#pragma once

#include "runtime/time.hpp"

#include <cstddef>
#include <limits>

namespace duet::runtime {

/// A one-shot timer. Intrusive: arming allocates nothing. It must not be armed when it is
/// destroyed.
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Called once after the due time, on a thread of the clock's executor, with no lock held. It may
  /// arm itself again.
  virtual void expired() noexcept = 0;

  /// Meaningful only while armed.
  [[nodiscard]] TimePoint due() const noexcept { return due_; }

 protected:
  virtual ~Timer() = default;

 private:
  friend class TimerHeap;
  static constexpr std::size_t not_armed = std::numeric_limits<std::size_t>::max();
  TimePoint due_{};
  unsigned long long order_ = 0;       // ties go by the order of arming, so that a replay is exact
  std::size_t position_ = not_armed;   // in the heap
};

/// Reads time and keeps timers. Implementations: RealClock with one Asio timer; the simulator's
/// virtual clock.
class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
  [[nodiscard]] virtual WallTime wall_now() const noexcept = 0;
  /// Not later than now(), and hardly ever earlier by limits::coarse_clock_lag: only where the
  /// processor that keeps the kernel's time stands still. Where that is cheaper to read; else
  /// now().
  [[nodiscard]] virtual TimePoint coarse_now() const noexcept { return now(); }

  /// Any thread. Arming an armed timer moves it.
  virtual void arm(Timer& timer, TimePoint due) = 0;

  /// True: expired() will not be called for this arming. False: it was called, is being called, or
  /// was never armed; the owner then keeps the timer alive until expired() has returned.
  virtual bool cancel(Timer& timer) noexcept = 0;
};

}   // namespace duet::runtime
