// reference.hpp: `numerics: 1` in plain scalar loops; what docs/numerics.md says, and nothing else.
//
// Written without the kernels' headers. The functions named *_exact state the order of additions
// and must be met bit for bit; the others are in double and must be met closely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace duet::device::test::reference {

/// A row of activations: int8 and the F16 scale of each 32, widened.
struct Quantized {
  std::vector<std::int8_t> q;
  std::vector<float> d;
};

/// F16 bits to a number and back (to nearest, ties to even), by arithmetic on the value.
[[nodiscard]] double half_value(std::uint16_t bits);
[[nodiscard]] std::uint16_t half_bits(float value);
/// BF16 to nearest, ties to even, by searching both neighbours.
[[nodiscard]] std::uint16_t brain_bits(float value);

[[nodiscard]] Quantized quantize_exact(const std::vector<float>& x);
/// One Q8_0 row (34 bytes a block) times one row of activations.
[[nodiscard]] float q8_dot_exact(const std::byte* row, const Quantized& x);
[[nodiscard]] float f32_dot_exact(const std::vector<float>& row, const std::vector<float>& x);

[[nodiscard]] std::vector<double> rms_norm(const std::vector<float>& x,
                                           const std::vector<float>& weight, float epsilon);
/// Rotates one head at `position`.
[[nodiscard]] std::vector<double> rope(const std::vector<float>& head, std::size_t dims,
                                       double base, std::size_t position, bool neox);
/// One query over `positions` keys and values, each [positions][dim].
[[nodiscard]] std::vector<double> attention(const std::vector<float>& query,
                                            const std::vector<std::vector<float>>& keys,
                                            const std::vector<std::vector<float>>& values);

}   // namespace duet::device::test::reference
