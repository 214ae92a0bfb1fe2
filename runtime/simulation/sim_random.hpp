// sim_random.hpp: independent streams of random numbers from one seed.
#pragma once

#include "runtime/random.hpp"

#include <cstdint>
#include <string_view>

namespace duet::runtime::simulation {

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). Streams
/// of different names are independent: another draw in one does not shift what the others give. One
/// thread.
class SimRandom final : public Random {
 public:
  SimRandom(std::uint64_t seed, std::string_view stream) noexcept;

  [[nodiscard]] std::uint64_t next() noexcept override;

  /// True with `probability`. No number is drawn if that is 0.
  [[nodiscard]] bool chance(double probability) noexcept {
    return probability > 0 && unit() < probability;
  }

  /// Uniform in [min, max]; min <= max.
  [[nodiscard]] std::uint64_t between(std::uint64_t min, std::uint64_t max) noexcept {
    return min + below(max - min + 1);
  }

  /// In [min, max], each order of magnitude alike; 0 < min <= max.
  [[nodiscard]] double magnitude(double min, double max) noexcept;

 private:
  std::uint64_t state_;
};

/// 64 bits of a text (FNV-1a); the same in every run and on every machine.
[[nodiscard]] std::uint64_t hash_text(std::string_view text) noexcept;

}   // namespace duet::runtime::simulation
