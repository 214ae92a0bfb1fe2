// random.hpp: the seam through which randomness comes.
#pragma once

#include <cstdint>

namespace duet::runtime {

/// Implementations: RealRandom from the kernel; the simulator's stream of one seed.
class Random {
 public:
  virtual ~Random() = default;

  /// 64 uniform bits. Any thread.
  [[nodiscard]] virtual std::uint64_t next() noexcept = 0;

  /// Uniform in [0, bound), without bias; bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] double unit() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }
};

}   // namespace duet::runtime
