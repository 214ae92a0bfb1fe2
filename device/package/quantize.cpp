// quantize.cpp: weights to Q8_0.
#include "device/package/quantize.hpp"

#include "device/kernels/half.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace duet::device {
namespace {

/// Round half away from zero without libm: exact for |x| below 2^22.
std::int32_t round_away(float x) {
  const float magnitude = std::fabs(x);
  auto whole = static_cast<std::int32_t>(magnitude);
  if (magnitude - static_cast<float>(whole) >= 0.5F) ++whole;
  return x < 0 ? -whole : whole;
}

bool quantize_block(const float* values, std::byte* out) {
  float largest = 0;
  for (std::uint64_t i = 0; i < q8_block_elements; ++i) {
    largest = std::max(largest, std::fabs(values[i]));
  }
  const float scale = largest / 127.0F;
  const std::uint16_t stored = f32_to_f16(scale);
  if ((stored & 0x7c00U) == 0x7c00U) return false;
  const float inverse = scale == 0 ? 0 : 1.0F / scale;
  const float factor = std::isfinite(inverse) ? inverse : 0;
  std::memcpy(out, &stored, sizeof stored);
  for (std::uint64_t i = 0; i < q8_block_elements; ++i) {
    const std::int32_t q = std::clamp(round_away(values[i] * factor), -127, 127);
    out[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(q));
  }
  return true;
}

}   // namespace

bool quantize_q8_0(std::span<const float> values, std::span<std::byte> out) {
  DUET_ASSERT(values.size() % q8_block_elements == 0, values.size());
  const std::uint64_t blocks = values.size() / q8_block_elements;
  DUET_ASSERT(out.size() == blocks * q8_block_bytes, out.size(), blocks);
  for (std::uint64_t block = 0; block < blocks; ++block) {
    if (!quantize_block(values.data() + block * q8_block_elements,
                        out.data() + block * q8_block_bytes)) {
      return false;
    }
  }
  return true;
}

}   // namespace duet::device
