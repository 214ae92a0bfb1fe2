// real_clock.cpp: a heap of timers behind one Asio timer.
#include "runtime/real_clock.hpp"

#include "runtime/assert.hpp"
#include "runtime/short_lock.hpp"
#include "runtime/timer_heap.hpp"

#include <boost/asio/defer.hpp>
#include <boost/asio/steady_timer.hpp>

#include <ctime>
#include <mutex>
#include <utility>

namespace duet::runtime {

struct RealClock::State : std::enable_shared_from_this<State> {
  explicit State(const boost::asio::any_io_executor& executor) : asio_timer(executor) {}

  ShortLock mutex;   // longer only when the Asio timer is set anew
  TimerHeap heap;
  boost::asio::steady_timer asio_timer;
  TimePoint waited_for = TimePoint::max();   // what asio_timer is set to; max: it is not waited for
  bool giving_up = false;                    // a look at the empty heap is posted

  // Re-arming the Asio timer costs a system call, so it is done only when the earliest due time
  // moved forward.
  void wait_if_earlier() {
    const Timer* const first = heap.earliest();
    if (first == nullptr || first->due() >= waited_for) return;
    waited_for = first->due();
    asio_timer.expires_at(std::chrono::steady_clock::time_point(waited_for.time_since_epoch()));
    asio_timer.async_wait(
        [state = shared_from_this(), due = waited_for](const boost::system::error_code& error) {
          state->ended(error, due);
        });
  }

  // A wait for nobody would hold the host's run(). It is given up a turn of the host later, because
  // a timer that is cancelled is often followed by another: so most cost no system call.
  void give_up_if_empty() {
    if (!heap.empty() || waited_for == TimePoint::max() || giving_up) return;
    giving_up = true;
    boost::asio::defer(asio_timer.get_executor(), [state = shared_from_this()] {
      const std::lock_guard lock(state->mutex);
      state->giving_up = false;
      if (!state->heap.empty()) return;
      state->waited_for = TimePoint::max();
      state->asio_timer.cancel();
    });
  }

  void ended(const boost::system::error_code& error, TimePoint due) {
    std::unique_lock lock(mutex);
    if (error || due != waited_for) return;   // replaced by an earlier wait
    waited_for = TimePoint::max();
    const TimePoint now = std::chrono::steady_clock::now();
    while (Timer* timer = heap.pop_due(now)) {
      lock.unlock();
      timer->expired();
      lock.lock();
    }
    wait_if_earlier();
  }
};

RealClock::RealClock(const boost::asio::any_io_executor& executor)
    : state_(std::make_shared<State>(executor)) {}

RealClock::~RealClock() {
  const std::lock_guard lock(state_->mutex);
  DUET_ASSERT(state_->heap.empty(), state_->heap.size());
  state_->waited_for = TimePoint::max();
  state_->asio_timer.cancel();
}

TimePoint RealClock::now() const noexcept {
  return std::chrono::steady_clock::now();
}

TimePoint RealClock::coarse_now() const noexcept {
#if defined(__linux__)   // where steady_clock is CLOCK_MONOTONIC; a fifth of its cost
  timespec time{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &time) == 0) {
    return TimePoint(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
#endif
  return now();
}

WallTime RealClock::wall_now() const noexcept {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

void RealClock::arm(Timer& timer, TimePoint due) {
  const std::lock_guard lock(state_->mutex);
  state_->heap.arm(timer, due);
  state_->wait_if_earlier();
}

bool RealClock::cancel(Timer& timer) noexcept {
  const std::lock_guard lock(state_->mutex);
  const bool removed = state_->heap.remove(timer);
  if (removed) state_->give_up_if_empty();
  return removed;
}

}   // namespace duet::runtime
