// scheduler.hpp: the seam through which work becomes ready to run.
#pragma once

#include "runtime/assert.hpp"

#include <cstdint>

namespace duet::runtime {

/// A piece of work that can be made ready. Intrusive, so that posting allocates nothing; it
/// outlives its run.
class Runnable {
 public:
  Runnable() = default;
  Runnable(const Runnable&) = delete;
  Runnable& operator=(const Runnable&) = delete;

  /// Runs on a thread of the scheduler, never inside post(). It may post itself again.
  virtual void run() noexcept = 0;

 protected:
  virtual ~Runnable() = default;

 private:
  friend class RunnableQueue;
  Runnable* next_ = nullptr;
};

/// A FIFO of runnables; no lock of its own. A runnable is in one queue at a time.
class RunnableQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  void push(Runnable& runnable) noexcept {
    DUET_ASSERT(runnable.next_ == nullptr && tail_ != &runnable);
    (tail_ == nullptr ? head_ : tail_->next_) = &runnable;
    tail_ = &runnable;
    ++size_;
  }
  /// Null if empty.
  [[nodiscard]] Runnable* pop() noexcept {
    Runnable* const first = head_;
    if (first == nullptr) return nullptr;
    head_ = first->next_;
    if (head_ == nullptr) tail_ = nullptr;
    first->next_ = nullptr;
    --size_;
    return first;
  }

 private:
  Runnable* head_ = nullptr;
  Runnable* tail_ = nullptr;
  std::uint64_t size_ = 0;
};

/// Runs what is ready. Implementations: RealScheduler over an Asio executor; the simulator picks
/// from a seed.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Makes `runnable` ready; it runs once for each post. Any thread. It must not be ready already.
  virtual void post(Runnable& runnable) noexcept = 0;

  /// Posts all, in order, waking the host once. May be empty: then outstanding work that changed
  /// while runnables were collected is looked at, no more.
  virtual void post_all(RunnableQueue& runnables) noexcept {
    while (Runnable* runnable = runnables.pop()) post(*runnable);
  }

  /// The end: returns when no runnable runs any more, and none will. What was ready is forgotten;
  /// nothing may be posted afterwards. Not from inside a runnable.
  virtual void close() noexcept = 0;

  /// Outstanding work: while more has started than finished, the host's run() does not return. Any
  /// thread.
  virtual void work_started() noexcept = 0;
  virtual void work_finished() noexcept = 0;
};

}   // namespace duet::runtime
