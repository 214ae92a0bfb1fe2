// pool.cpp: the depot of the freelists, and what a thread leaves behind.
#include "runtime/detail/pool.hpp"

#include "runtime/assert.hpp"
#include "runtime/short_lock.hpp"

#include <algorithm>
#include <memory>
#include <mutex>

namespace duet::runtime::detail {
namespace {

/// Of a fresh chain: larger nodes come in shorter ones, so that it stays below 16 KiB.
std::uint32_t chain_length(std::size_t size_class) noexcept {
  const std::size_t bytes = (size_class + 1) * Pool::step;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(16384 / bytes, 8, limits::chain_nodes_max));
}

struct Depot {
  ShortLock lock;
  FreeNode* chains = nullptr;

  void put(FreeNode* chain, std::uint32_t count) noexcept {
    chain->count = count;
    const std::lock_guard guard(lock);
    chain->ahead = chains;
    chains = chain;
  }

  [[nodiscard]] FreeNode* get() noexcept {
    const std::lock_guard guard(lock);
    FreeNode* const chain = chains;
    if (chain != nullptr) chains = chain->ahead;
    return chain;
  }
};

Depot& depot(std::size_t size_class) noexcept {
  // Never destroyed: other threads may still free when static objects are destroyed.
  static constinit Depot depots[Pool::classes];
  return depots[size_class];
}

}   // namespace

struct PoolFlush {
  ~PoolFlush() { Pool::flush(); }
};

void Pool::refill(std::size_t size_class) {
  Shelf& shelf = shelves_[size_class];
  if (shelf.count_max == 0) open(shelf, size_class);
  if (shelf.spare != nullptr) {
    shelf.first = std::exchange(shelf.spare, nullptr);
    shelf.count = shelf.spare_count;
    return;
  }
  FreeNode* chain = depot(size_class).get();
  if (chain == nullptr) {
    const std::size_t bytes = (size_class + 1) * step;
    const std::uint32_t count = chain_length(size_class);
    // On a border of cache lines, so that a node of 64 bytes touches one; by hand, so that malloc
    // is what is called and what tests count.
    constexpr std::size_t line = 64;
    void* begin = ::operator new(bytes* count + line);
    std::size_t room = bytes * count + line;
    auto* const slab = static_cast<std::byte*>(std::align(line, bytes * count, begin, room));
    // A head word of a mailbox keeps a count above the address.
    DUET_ASSERT(reinterpret_cast<std::uintptr_t>(slab) >> 48U == 0);
    for (std::uint32_t i = count; i > 0; --i) {
      chain = new (slab + (i - 1) * bytes) FreeNode{chain, nullptr, 0};
    }
    chain->count = count;
  }
  shelf.first = chain;
  shelf.count = chain->count;
  if (ended_ && shelf.count > 1) {   // nobody will flush this thread again
    depot(size_class).put(std::exchange(chain->next, nullptr), shelf.count - 1);
    shelf.count = 1;
  }
}

void Pool::spill(std::size_t size_class, void* memory) noexcept {
  if (size_class == unpooled) return ::operator delete(memory);
  Shelf& shelf = shelves_[size_class];
  auto* const node = new (memory) FreeNode{nullptr, nullptr, 1};
  if (ended_) {
    depot(size_class).put(node, 1);
    return;
  }
  if (shelf.count_max == 0) open(shelf, size_class);
  if (shelf.count >= shelf.count_max) {
    if (shelf.spare != nullptr) depot(size_class).put(shelf.spare, shelf.spare_count);
    shelf.spare = shelf.first;
    shelf.spare_count = shelf.count;
    shelf.first = nullptr;
    shelf.count = 0;
  }
  node->next = shelf.first;
  shelf.first = node;
  ++shelf.count;
}

/// The first use of a size class by this thread.
void Pool::open(Shelf& shelf, std::size_t size_class) {
  if (ended_) return;
  static thread_local PoolFlush flush_at_exit;
  static_cast<void>(&flush_at_exit);
  // More than a fresh chain: who takes one, and then now and then frees what another thread took,
  // is not at the border where each free is a trade.
  shelf.count_max = 2 * chain_length(size_class);
}

void Pool::flush() noexcept {
  ended_ = true;
  for (std::size_t i = 0; i < classes; ++i) {
    Shelf& shelf = shelves_[i];
    if (shelf.first != nullptr) depot(i).put(shelf.first, shelf.count);
    if (shelf.spare != nullptr) depot(i).put(shelf.spare, shelf.spare_count);
    shelf = Shelf{};
  }
}

}   // namespace duet::runtime::detail
