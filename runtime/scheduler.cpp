// scheduler.cpp: the intrusive queue of runnables.
#include "runtime/scheduler.hpp"

#include "runtime/assert.hpp"

namespace duet::runtime {

void RunnableQueue::push(Runnable& runnable) noexcept {
  DUET_ASSERT(runnable.next_ == nullptr && tail_ != &runnable);
  (tail_ == nullptr ? head_ : tail_->next_) = &runnable;
  tail_ = &runnable;
  ++size_;
}

Runnable* RunnableQueue::pop() noexcept {
  Runnable* const first = head_;
  if (first == nullptr) return nullptr;
  head_ = first->next_;
  if (head_ == nullptr) tail_ = nullptr;
  first->next_ = nullptr;
  --size_;
  return first;
}

}   // namespace duet::runtime
