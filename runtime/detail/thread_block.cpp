// thread_block.cpp: numbers for threads.
#include "runtime/detail/thread_block.hpp"

#include "runtime/short_lock.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace duet::runtime::detail {
namespace {

/// Which numbers are taken. A thread that ends and the next one with its number meet in the lock,
/// so the one sees all that the other has written.
struct Indices {
  ShortLock lock;
  std::vector<bool> taken;

  std::uint32_t take() {
    const std::lock_guard guard(lock);
    const auto free = std::find(taken.begin(), taken.end(), false);
    const auto index = static_cast<std::uint32_t>(free - taken.begin());
    if (free == taken.end()) {
      taken.push_back(true);
    } else {
      *free = true;
    }
    return index;
  }
  void give(std::uint32_t index) noexcept {
    const std::lock_guard guard(lock);
    taken[index] = false;
  }
};

Indices& indices() {
  static Indices* const them = new Indices;   // never destroyed: threads may outlive static objects
  return *them;
}

struct Index {
  Index() : value(indices().take()) {}
  ~Index() { indices().give(value); }
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;
  const std::uint32_t value;
};

}   // namespace

std::uint32_t thread_index() noexcept {
  static thread_local const Index index;
  return index.value;
}

}   // namespace duet::runtime::detail
