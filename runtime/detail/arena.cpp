// arena.cpp: slots in slabs, arenas handed on from system to system.
#include "runtime/detail/arena.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <mutex>
#include <new>

namespace duet::runtime::detail {
namespace {

struct Arenas {
  ShortLock lock;
  std::vector<Arena*> all;    // keeps them reachable
  std::vector<Arena*> free;   // newest last
};

Arenas& arenas() {
  static Arenas* const them = new Arenas;   // never destroyed: references outlive static objects
  return *them;
}

}   // namespace

Arena& Arena::acquire(Core& core, boost::asio::execution_context& context) {
  Arenas& them = arenas();
  Arena* arena = nullptr;
  {
    const std::lock_guard guard(them.lock);
    if (!them.free.empty()) {
      arena = them.free.back();
      them.free.pop_back();
    }
  }
  if (arena == nullptr) {
    arena = new Arena;
    const std::lock_guard guard(them.lock);
    them.all.push_back(arena);
    them.free.reserve(them.all.size());
  }
  arena->core_.store(&core, std::memory_order_relaxed);
  arena->context_.store(&context, std::memory_order_relaxed);
  arena->gate.open();
  return *arena;
}

void Arena::release(Arena& arena) noexcept {
  DUET_ASSERT(arena.free_count_ == arena.slabs_.size() * slab_slots, arena.free_count_);
  arena.core_.store(nullptr, std::memory_order_relaxed);
  {
    const std::lock_guard guard(arena.blocks_lock_);
    for (const auto& block : arena.blocks_) {
      if (block == nullptr) continue;
      for (auto& count : block->handled) count.store(0, std::memory_order_relaxed);
    }
  }
  Arenas& them = arenas();
  const std::lock_guard guard(them.lock);
  them.free.push_back(&arena);
}

ThreadBlock& Arena::block_of_thread() {
  const std::uint32_t index = thread_index();
  const std::lock_guard guard(blocks_lock_);
  if (blocks_.size() <= index) blocks_.resize(index + 1);
  if (blocks_[index] == nullptr) blocks_[index] = std::make_unique<ThreadBlock>();
  return *blocks_[index];
}

Slot& Arena::take_slot() {
  const std::lock_guard guard(lock_);
  if (free_ == nullptr) {
    if (slabs_.size() == slabs_.capacity()) {   // growing by doubling keeps a spawn O(1)
      slabs_.reserve(std::max<std::size_t>(8, 2 * slabs_.size()));
    }
    auto* const memory = static_cast<std::byte*>(
        ::operator new (slab_slots * sizeof(Slot), std::align_val_t{alignof(Slot)}));
    for (std::uint32_t i = slab_slots; i > 0; --i) {
      free_ = new (memory + (i - 1) * sizeof(Slot)) Slot(*this, free_);
    }
    slabs_.push_back(free_);
    free_count_ += slab_slots;
  }
  --free_count_;
  Slot* const slot = free_;
  free_ = slot->next_free();
  return *slot;
}

void Arena::give_slot(Slot& slot) noexcept {
  const std::lock_guard guard(lock_);
  slot.set_next_free(free_);
  free_ = &slot;
  ++free_count_;
}

std::vector<Slot*> Arena::slots() const {
  std::vector<Slot*> all;
  const std::lock_guard guard(lock_);
  all.reserve(slabs_.size() * slab_slots);
  for (Slot* const slab : slabs_) {
    for (std::uint32_t i = 0; i < slab_slots; ++i) all.push_back(slab + i);
  }
  return all;
}

}   // namespace duet::runtime::detail
