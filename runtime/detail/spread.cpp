// spread.cpp: trials of one pump more.
#include "runtime/detail/spread.hpp"

#include "runtime/limits.hpp"

#include <algorithm>
#include <utility>

namespace duet::runtime::detail {

Spread::Order Spread::slice_ended(const Slice& slice) noexcept {
  total_ += slice.handled;
  return phase_ == Phase::steady ? measure(slice) : judge(slice);
}

Spread::Order Spread::measure(const Slice& slice) noexcept {
  if (slice.busy < 2) {
    review_ = TimePoint::max();
  } else if (slice.goes_on && slice.light) {
    if (review_ == TimePoint::max()) review_ = slice.end + limits::spread_rest_min;
    if (slice.end >= review_) {   // who remains measures itself, and tries again
      review_ = TimePoint::max();
      reviewing_ = true;
      next_trial_ = slice.end;
      waiting_ = nullptr;
      return Order::narrow;
    }
  }
  if (slice.idle == 0) {
    waiting_ = nullptr;
  } else if (waiting_ == nullptr) {
    if (slice.backlog) {
      waiting_ = slice.pump;
      begin_window(slice.end);
    }
  } else if (waiting_ == slice.pump) {
    if (!slice.backlog) {
      waiting_ = nullptr;
    } else if (slice.end - window_begin_ >= limits::spread_window) {
      if (slice.end >= next_trial_) {
        rate_before_ = rate(slice.end);
        busy_ = slice.busy + 1;
        phase_ = Phase::settling;
        begin_window(slice.end);
        return Order::widen;
      }
      begin_window(slice.end);   // so that what is compared lies close together
    }
  }
  return Order::stay;
}

Spread::Order Spread::judge(const Slice& slice) noexcept {
  if (slice.busy < busy_ || (slice.goes_on && !slice.light)) {   // nothing more, or heavy work
    reviewing_ = false;
    rest(slice.end, limits::spread_pause);
    return Order::stay;
  }
  if (!slice.goes_on) return Order::stay;   // woken again meanwhile: not ours to give orders to
  if (slice.end - window_begin_ < limits::spread_window) return Order::stay;
  if (std::exchange(phase_, Phase::trial) == Phase::settling) {
    begin_window(slice.end);
    windows_left_ = limits::spread_windows_max;
    return Order::stay;
  }
  const double gain = rate_before_ > 0 ? rate(slice.end) / rate_before_ : 0;
  if (gain >= limits::spread_gain) {
    succeeded(slice.end);
    return Order::stay;
  }
  // The kernel may have both threads on one processor still, so that nothing is won nor lost.
  if (gain > limits::spread_loss && --windows_left_ > 0) {
    begin_window(slice.end);
    return Order::stay;
  }
  if (std::exchange(reviewing_, false)) trust_ = Duration::zero();
  rest(slice.end, limits::spread_rest_min);
  return Order::narrow;
}

void Spread::succeeded(TimePoint now) noexcept {
  phase_ = Phase::steady;
  waiting_ = nullptr;
  if (std::exchange(reviewing_, false)) {
    next_trial_ = now + rest_;   // of still one more
  } else {
    rest_ = Duration::zero();
  }
  trust_ = std::clamp(2 * trust_, limits::spread_rest_min, limits::spread_rest_max);
  review_ = now + trust_;
}

void Spread::rest(TimePoint now, Duration least) noexcept {
  phase_ = Phase::steady;
  waiting_ = nullptr;
  rest_ = std::clamp(2 * rest_, least, limits::spread_rest_max);
  next_trial_ = now + rest_;
}

void Spread::begin_window(TimePoint now) noexcept {
  window_begin_ = now;
  window_total_ = total_;
}

double Spread::rate(TimePoint now) const noexcept {
  return static_cast<double>(total_ - window_total_) /
         static_cast<double>((now - window_begin_).count());
}

}   // namespace duet::runtime::detail
