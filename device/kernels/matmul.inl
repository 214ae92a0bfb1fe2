// matmul.inl: rows of weights times tokens, int8 by blocks and F32. Included once a target.
#if defined(DUET_KERNELS_MATMUL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef DUET_KERNELS_MATMUL_INL
#undef DUET_KERNELS_MATMUL_INL
#else
#define DUET_KERNELS_MATMUL_INL
#endif

#include "device/kernels/half.hpp"
#include "device/kernels/lanes.inl"
#include "device/kernels/rows.inl"

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace duet::device {
namespace HWY_NAMESPACE {

HWY_INLINE void put(const Matmul& m, std::uint32_t row, std::uint32_t token, float value) {
  if (m.bias != nullptr) value += m.bias[row];
  float& out = m.out.data[token * m.out.stride + row];
  out = m.accumulate ? out + value : value;
}

// The sum over a row is: lane j of the eight adds blocks j, j + 8, j + 16, … in that order, each as
// float(exact integer dot) * (weight scale * activation scale); then fold8. How the integers are
// found is free.

#if defined(DUET_LANES_AVX2)

/// acc + the 32 products of a block, four to a lane. |w| is at most 128 and |x| at most 127, so
/// that a pair of products is at most 32512 and vpmaddubsw does not saturate; the sign of w goes to
/// x, which has no -128.
HWY_INLINE __m256i add_products(__m256i acc, __m256i magnitude, __m256i w, __m256i x) {
  const __m256i signed_x = _mm256_sign_epi8(x, w);
  const __m256i pairs = _mm256_maddubs_epi16(magnitude, signed_x);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

HWY_INLINE __m256i load256(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

HWY_INLINE __m256i block_products(const std::byte* w, const std::int8_t* x) {
  const __m256i weights = load256(w + 2);
  return add_products(_mm256_setzero_si256(), _mm256_abs_epi8(weights), weights, load256(x));
}

/// Lanes of a and b folded once: [a0+a2, b0+b2, a1+a3, b1+b3] in each half.
HWY_INLINE __m256i fold_pair(__m256i a, __m256i b) {
  return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}

HWY_INLINE __m256i fold_quad(__m256i ab, __m256i cd) {
  return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

/// Integer dots of `blocks` blocks, one a lane; 0 beyond.
template <int blocks>
HWY_INLINE __m256i block_dots(const std::byte* w, const std::int8_t* x) {
  const auto dot = [&](int j) HWY_ATTR {
    return j < blocks ? block_products(w + j * int{block_bytes}, x + j * int{block_elements})
                      : _mm256_setzero_si256();
  };
  const __m256i low = fold_quad(fold_pair(dot(0), dot(1)), fold_pair(dot(2), dot(3)));
  if constexpr (blocks <= 4) {
    const __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    return _mm256_zextsi128_si256(sum);
  } else {
    const __m256i high = fold_quad(fold_pair(dot(4), dot(5)), fold_pair(dot(6), dot(7)));
    return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                            _mm256_permute2x128_si256(low, high, 0x31));
  }
}

/// Scales of `blocks` blocks, one a lane; 0 beyond. Block j's scale lies at byte 34j, which is word
/// j of the 16 bytes at 32j: one load and one blend a scale.
template <int blocks>
HWY_INLINE __m256 block_scales(const std::byte* w) {
  const auto at = [&](int j) HWY_ATTR {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + 32 * j));
  };
  __m128i half = at(0);
  if constexpr (blocks > 1) half = _mm_blend_epi16(half, at(1), 0x02);
  if constexpr (blocks > 2) half = _mm_blend_epi16(half, at(2), 0x04);
  if constexpr (blocks > 3) half = _mm_blend_epi16(half, at(3), 0x08);
  if constexpr (blocks > 4) half = _mm_blend_epi16(half, at(4), 0x10);
  if constexpr (blocks > 5) half = _mm_blend_epi16(half, at(5), 0x20);
  if constexpr (blocks > 6) half = _mm_blend_epi16(half, at(6), 0x40);
  if constexpr (blocks > 7) half = _mm_blend_epi16(half, at(7), 0x80);
  if constexpr (blocks < 8) half = _mm_blend_epi16(_mm_setzero_si128(), half, (1 << blocks) - 1);
  return _mm256_cvtph_ps(half);
}

template <int blocks>
HWY_INLINE __m256 add_blocks(__m256 sum, const std::byte* w, const std::int8_t* x, const float* d) {
  const __m256 scale = _mm256_mul_ps(block_scales<blocks>(w), _mm256_loadu_ps(d));
  return _mm256_add_ps(sum, _mm256_mul_ps(_mm256_cvtepi32_ps(block_dots<blocks>(w, x)), scale));
}

/// How far ahead of the row in hand weights are fetched: about the latency of memory at full
/// bandwidth.
inline constexpr std::size_t prefetch_bytes = 2048;

/// One row times one token; `tail` = blocks % 8.
template <int tail>
HWY_INLINE float row_dot(const std::byte* w, const std::int8_t* x, const float* d,
                         std::uint32_t chunks) {
  __m256 sum = _mm256_setzero_ps();
  for (std::uint32_t c = 0; c < chunks; ++c) {
    for (std::size_t line = 0; line < 5; ++line)
      _mm_prefetch(reinterpret_cast<const char*>(w + prefetch_bytes + 64 * line), _MM_HINT_T0);
    sum = add_blocks<8>(sum, w, x, d);
    w += 8 * block_bytes;
    x += 8 * block_elements;
    d += 8;
  }
  if constexpr (tail > 0) sum = add_blocks<tail>(sum, w, x, d);
  F8 lanes;
  lanes.part[0].raw = sum;
  return fold8(lanes);
}

#elif defined(DUET_LANES_SSE)

HWY_INLINE __m128i block_products(const std::byte* w, const std::int8_t* x) {
  __m128i sum = _mm_setzero_si128();
  for (int half = 0; half < 2; ++half) {
    const __m128i weights = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + 2 + 16 * half));
    const __m128i inputs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 16 * half));
    // As in the 256-bit form: no pair of products exceeds 32512.
    const __m128i pairs = _mm_maddubs_epi16(_mm_abs_epi8(weights), _mm_sign_epi8(inputs, weights));
    sum = _mm_add_epi32(sum, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
  }
  return sum;
}

