// quantize.hpp: weights to Q8_0 by the rounding of `numerics` 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace duet::device {

inline constexpr std::uint64_t q8_block_elements = 32;
// An F16 scale, then 32 signed bytes.
inline constexpr std::uint64_t q8_block_bytes = 34;

/// Blocks of 32: d = max|x| / 127 in F32; q = x · (1 / d) rounded half away from zero, within ±127;
/// 0 where d is 0 or too small for 1 / d. The block stores d as F16, rounded to nearest even.
/// `values` is a multiple of 32 finite elements and `out` has 34 bytes for each 32. False if a
/// scale does not fit F16 (weights above 8.3 million).
[[nodiscard]] bool quantize_q8_0(std::span<const float> values, std::span<std::byte> out);

}   // namespace duet::device
