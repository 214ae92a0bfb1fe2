// real_random.cpp: getrandom(2), a block at a time.
#include "runtime/real_random.hpp"

#include "runtime/assert.hpp"

#include <sys/random.h>

#include <cerrno>

namespace duet::runtime {

std::uint64_t RealRandom::next() noexcept {
  const std::lock_guard lock(mutex_);
  if (used_ == block_.size()) {
    ssize_t size = 0;
    do {
      size = ::getrandom(block_.data(), sizeof block_, 0);
    } while (size < 0 && errno == EINTR);
    DUET_ASSERT(size == static_cast<ssize_t>(sizeof block_), size);
    used_ = 0;
  }
  return block_[used_++];
}

}   // namespace duet::runtime
