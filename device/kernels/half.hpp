// half.hpp: one F16 or BF16 number to and from F32, exact and rounded to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace duet::device {

/// Exact.
[[nodiscard]] inline float f16_to_f32(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t sign = (half & 0x8000U) << 16;
  if (magnitude > 0x7bffU) return std::bit_cast<float>(sign | magnitude << 13 | 0x7f800000U);
  // 2^112 moves the exponent's bias from 15 to 127 and makes subnormals normal.
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

/// Rounds to nearest even; above 65519.99 becomes infinity; NaN stays NaN (quiet).
[[nodiscard]] inline std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {
    // A subnormal half counts units of 2^-24; adding 0.5 lets the F32 adder round to that unit.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000U));
  }
  const std::uint32_t odd = magnitude >> 13 & 1U;
  return static_cast<std::uint16_t>(sign | (magnitude - 0x38000000U + 0xfffU + odd) >> 13);
}

[[nodiscard]] inline float bf16_to_f32(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// Rounds to nearest even; NaN stays NaN (quiet).
[[nodiscard]] inline std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

}   // namespace duet::device