HWY_INLINE void block_dots(const std::byte* w, const std::int8_t* x, int blocks, float* dots) {
  for (int j = 0; j < 8; j += 4) {
    __m128i s[4];
    for (int i = 0; i < 4; ++i)
      s[i] = j + i < blocks
                 ? block_products(w + (j + i) * int{block_bytes}, x + (j + i) * int{block_elements})
                 : _mm_setzero_si128();
    const __m128i sums = _mm_hadd_epi32(_mm_hadd_epi32(s[0], s[1]), _mm_hadd_epi32(s[2], s[3]));
    _mm_storeu_ps(dots + j, _mm_cvtepi32_ps(sums));
  }
}

#else

HWY_INLINE void block_dots(const std::byte* w, const std::int8_t* x, int blocks, float* dots) {
  for (int j = 0; j < 8; ++j) {
    std::int32_t sum = 0;
    const auto* q = reinterpret_cast<const std::int8_t*>(w + j * int{block_bytes} + 2);
    for (int i = 0; j < blocks && i < int{block_elements}; ++i)
      sum += q[i] * x[j * int{block_elements} + i];
    dots[j] = static_cast<float>(sum);
  }
}

#endif

#if !defined(DUET_LANES_AVX2)

template <int tail>
HWY_INLINE float row_dot(const std::byte* w, const std::int8_t* x, const float* d,
                         std::uint32_t chunks) {
  F8 sum = all8(0);
  const std::uint32_t steps = chunks + (tail > 0 ? 1 : 0);
  for (std::uint32_t c = 0; c < steps; ++c) {
    const int blocks = c < chunks ? 8 : tail;
    alignas(32) float dots[8];
    alignas(16) std::uint16_t half[8] = {};
    block_dots(w, x, blocks, dots);
    for (int j = 0; j < blocks; ++j)
      std::memcpy(&half[j], w + j * int{block_bytes}, sizeof half[j]);
    const F8 scales = f16_to_f32(reinterpret_cast<const std::byte*>(half));
    sum = add8(sum, mul8(load8(dots), mul8(scales, load8(d))));
    w += 8 * block_bytes;
    x += 8 * block_elements;
    d += 8;
  }
  return fold8(sum);
}

#endif

/// Row by row; with several tokens a row is read from memory once and from the cache after that.
template <int tail>
HWY_INLINE void matmul_rows(const Matmul& m) {
  const std::size_t row_bytes = std::size_t{m.columns} / block_elements * block_bytes;
  const std::uint32_t chunks = m.columns / (block_elements * chunk_blocks);
  for (std::uint32_t row = m.first; row < m.first + m.count; ++row) {
    const std::byte* w = m.weights + row * row_bytes;
    for (std::uint32_t t = 0; t < m.tokens; ++t)
      put(m, row, t,
          row_dot<tail>(w, m.in_q8.q + t * m.in_q8.q_stride, m.in_q8.d + t * m.in_q8.d_stride,
                        chunks));
  }
}

