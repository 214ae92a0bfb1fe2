// short_lock.hpp: a lock for books that several threads keep.
#pragma once

#include <atomic>
#include <cstdint>

namespace duet::runtime {

/// For critical sections of a few dozen instructions that call nothing outside, or do so rarely. It
/// never decides an order that behaviour may depend on, so it is fit for code that the simulator
/// runs (there, nobody ever waits). Satisfies Lockable.
class ShortLock {
 public:
  void lock() noexcept {
    if (try_lock()) [[likely]]
      return;
    while (state_.exchange(State::awaited, std::memory_order_acquire) != State::open) {
      state_.wait(State::awaited, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] bool try_lock() noexcept {
    State expected = State::open;
    return state_.compare_exchange_strong(expected, State::held, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }

  void unlock() noexcept {
    // Only then: the standard library keeps one count of waiters for many addresses, so that a
    // notify without any of ours is a system call where somebody waits for another one.
    if (state_.exchange(State::open, std::memory_order_release) == State::awaited) [[unlikely]]
      state_.notify_one();
  }

 private:
  enum class State : std::uint32_t { open, held, awaited };
  std::atomic<State> state_ = State::open;
};

}   // namespace duet::runtime
