// real_stall_watch.cpp: looks, waits, looks.
#include "runtime/real_stall_watch.hpp"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace duet::runtime {

struct RealStallWatch::Impl {
  Impl(const System& system, StallWatchOptions chosen)
      : options(std::move(chosen)), watch(system, options.budget), thread([this] { loop(); }) {
    ::pthread_setname_np(thread.native_handle(), "duet-stalls");
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    end.notify_one();
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void loop() {
    std::unique_lock lock(mutex);
    while (!end.wait_for(lock, options.period, [this] { return ending; })) {
      lock.unlock();
      for (const Stall& stall : watch.look()) {
        if (options.on_stall) options.on_stall(stall);
      }
      lock.lock();
    }
  }

  const StallWatchOptions options;
  StallWatch watch;   // of the thread
  std::mutex mutex;
  std::condition_variable end;
  bool ending = false;
  std::thread thread;
};

RealStallWatch::RealStallWatch(const System& system, StallWatchOptions options)
    : impl_(std::make_unique<Impl>(system, std::move(options))) {}

RealStallWatch::~RealStallWatch() = default;

}   // namespace duet::runtime
