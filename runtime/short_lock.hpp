// short_lock.hpp: a lock for books that several threads keep.
#pragma once

#include <atomic>
#include <cstdint>

namespace duet::runtime {

/// For critical sections of a few dozen instructions that call nothing outside. It never decides an
/// order that behaviour may depend on, so it is fit for code that the simulator runs (there, nobody
/// ever waits). Satisfies Lockable.
class ShortLock {
 public:
  void lock() noexcept {
    std::uint32_t expected = 0;
    while (!state_.compare_exchange_weak(expected, 1, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      if (expected == 1) state_.wait(1, std::memory_order_relaxed);
      expected = 0;
    }
  }

  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t expected = 0;
    return state_.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }

  void unlock() noexcept {
    state_.store(0, std::memory_order_release);
    state_.notify_one();
  }

 private:
  std::atomic<std::uint32_t> state_ = 0;
};

}   // namespace duet::runtime
