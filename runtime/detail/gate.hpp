// gate.hpp: lets threads from outside in while a system lives.
#pragma once

#include <atomic>
#include <cstdint>

namespace duet::runtime::detail {

/// Counts who is inside. Once closed nobody enters, and close() returns when everybody has left;
/// what they do inside is short.
class Gate {
 public:
  [[nodiscard]] bool enter() noexcept {
    if ((state_.fetch_add(1, std::memory_order_acquire) & closed) == 0) return true;
    leave();
    return false;
  }

  void leave() noexcept {
    if (state_.fetch_sub(1, std::memory_order_release) == (closed | 1)) state_.notify_all();
  }

  void open() noexcept { state_.fetch_and(~closed, std::memory_order_release); }

  void close() noexcept {
    std::uint64_t state = state_.fetch_or(closed, std::memory_order_acq_rel) | closed;
    while (state != closed) {
      state_.wait(state, std::memory_order_acquire);
      state = state_.load(std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint64_t closed = 1ULL << 63U;
  std::atomic<std::uint64_t> state_ = closed;
};

}   // namespace duet::runtime::detail
