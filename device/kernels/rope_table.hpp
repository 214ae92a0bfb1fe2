// rope_table.hpp: cosines and sines of rotary positions, computed once, in double, without libm.
#pragma once

#include <cstdint>
#include <vector>

namespace duet::device {

/// Cosine and sine of position * base^(-2i/dims) for i in [0, dims/2), rounded from double to F32.
/// The angle is within 1e-15 relative, the value within 1e-10 absolute below 2^20 positions
/// (measured in the tests), so that at most one F32 in some thousands differs from the correctly
/// rounded one.
struct RopeTable {
  std::uint32_t dims = 0;
  float base = 0;
  std::vector<float> cosine;   ///< [positions][dims/2]
  std::vector<float> sine;
};

/// `dims` even, `base` > 1. Throws std::bad_alloc.
[[nodiscard]] RopeTable make_rope_table(std::uint32_t positions, std::uint32_t dims, float base);

/// x > 0, normal; 2^x for |x| < 1000; sine and cosine for |x| < 2^21. For make_rope_table and its
/// tests.
[[nodiscard]] double own_log2(double x);
[[nodiscard]] double own_exp2(double x);
void own_sincos(double x, double& sine, double& cosine);

}   // namespace duet::device
