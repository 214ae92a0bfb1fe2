// lanes.inl: eight virtual float lanes on any SIMD target. Included once a target, so it has no
// #pragma once.
#if defined(DUET_KERNELS_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef DUET_KERNELS_LANES_INL
#undef DUET_KERNELS_LANES_INL
#else
#define DUET_KERNELS_LANES_INL
#endif

#include "device/kernels/kernels.hpp"

#include <hwy/highway.h>
#include <cstring>

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

// True where 256-bit vectors hold the eight lanes; else two of 128 bits, or eight single ones.
#undef DUET_LANES_AVX2
#undef DUET_LANES_SSE
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define DUET_LANES_AVX2 1
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
#define DUET_LANES_SSE 1
#endif

HWY_BEFORE_NAMESPACE();
namespace duet::device {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 8>;
using IntTag = hn::RebindToSigned<FloatTag>;
using WordTag = hn::RebindToUnsigned<FloatTag>;
using FloatVector = hn::Vec<FloatTag>;
inline constexpr std::size_t part_lanes = hn::MaxLanes(FloatTag());
inline constexpr std::size_t parts = 8 / part_lanes;
static_assert(parts * part_lanes == 8);

/// Lane i of the eight is lane i % part_lanes of part i / part_lanes.
struct F8 {
  FloatVector part[parts];
};

#define DUET_EACH_PART(i) for (std::size_t i = 0; i < parts; ++i)

HWY_INLINE F8 load8(const float* from) {
  F8 r;
  DUET_EACH_PART(i) r.part[i] = hn::LoadU(FloatTag(), from + i * part_lanes);
  return r;
}

HWY_INLINE void store8(F8 a, float* to) {
  DUET_EACH_PART(i) hn::StoreU(a.part[i], FloatTag(), to + i * part_lanes);
}

HWY_INLINE F8 all8(float value) {
  F8 r;
  DUET_EACH_PART(i) r.part[i] = hn::Set(FloatTag(), value);
  return r;
}

HWY_INLINE F8 add8(F8 a, F8 b) {
  DUET_EACH_PART(i) a.part[i] = hn::Add(a.part[i], b.part[i]);
  return a;
}

HWY_INLINE F8 sub8(F8 a, F8 b) {
  DUET_EACH_PART(i) a.part[i] = hn::Sub(a.part[i], b.part[i]);
  return a;
}

HWY_INLINE F8 mul8(F8 a, F8 b) {
  DUET_EACH_PART(i) a.part[i] = hn::Mul(a.part[i], b.part[i]);
  return a;
}

HWY_INLINE F8 div8(F8 a, F8 b) {
  DUET_EACH_PART(i) a.part[i] = hn::Div(a.part[i], b.part[i]);
  return a;
}

HWY_INLINE F8 max8(F8 a, F8 b) {
  DUET_EACH_PART(i) a.part[i] = hn::Max(a.part[i], b.part[i]);
  return a;
}

/// ((0+1)+(2+3)) + ((4+5)+(6+7)): the one way in which lanes are folded.
HWY_INLINE float fold8(F8 a) {
  alignas(32) float v[8];
  store8(a, v);
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

HWY_INLINE float highest8(F8 a) {
  alignas(32) float v[8];
  store8(a, v);
  float best = v[0];
  for (std::size_t i = 1; i < 8; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

/// Lane i of the result is fold8(a[i]).
HWY_INLINE F8 fold8x8(const F8 (&a)[8]) {
  F8 r;
#if defined(DUET_LANES_AVX2)
  __m256 s[4];
  for (std::size_t i = 0; i < 4; ++i)
    s[i] = _mm256_hadd_ps(a[2 * i].part[0].raw, a[2 * i + 1].part[0].raw);
  const __m256 p = _mm256_hadd_ps(s[0], s[1]);
  const __m256 q = _mm256_hadd_ps(s[2], s[3]);
  r.part[0].raw =
      _mm256_add_ps(_mm256_permute2f128_ps(p, q, 0x20), _mm256_permute2f128_ps(p, q, 0x31));
#elif defined(DUET_LANES_SSE)
  for (std::size_t h = 0; h < 2; ++h) {
    __m128 sum[2];
    for (std::size_t part = 0; part < 2; ++part)
      sum[part] =
          _mm_hadd_ps(_mm_hadd_ps(a[4 * h].part[part].raw, a[4 * h + 1].part[part].raw),
                      _mm_hadd_ps(a[4 * h + 2].part[part].raw, a[4 * h + 3].part[part].raw));
    r.part[h].raw = _mm_add_ps(sum[0], sum[1]);
  }
#else
  alignas(32) float v[8];
  for (std::size_t i = 0; i < 8; ++i) v[i] = fold8(a[i]);
  r = load8(v);
#endif
  return r;
}

/// exp(x) for x <= 88, by x = n ln 2 + r and a Taylor polynomial of degree 7; 0 below -87. NaN
/// stays NaN.
HWY_INLINE F8 exp8(F8 x) {
  const FloatTag f;
  const IntTag n32;
  F8 r;
  DUET_EACH_PART(i) {
    const FloatVector v = x.part[i];
    const FloatVector low = hn::Set(f, -87.0F);
    const FloatVector y = hn::Min(hn::Max(v, low), hn::Set(f, 88.0F));
    const FloatVector n = hn::Round(hn::Mul(y, hn::Set(f, 1.44269504F)));
    // ln 2 in two parts; the first has 9 bits, so that n times it is exact.
    FloatVector t = hn::Sub(y, hn::Mul(n, hn::Set(f, 0.693359375F)));
    t = hn::Sub(t, hn::Mul(n, hn::Set(f, -2.12194440e-4F)));
    FloatVector p = hn::Set(f, 1.0F / 5040);
    p = hn::Add(hn::Mul(p, t), hn::Set(f, 1.0F / 720));
    p = hn::Add(hn::Mul(p, t), hn::Set(f, 1.0F / 120));
    p = hn::Add(hn::Mul(p, t), hn::Set(f, 1.0F / 24));
    p = hn::Add(hn::Mul(p, t), hn::Set(f, 1.0F / 6));
    p = hn::Add(hn::Mul(p, t), hn::Set(f, 0.5F));
    p = hn::Add(hn::Mul(p, t), hn::Set(f, 1.0F));
    p = hn::Add(hn::Mul(p, t), hn::Set(f, 1.0F));
    const auto power = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(n32, n), hn::Set(n32, 127)));
    p = hn::Mul(p, hn::BitCast(f, power));
    p = hn::IfThenElse(hn::Lt(v, low), hn::Zero(f), p);
    r.part[i] = hn::IfThenElse(hn::Eq(v, v), p, v);
  }
  return r;
}

/// F16 to F32, exact for every value, subnormals, infinities and NaN among them.
HWY_INLINE F8 f16_to_f32(const std::byte* from) {
  const FloatTag f;
  const WordTag u;
  const hn::Rebind<std::uint16_t, FloatTag> h;
  alignas(16) std::uint16_t bits[8];
  std::memcpy(bits, from, sizeof bits);
  F8 r;
  DUET_EACH_PART(i) {
    const auto w = hn::PromoteTo(u, hn::LoadU(h, bits + i * part_lanes));
    const auto magnitude = hn::And(w, hn::Set(u, 0x7fffU));
    const auto sign = hn::ShiftLeft<16>(hn::And(w, hn::Set(u, 0x8000U)));
    // 2^112 moves the exponent's bias from 15 to 127 and makes subnormals normal.
    const auto finite =
        hn::Mul(hn::BitCast(f, hn::ShiftLeft<13>(magnitude)), hn::Set(f, 5.192296858534828e33F));
    const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(u, 0x7f800000U));
    const IntTag s;
    const auto is_special = hn::Gt(hn::BitCast(s, magnitude), hn::Set(s, 0x7bff));
    const auto value =
        hn::IfThenElse(hn::MaskFromVec(hn::BitCast(f, hn::VecFromMask(s, is_special))),
                       hn::BitCast(f, special), finite);
    r.part[i] = hn::Or(value, hn::BitCast(f, sign));
  }
  return r;
}

HWY_INLINE F8 bf16_to_f32(const std::byte* from) {
  const FloatTag f;
  const WordTag u;
  const hn::Rebind<std::uint16_t, FloatTag> h;
  alignas(16) std::uint16_t bits[8];
  std::memcpy(bits, from, sizeof bits);
  F8 r;
  DUET_EACH_PART(i)
  r.part[i] =
      hn::BitCast(f, hn::ShiftLeft<16>(hn::PromoteTo(u, hn::LoadU(h, bits + i * part_lanes))));
  return r;
}

/// Eight int8 to F32.
HWY_INLINE F8 i8_to_f32(const std::int8_t* from) {
  const FloatTag f;
  const IntTag s;
  const hn::Rebind<std::int8_t, FloatTag> b;
  F8 r;
  DUET_EACH_PART(i)
  r.part[i] = hn::ConvertTo(f, hn::PromoteTo(s, hn::LoadU(b, from + i * part_lanes)));
  return r;
}

}   // namespace HWY_NAMESPACE
}   // namespace duet::device
HWY_AFTER_NAMESPACE();
#endif
