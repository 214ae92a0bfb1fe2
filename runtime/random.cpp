// random.cpp: bounded integers from 64 uniform bits.
#include "runtime/random.hpp"

#include "runtime/assert.hpp"

namespace duet::runtime {

std::uint64_t Random::below(std::uint64_t bound) noexcept {
  DUET_ASSERT(bound > 0);
  // Values under 2^64 mod bound would make the small results more likely; each try succeeds with
  // more than one half.
  const std::uint64_t rejected = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t value = next();
    if (value >= rejected) return value % bound;
  }
}

}   // namespace duet::runtime
