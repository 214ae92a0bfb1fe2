// scheduler.hpp: the seam through which work becomes ready to run.
#pragma once

#include "runtime/assert.hpp"
#include "runtime/detail/select.hpp"

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
  RunnableQueue() = default;
  RunnableQueue(const RunnableQueue&) = delete;
  RunnableQueue& operator=(const RunnableQueue&) = delete;

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  void push(Runnable& runnable) noexcept {
    DUET_ASSERT(runnable.next_ == nullptr && end_ != &runnable.next_);
    push_if(runnable, true);
  }
  /// As push() if `wanted`, else nothing. Without a branch, for a `wanted` that no processor
  /// predicts; and without push()'s assertion, as what is not wanted may be in a queue.
  void push_if(Runnable& runnable, bool wanted) noexcept {
    *end_ = &runnable;   // beyond the end, if it is not wanted
    end_ = detail::select(wanted, &runnable.next_, end_);
    size_ += static_cast<std::uint64_t>(wanted);
  }
  /// Null if empty.
  [[nodiscard]] Runnable* pop() noexcept {
    if (size_ == 0) return nullptr;
    Runnable* const first = head_;
    head_ = first->next_;
    if (--size_ == 0) end_ = &head_;
    first->next_ = nullptr;
    return first;
  }

 private:
  Runnable* head_ = nullptr;   // if not empty
  Runnable** end_ = &head_;    // where the next one is linked
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