HWY_INLINE void matmul_rows_any(const Matmul& m) {
  switch (m.columns / block_elements % chunk_blocks) {
    case 0:
      return matmul_rows<0>(m);
    case 1:
      return matmul_rows<1>(m);
    case 2:
      return matmul_rows<2>(m);
    case 3:
      return matmul_rows<3>(m);
    case 4:
      return matmul_rows<4>(m);
    case 5:
      return matmul_rows<5>(m);
    case 6:
      return matmul_rows<6>(m);
    default:
      return matmul_rows<7>(m);
  }
}

#if defined(DUET_LANES_AVX2)

// Tiles of tokens: both sides are packed so that a lane holds four products of one block; then the
// eight lanes need no folding at all. The integers, and so the results, are those of row_dot.

inline constexpr std::uint32_t packed_chunk_bytes = 256;   // eight vectors of 32 bytes

/// Vector i of `to` gets in lane j dword i of block j; lanes beyond `blocks` are 0.
HWY_INLINE void pack_chunk(const std::byte* from, std::size_t stride, int blocks, std::byte* to) {
  __m256i r[8];
  for (int j = 0; j < 8; ++j)
    r[j] = j < blocks ? load256(from + j * stride) : _mm256_setzero_si256();
  __m256i a[8];
  for (int j = 0; j < 8; j += 2) {
    a[j] = _mm256_unpacklo_epi32(r[j], r[j + 1]);
    a[j + 1] = _mm256_unpackhi_epi32(r[j], r[j + 1]);
  }
  __m256i b[8];
  for (int j = 0; j < 8; j += 4) {
    b[j] = _mm256_unpacklo_epi64(a[j], a[j + 2]);
    b[j + 1] = _mm256_unpackhi_epi64(a[j], a[j + 2]);
    b[j + 2] = _mm256_unpacklo_epi64(a[j + 1], a[j + 3]);
    b[j + 3] = _mm256_unpackhi_epi64(a[j + 1], a[j + 3]);
  }
  auto* out = reinterpret_cast<__m256i*>(to);
  for (int i = 0; i < 4; ++i) {
    _mm256_store_si256(out + i, _mm256_permute2x128_si256(b[i], b[i + 4], 0x20));
    _mm256_store_si256(out + i + 4, _mm256_permute2x128_si256(b[i], b[i + 4], 0x31));
  }
}

/// Where things lie in a core's scratch.
struct PackedLayout {
  std::uint32_t chunks = 0;
  std::byte* tokens = nullptr;   // [tokens][chunks][256]
  std::byte* rows = nullptr;     // [2][chunks][256]
  float* scales = nullptr;       // [2][chunks][8]
};

template <int rows>
HWY_INLINE void pack_rows(const Matmul& m, std::uint32_t row, const PackedLayout& p) {
  const std::uint32_t total = m.columns / block_elements;
  for (int r = 0; r < rows; ++r) {
    const std::byte* w = m.weights + std::size_t{row + r} * total * block_bytes;
    for (std::uint32_t c = 0; c < p.chunks; ++c) {
      const int blocks = static_cast<int>(std::min(total - 8 * c, 8U));
      const std::size_t slot = std::size_t{p.chunks} * r + c;
      const std::byte* from = w + std::size_t{8 * c} * block_bytes;
      pack_chunk(from + 2, block_bytes, blocks, p.rows + slot * packed_chunk_bytes);
      if (blocks == 8) {
        _mm256_store_ps(p.scales + slot * 8, block_scales<8>(from));
      } else {
        alignas(16) std::uint16_t half[8] = {};
        for (int j = 0; j < blocks; ++j) std::memcpy(&half[j], from + j * block_bytes, 2);
        _mm256_store_ps(p.scales + slot * 8,
                        _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<__m128i*>(half))));
      }
    }
  }
}

