// rows.inl: kernels over one token's row: norm, quantise, RoPE, SwiGLU, widening. Included once a
// target.
#if defined(DUET_KERNELS_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef DUET_KERNELS_ROWS_INL
#undef DUET_KERNELS_ROWS_INL
#else
#define DUET_KERNELS_ROWS_INL
#endif

#include "device/kernels/half.hpp"
#include "device/kernels/lanes.inl"

#include <bit>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace duet::device {
namespace HWY_NAMESPACE {

/// Widens `elements` (a multiple of 8; of 32 for Q8_0) numbers.
inline void widen(DType dtype, const std::byte* from, std::size_t elements, float* to) {
  switch (dtype) {
    case DType::f32:
      std::memcpy(to, from, elements * sizeof(float));
      return;
    case DType::f16:
      for (std::size_t i = 0; i < elements; i += 8) store8(f16_to_f32(from + 2 * i), to + i);
      return;
    case DType::bf16:
      for (std::size_t i = 0; i < elements; i += 8) store8(bf16_to_f32(from + 2 * i), to + i);
      return;
    default:
      break;
  }
  for (std::size_t b = 0; b < elements / block_elements; ++b, from += block_bytes) {
    std::uint16_t half;
    std::memcpy(&half, from, sizeof half);
    const F8 scale = all8(device::f16_to_f32(half));
    const auto* q = reinterpret_cast<const std::int8_t*>(from + 2);
    for (std::size_t i = 0; i < block_elements; i += 8)
      store8(mul8(i8_to_f32(q + i), scale), to + b * block_elements + i);
  }
}

/// 1 / sqrt(mean(x^2) + epsilon).
HWY_INLINE float norm_factor(const float* x, float epsilon, std::size_t n) {
  F8 sum = all8(0);
  for (std::size_t i = 0; i < n; i += 8) {
    const F8 v = load8(x + i);
    sum = add8(sum, mul8(v, v));
  }
  const float mean = fold8(sum) / static_cast<float>(n);
  const hn::CappedTag<float, 1> one;
  return 1.0F / hn::GetLane(hn::Sqrt(hn::Set(one, mean + epsilon)));
}

inline void rms_norm_f32(const float* x, const float* weight, float epsilon, std::size_t n,
                         float* y) {
  const F8 factor = all8(norm_factor(x, epsilon, n));
  for (std::size_t i = 0; i < n; i += 8)
    store8(mul8(mul8(load8(x + i), factor), load8(weight + i)), y + i);
}

/// The scale d of a block, before it is rounded to F16. NaN and infinity in x make it NaN or
/// infinite: the largest magnitude is found by comparing bit patterns, in which NaN stands above
/// all.
HWY_INLINE float block_scale(const float* x) {
  const FloatTag f;
  const IntTag s;
  auto best = hn::Zero(s);
  for (std::size_t i = 0; i < block_elements; i += part_lanes) {
    const auto bits = hn::BitCast(s, hn::LoadU(f, x + i));
    best = hn::Max(best, hn::And(bits, hn::Set(s, 0x7fffffff)));
  }
  alignas(32) std::int32_t v[part_lanes];
  hn::StoreU(best, s, v);
  std::int32_t top = 0;
  for (const std::int32_t bits : v) top = bits > top ? bits : top;
  return std::bit_cast<float>(top) / 127.0F;
}

HWY_INLINE void quantize_block(const float* x, std::int8_t* q, float* d) {
  const FloatTag f;
  const IntTag s;
  const float scale = block_scale(x);
  *d = device::f16_to_f32(f32_to_f16(scale));
  float inverse = 1.0F / scale;
  // A scale below the normal range rounds to 0 as F16 and so erases the block, whatever its
  // integers.
  if (!(scale >= 0x1p-126F)) inverse = 0;
  const auto factor = hn::Set(f, inverse);
  const auto half = hn::Set(f, 0.5F);
  const auto limit = hn::Set(f, 127.0F);
  const hn::Rebind<std::int8_t, FloatTag> b;
  for (std::size_t i = 0; i < block_elements; i += part_lanes) {
    const auto v = hn::Mul(hn::LoadU(f, x + i), factor);
    const auto magnitude = hn::Abs(v);
    // floor(m + 0.5) would round 0.49999997 up; the remainder m - trunc(m) is exact.
    const auto whole = hn::Trunc(magnitude);
    const auto up = hn::IfThenElseZero(hn::Ge(hn::Sub(magnitude, whole), half), hn::Set(f, 1.0F));
    const auto rounded = hn::Min(hn::Add(whole, up), limit);
    const auto integer = hn::ConvertTo(s, hn::CopySign(rounded, v));
    hn::StoreU(hn::DemoteTo(b, integer), b, q + i);
  }
}

inline void quantize(const float* x, std::size_t n, std::int8_t* q, float* d) {
  for (std::size_t i = 0; i < n; i += block_elements)
    quantize_block(x + i, q + i, d + i / block_elements);
}

inline void rms_norm_q8(const float* x, const float* weight, float epsilon, std::size_t n,
                        std::int8_t* q, float* d) {
  const F8 factor = all8(norm_factor(x, epsilon, n));
  alignas(32) float block[block_elements];
  for (std::size_t i = 0; i < n; i += block_elements) {
    for (std::size_t j = 0; j < block_elements; j += 8)
      store8(mul8(mul8(load8(x + i + j), factor), load8(weight + i + j)), block + j);
    quantize_block(block, q + i, d + i / block_elements);
  }
}

inline void rope(const Rope& rope) {
  const std::size_t half = rope.dims / 2;
  for (std::size_t head = 0; head < rope.heads; ++head) {
    float* x = rope.data + head * rope.head_dim;
    std::size_t i = 0;
    for (; rope.neox && i + 8 <= half; i += 8) {
      const F8 a = load8(x + i), b = load8(x + half + i);
      const F8 c = load8(rope.cosine + i), s = load8(rope.sine + i);
      store8(sub8(mul8(a, c), mul8(b, s)), x + i);
      store8(add8(mul8(a, s), mul8(b, c)), x + half + i);
    }
    for (; i < half; ++i) {
      float& a = rope.neox ? x[i] : x[2 * i];
      float& b = rope.neox ? x[half + i] : x[2 * i + 1];
      const float c = rope.cosine[i], s = rope.sine[i];
      const float turned = a * c - b * s;
      b = a * s + b * c;
      a = turned;
    }
  }
}

inline void narrow_bf16(const float* x, std::size_t n, std::uint16_t* y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = f32_to_bf16(x[i]);
}

/// y = gate / (1 + exp(-gate)) * up. Below -88 the true value is beyond F32's normal range anyway.
inline void swiglu(const float* gate, const float* up, std::size_t n, float* y) {
  const F8 one = all8(1.0F), zero = all8(0.0F);
  for (std::size_t i = 0; i < n; i += 8) {
    const F8 g = load8(gate + i);
    const F8 silu = div8(g, add8(one, exp8(sub8(zero, g))));
    store8(mul8(silu, load8(up + i)), y + i);
  }
}

inline void exponential(const float* x, std::size_t n, float* y) {
  for (std::size_t i = 0; i < n; i += 8) store8(exp8(load8(x + i)), y + i);
}

}   // namespace HWY_NAMESPACE
}   // namespace duet::device
HWY_AFTER_NAMESPACE();
#endif
