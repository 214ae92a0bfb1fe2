// pool.hpp: memory for nodes, frames and actors from size-classed freelists of the thread.
#pragma once

#include "runtime/limits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace duet::runtime::detail {

struct FreeNode {
  FreeNode* next;
  // On a shelf the node after the next one, or another that was; in the depot, of a chain's first
  // node, the next chain.
  FreeNode* ahead;
  std::uint32_t count;   // in the depot, nodes of the chain
};

/// A thread's freelist of one size class.
struct Shelf {
  FreeNode* first = nullptr;
  FreeNode* spare =
      nullptr;   // one more chain, so that a thread at the border does not go to and fro
  std::uint32_t count = 0;
  std::uint32_t count_max = 0;   // zero until first used, and again once the thread ends
  std::uint32_t spare_count = 0;
};

/// Threads trade whole chains through a depot, so that memory which always flows from one thread to
/// another is neither hoarded nor allocated anew. What the freelists own stays with the process.
class Pool {
 public:
  static constexpr std::size_t step = 16;   // bytes between two size classes
  static constexpr std::size_t classes = limits::pooled_bytes_max / step;
  static constexpr std::size_t unpooled = classes;   // the class of what is larger

  // Inlined by force, so that the size class of a known type is a constant.
  [[nodiscard, gnu::always_inline]] static void* take(std::size_t size_class) {
    Shelf& shelf = shelves_[size_class];
    if (shelf.first == nullptr) [[unlikely]]
      refill(size_class);
    FreeNode* const free = shelf.first;
    shelf.first = free->next;
    // Those taken next lie wherever they were freed: they come while this one is filled.
    __builtin_prefetch(free->ahead, 1);
    --shelf.count;
    return free;
  }

  [[gnu::always_inline]] static void give(void* memory, std::size_t size_class) noexcept {
    Shelf& shelf = shelves_[size_class];
    if (shelf.count >= shelf.count_max) [[unlikely]] {
      spill(size_class, memory);
      return;
    }
    FreeNode* const first = shelf.first;
    auto* const node = new (memory) FreeNode;
    node->next = first;
    node->ahead = first == nullptr ? nullptr : first->next;
    shelf.first = node;
    ++shelf.count;
  }

  [[nodiscard]] static constexpr std::size_t class_of(std::size_t bytes) noexcept {
    return std::min((std::max(bytes, sizeof(FreeNode)) + step - 1) / step - 1, unpooled);
  }

 private:
  friend struct PoolFlush;

  static void refill(std::size_t size_class);
  static void spill(std::size_t size_class, void* memory) noexcept;
  static void open(Shelf& shelf, std::size_t size_class);
  static void flush() noexcept;

  // The last one is of what is larger: always full, so that each give() goes to spill().
  static inline constinit thread_local std::array<Shelf, classes + 1> shelves_{};
  static inline constinit thread_local bool ended_ = false;
};

/// At least `bytes`, aligned for any ordinary type. Under sanitizers plain operator new, so that
/// they see the end of each life.
[[nodiscard, gnu::always_inline]] inline void* allocate(std::size_t bytes) {
#if !defined(DUET_SANITIZED)
  if (bytes <= limits::pooled_bytes_max) return Pool::take(Pool::class_of(bytes));
#endif
  return ::operator new(bytes);
}

[[gnu::always_inline]] inline void deallocate(void* memory,
                                              [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(DUET_SANITIZED)
  ::operator delete(memory);
#else
  Pool::give(memory, Pool::class_of(bytes));
#endif
}

template <typename T, typename... Args>
[[nodiscard, gnu::always_inline]] inline T* create(Args&&... args) {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  void* const memory = allocate(sizeof(T));
  try {
    return new (memory) T(std::forward<Args>(args)...);
  } catch (...) {
    deallocate(memory, sizeof(T));
    throw;
  }
}

/// `T` is the very type that was created.
template <typename T>
void destroy(T* object) noexcept {
  object->~T();
  deallocate(object, sizeof(T));
}

/// For Asio's handlers and for shared states.
template <typename T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <typename U>
  PoolAllocator(const PoolAllocator<U>&) noexcept {}
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(detail::allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    detail::deallocate(memory, count * sizeof(T));
  }
  template <typename U>
  bool operator==(const PoolAllocator<U>&) const noexcept {
    return true;
  }
};

}   // namespace duet::runtime::detail