template <int rows, int tokens>
HWY_INLINE void packed_block(const Matmul& m, std::uint32_t row, std::uint32_t token,
                             const PackedLayout& p) {
  __m256 sum[rows][tokens];
  for (auto& of_row : sum)
    for (__m256& s : of_row) s = _mm256_setzero_ps();
  const std::size_t token_bytes = std::size_t{p.chunks} * packed_chunk_bytes;
  const std::byte* x = p.tokens + token * token_bytes;
  const float* d = m.in_q8.d + token * m.in_q8.d_stride;
  for (std::uint32_t c = 0; c < p.chunks; ++c) {
    __m256i dots[rows][tokens];
    for (auto& of_row : dots)
      for (__m256i& s : of_row) s = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 8; ++i) {
      __m256i w[rows], magnitude[rows];
      for (int r = 0; r < rows; ++r) {
        w[r] = load256(p.rows + (std::size_t{p.chunks} * r + c) * packed_chunk_bytes + 32 * i);
        magnitude[r] = _mm256_abs_epi8(w[r]);
      }
      for (int t = 0; t < tokens; ++t) {
        const __m256i inputs = load256(x + t * token_bytes + c * packed_chunk_bytes + 32 * i);
        for (int r = 0; r < rows; ++r)
          dots[r][t] = add_products(dots[r][t], magnitude[r], w[r], inputs);
      }
    }
    for (int r = 0; r < rows; ++r) {
      const __m256 scale = _mm256_load_ps(p.scales + (std::size_t{p.chunks} * r + c) * 8);
      for (int t = 0; t < tokens; ++t) {
        const __m256 both = _mm256_mul_ps(scale, _mm256_loadu_ps(d + t * m.in_q8.d_stride + 8 * c));
        sum[r][t] = _mm256_add_ps(sum[r][t], _mm256_mul_ps(_mm256_cvtepi32_ps(dots[r][t]), both));
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int t = 0; t < tokens; ++t) {
      F8 lanes;
      lanes.part[0].raw = sum[r][t];
      put(m, row + r, token + t, fold8(lanes));
    }
  }
}

template <int rows>
HWY_INLINE void packed_rows(const Matmul& m, std::uint32_t row, const PackedLayout& p) {
  pack_rows<rows>(m, row, p);
  std::uint32_t t = 0;
  for (; t + 4 <= m.tokens; t += 4) packed_block<rows, 4>(m, row, t, p);
  for (; t < m.tokens; ++t) packed_block<rows, 1>(m, row, t, p);
}

HWY_INLINE void matmul_packed(const Matmul& m) {
  const std::uint32_t total = m.columns / block_elements;
  PackedLayout p;
  p.chunks = (total + 7) / 8;
  const std::size_t token_bytes = std::size_t{p.chunks} * packed_chunk_bytes;
  p.tokens = m.scratch;
  p.rows = p.tokens + m.tokens * token_bytes;
  p.scales = reinterpret_cast<float*>(p.rows + 2 * token_bytes);
  for (std::uint32_t t = 0; t < m.tokens; ++t) {
    const auto* q = reinterpret_cast<const std::byte*>(m.in_q8.q + t * m.in_q8.q_stride);
    for (std::uint32_t c = 0; c < p.chunks; ++c)
      pack_chunk(q + std::size_t{c} * 256, block_elements,
                 static_cast<int>(std::min(total - 8 * c, 8U)),
                 p.tokens + t * token_bytes + std::size_t{c} * packed_chunk_bytes);
  }
  std::uint32_t row = m.first;
  const std::uint32_t end = m.first + m.count;
  for (; row + 2 <= end; row += 2) packed_rows<2>(m, row, p);
  if (row < end) packed_rows<1>(m, row, p);
}

inline void matmul_q8(const Matmul& m) {
  // Below four tokens packing costs more than it saves.
  if (m.tokens >= 4 && m.count >= 2) return matmul_packed(m);
  matmul_rows_any(m);
}

#else

inline void matmul_q8(const Matmul& m) {
  matmul_rows_any(m);
}

#endif

/// F32: element i adds to lane i % 8, in ascending order; then fold8.
template <int rows>
HWY_INLINE void float_rows(const Matmul& m, std::uint32_t row) {
  const std::size_t row_bytes = m.dtype == DType::f32    ? std::size_t{m.columns} * 4
                                : m.dtype == DType::q8_0 ? std::size_t{m.columns} / 32 * block_bytes
                                                         : std::size_t{m.columns} * 2;
  float* wide = reinterpret_cast<float*>(m.scratch);
  for (int r = 0; r < rows; ++r)
    widen(m.dtype, m.weights + std::size_t{row + r} * row_bytes, m.columns,
          wide + std::size_t{m.columns} * r);
  for (std::uint32_t t = 0; t < m.tokens; ++t) {
    const float* x = m.in_f32.data + t * m.in_f32.stride;
    F8 sum[rows];
    for (F8& s : sum) s = all8(0);
    for (std::uint32_t i = 0; i < m.columns; i += 8) {
      const F8 v = load8(x + i);
      for (int r = 0; r < rows; ++r)
        sum[r] = add8(sum[r], mul8(v, load8(wide + std::size_t{m.columns} * r + i)));
    }
    for (int r = 0; r < rows; ++r) put(m, row + r, t, fold8(sum[r]));
  }
}

inline void matmul_f32(const Matmul& m) {
  std::uint32_t row = m.first;
  const std::uint32_t end = m.first + m.count;
  for (; row + 4 <= end; row += 4) float_rows<4>(m, row);
  for (; row < end; ++row) float_rows<1>(m, row);
}

}   // namespace HWY_NAMESPACE
}   // namespace duet::device
HWY_AFTER_NAMESPACE();
#endif
