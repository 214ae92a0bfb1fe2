// thread_block.hpp: what one thread writes about a system while it runs its actors.
#pragma once

#include "runtime/detail/type_row.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace duet::runtime::detail {

class Slot;

/// Written by one thread at a time, without a lock and without sharing a cache line; read by
/// anyone. It belongs to an arena and to a thread's index.
struct alignas(64) ThreadBlock {
  std::atomic<Slot*> running = nullptr;   // the actor that the thread runs now
  std::array<std::atomic<std::uint64_t>, TypeRow::rows_max> handled{};   // messages, by type

  void count_handled(const TypeRow& row) noexcept {
    std::atomic<std::uint64_t>& count = handled[row.index()];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

/// The calling thread's number among those that live: small, and given again when it has ended.
[[nodiscard]] std::uint32_t thread_index() noexcept;

}   // namespace duet::runtime::detail
