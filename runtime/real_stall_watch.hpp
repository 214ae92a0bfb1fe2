// real_stall_watch.hpp: a thread that looks for stalled handlers.
#pragma once

#include "runtime/stall_watch.hpp"

#include <functional>
#include <memory>

namespace duet::runtime {

struct StallWatchOptions {
  /// Handlers should take microseconds; a tenth of a second is what a person notices.
  Duration budget = std::chrono::milliseconds(100);
  /// Between two looks, so that a stall is told after 100 to 150 ms.
  Duration period = std::chrono::milliseconds(50);
  /// On the watch's thread; it must not throw, and may use the system. What a stalled host needs
  /// told must not go through that host's executor.
  std::function<void(const Stall&)> on_stall;
};

/// A StallWatch on a thread of its own, because a stalled loop cannot run a timer. Destroying it
/// joins the thread; the system may have ended before.
class RealStallWatch {
 public:
  RealStallWatch(const System& system, StallWatchOptions options);
  ~RealStallWatch();
  RealStallWatch(const RealStallWatch&) = delete;
  RealStallWatch& operator=(const RealStallWatch&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}   // namespace duet::runtime
