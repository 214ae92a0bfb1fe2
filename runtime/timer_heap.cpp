// timer_heap.cpp: a binary heap that knows where each timer lies.
#include "runtime/timer_heap.hpp"

#include "runtime/assert.hpp"

namespace duet::runtime {

bool TimerHeap::before(const Timer& a, const Timer& b) noexcept {
  return a.due_ != b.due_ ? a.due_ < b.due_ : a.order_ < b.order_;
}

void TimerHeap::place(Timer& timer, std::size_t position) noexcept {
  timers_[position] = &timer;
  timer.position_ = position;
}

void TimerHeap::sift_up(std::size_t position) noexcept {
  Timer& timer = *timers_[position];
  while (position > 0) {
    const std::size_t parent = (position - 1) / 2;
    if (!before(timer, *timers_[parent])) break;
    place(*timers_[parent], position);
    position = parent;
  }
  place(timer, position);
}

void TimerHeap::sift_down(std::size_t position) noexcept {
  Timer& timer = *timers_[position];
  for (;;) {
    std::size_t child = 2 * position + 1;
    if (child >= timers_.size()) break;
    if (child + 1 < timers_.size() && before(*timers_[child + 1], *timers_[child])) ++child;
    if (!before(*timers_[child], timer)) break;
    place(*timers_[child], position);
    position = child;
  }
  place(timer, position);
}

void TimerHeap::arm(Timer& timer, TimePoint due) {
  remove(timer);
  timers_.push_back(&timer);
  timer.due_ = due;
  timer.order_ = armed_++;
  sift_up(timers_.size() - 1);
}

bool TimerHeap::remove(Timer& timer) noexcept {
  const std::size_t position = timer.position_;
  if (position == Timer::not_armed) return false;
  DUET_ASSERT(position < timers_.size() && timers_[position] == &timer, position, timers_.size());
  timer.position_ = Timer::not_armed;
  Timer& last = *timers_.back();
  timers_.pop_back();
  if (&last != &timer) {
    place(last, position);
    sift_up(position);
    sift_down(last.position_);
  }
  return true;
}

Timer* TimerHeap::pop_due(TimePoint now) noexcept {
  Timer* const first = earliest();
  if (first == nullptr || first->due_ > now) return nullptr;
  remove(*first);
  return first;
}

}   // namespace duet::runtime
