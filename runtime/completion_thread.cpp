// completion_thread.cpp: the one file of runtime/ in which a thread blocks.
#include "runtime/completion_thread.hpp"

#include "runtime/assert.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace duet::runtime {

struct CompletionThread::Shared {
  std::mutex mutex;
  std::condition_variable ready;
  BlockingCallQueue queue;
  std::size_t queued_max = 0;
  bool running = false;     // a call is being made
  bool closed = false;      // no further call is taken
  bool abandoned = false;   // the lane is gone; the running call may still come back
  std::shared_ptr<std::atomic<std::uint64_t>> abandoned_count;

  void loop() noexcept {
    for (;;) {
      BlockingCall* call = nullptr;
      {
        std::unique_lock lock(mutex);
        ready.wait(lock, [this] { return closed || queue.size() > 0; });
        if (closed) return;
        call = queue.pop();
        running = true;
      }
      call->run();
      call->finish(true);
      const std::lock_guard lock(mutex);
      running = false;
      if (abandoned) abandoned_count->fetch_sub(1, std::memory_order_relaxed);
    }
  }
};

struct CompletionThread::Thread {
  std::thread thread;
};

CompletionThread::CompletionThread(std::string name, std::size_t queued_max,
                                   std::shared_ptr<std::atomic<std::uint64_t>> abandoned)
    : shared_(std::make_shared<Shared>()), thread_(std::make_unique<Thread>()) {
  shared_->queued_max = queued_max;
  shared_->abandoned_count = std::move(abandoned);
  thread_->thread = std::thread([shared = shared_] { shared->loop(); });
  name.resize(std::min<std::size_t>(name.size(), 15));   // the kernel's limit
  ::pthread_setname_np(thread_->thread.native_handle(), name.c_str());
}

CompletionThread::~CompletionThread() {
  stop(false);
}

bool CompletionThread::push(BlockingCall& call) noexcept {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->closed || shared_->queue.size() >= shared_->queued_max) return false;
    shared_->queue.push(call);
  }
  shared_->ready.notify_one();
  return true;
}

void CompletionThread::close() noexcept {
  stop(false);
}

bool CompletionThread::abandon() noexcept {
  bool running = false;
  {
    const std::lock_guard lock(shared_->mutex);
    running = shared_->running && !shared_->abandoned;
  }
  stop(true);
  return running;
}

void CompletionThread::stop(bool leave_running_call) noexcept {
  if (thread_ == nullptr) return;
  DUET_ASSERT(thread_->thread.get_id() != std::this_thread::get_id());
  BlockingCallQueue unmade;
  bool leave = false;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
    while (BlockingCall* call = shared_->queue.pop()) unmade.push(*call);
    leave = leave_running_call && shared_->running;
    if (leave) {
      shared_->abandoned = true;
      shared_->abandoned_count->fetch_add(1, std::memory_order_relaxed);
    }
  }
  shared_->ready.notify_one();
  if (leave) {
    thread_->thread.detach();
  } else {
    thread_->thread.join();
  }
  thread_.reset();
  while (BlockingCall* call = unmade.pop()) call->finish(false);
}

}   // namespace duet::runtime
