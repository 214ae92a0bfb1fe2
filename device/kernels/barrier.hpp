// barrier.hpp: where the two threads of a chip meet at `sync`.
#pragma once

#include <hwy/cache_control.h>
#include <atomic>
#include <cstdint>

namespace duet::device {

/// A reusable meeting of two threads. Each call of arrive() returns after the other thread's
/// matching call; what one wrote before is visible to the other after. Spins, then blocks in the
/// kernel, so that a partner without a core of its own still gets to run.
class CoreBarrier {
 public:
  void arrive() {
    const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) == 1) {
      waiting_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      phase_.notify_one();
      return;
    }
    for (std::uint32_t i = 0; i < spins_max; ++i) {
      if (phase_.load(std::memory_order_acquire) != phase) return;
      hwy::Pause();
    }
    while (phase_.load(std::memory_order_acquire) == phase) phase_.wait(phase);
  }

 private:
  // About 50 microseconds: longer than the usual difference between the shares of two cores.
  static constexpr std::uint32_t spins_max = 2000;

  alignas(64) std::atomic<std::uint32_t> waiting_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
};

}   // namespace duet::device
