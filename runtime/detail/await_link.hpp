// await_link.hpp: the one place where a reader of a mailbox waits for a sender.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace duet::runtime::detail {

/// Of `link`, null now, into which a sender is about to write: it is between the two steps
/// of its push, so this is short unless the kernel has taken its processor away; then it yields. A
/// simulation, which has one thread, never comes here.
template <typename T>
[[nodiscard, gnu::noinline, gnu::cold]] T await_link(const std::atomic<T>& link) noexcept {
  constexpr std::uint32_t spins_max = 64;   // far longer than the two steps
  for (std::uint32_t i = 0;; ++i) {
    if (const T there = link.load(std::memory_order_acquire)) return there;
    if (i >= spins_max) std::this_thread::yield();
  }
}

}   // namespace duet::runtime::detail
