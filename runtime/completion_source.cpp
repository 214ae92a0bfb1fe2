// completion_source.cpp: the intrusive queue of blocking calls.
#include "runtime/completion_source.hpp"

#include "runtime/assert.hpp"

namespace duet::runtime {

void BlockingCallQueue::push(BlockingCall& call) noexcept {
  DUET_ASSERT(call.next_ == nullptr && tail_ != &call);
  (tail_ == nullptr ? head_ : tail_->next_) = &call;
  tail_ = &call;
  ++size_;
}

BlockingCall* BlockingCallQueue::pop() noexcept {
  BlockingCall* const first = head_;
  if (first == nullptr) return nullptr;
  head_ = first->next_;
  if (head_ == nullptr) tail_ = nullptr;
  first->next_ = nullptr;
  --size_;
  return first;
}

}   // namespace duet::runtime
