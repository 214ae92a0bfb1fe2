// attention.inl: causal attention over a sequence's keys and values, folded in chunk by chunk.
// Included once a target.
#if defined(DUET_KERNELS_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef DUET_KERNELS_ATTENTION_INL
#undef DUET_KERNELS_ATTENTION_INL
#else
#define DUET_KERNELS_ATTENTION_INL
#endif

#include "device/kernels/lanes.inl"

#include <algorithm>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace duet::device {
namespace HWY_NAMESPACE {

/// Copies positions [from, from + n) of one kv head, widened, to [chunk_positions][head_dim]
/// floats.
template <bool bf16>
HWY_INLINE void gather_chunk(const Attention& a, const std::byte* base, std::uint32_t kv_head,
                             std::uint32_t from, std::uint32_t n, float* to) {
  constexpr std::size_t element = bf16 ? 2 : 4;
  const std::size_t row = std::size_t{a.kv_heads} * a.head_dim * element;
  const std::byte* source = base + from * row + std::size_t{kv_head} * a.head_dim * element;
  for (std::uint32_t p = 0; p < n; ++p, source += row, to += a.head_dim) {
    if constexpr (bf16) {
      for (std::uint32_t i = 0; i < a.head_dim; i += 8) store8(bf16_to_f32(source + 2 * i), to + i);
    } else {
      std::memcpy(to, source, std::size_t{a.head_dim} * sizeof(float));
    }
  }
}

/// Scores of positions [0, n) of a chunk, padded with -infinity to a multiple of 8; returns the
/// highest.
HWY_INLINE float chunk_scores(const float* query, const float* keys, std::uint32_t head_dim,
                              std::uint32_t n, float scale, float* scores) {
  const F8 factor = all8(scale);
  F8 highest = all8(-std::numeric_limits<float>::infinity());
  for (std::uint32_t p = 0; p < n; p += 8) {
    F8 sum[8];
    for (F8& s : sum) s = all8(0);
    for (std::uint32_t i = 0; i < head_dim; i += 8) {
      const F8 q = load8(query + i);
      for (std::size_t j = 0; j < 8; ++j)
        sum[j] = add8(sum[j], mul8(q, load8(keys + (p + j) * std::size_t{head_dim} + i)));
    }
    store8(mul8(fold8x8(sum), factor), scores + p);
    for (std::uint32_t j = n - p; j < 8; ++j)
      scores[p + j] = -std::numeric_limits<float>::infinity();
    highest = max8(highest, load8(scores + p));
  }
  return highest8(highest);
}

/// out = out*alpha + sum over p of weights[p]*values[p], positions in ascending order.
template <std::size_t vectors>
HWY_INLINE void mix_columns(const float* values, std::uint32_t head_dim, std::uint32_t n,
                            const float* weights, F8 alpha, float* out) {
  F8 sum[vectors];
  for (std::size_t v = 0; v < vectors; ++v) sum[v] = mul8(load8(out + 8 * v), alpha);
  for (std::uint32_t p = 0; p < n; ++p) {
    const F8 weight = all8(weights[p]);
    for (std::size_t v = 0; v < vectors; ++v)
      sum[v] = add8(sum[v], mul8(weight, load8(values + p * std::size_t{head_dim} + 8 * v)));
  }
  for (std::size_t v = 0; v < vectors; ++v) store8(sum[v], out + 8 * v);
}

/// Folds positions [0, n) of a chunk into one head's running maximum, sum and output.
HWY_INLINE void fold_chunk(const float* query, const float* keys, const float* values,
                           std::uint32_t head_dim, std::uint32_t n, float scale, float* maximum,
                           float* total, float* out) {
  alignas(32) float weights[chunk_positions];
  const float highest = chunk_scores(query, keys, head_dim, n, scale, weights);
  const float top = highest > *maximum ? highest : *maximum;
  alignas(32) float shrink[8];
  store8(exp8(all8(*maximum - top)), shrink);
  const F8 peak = all8(top);
  F8 sum = all8(0);
  for (std::uint32_t p = 0; p < n; p += 8) {
    const F8 weight = exp8(sub8(load8(weights + p), peak));
    store8(weight, weights + p);
    sum = add8(sum, weight);
  }
  *maximum = top;
  *total = *total * shrink[0] + fold8(sum);
  const F8 alpha = all8(shrink[0]);
  std::uint32_t i = 0;
  for (; i + 32 <= head_dim; i += 32)
    mix_columns<4>(values + i, head_dim, n, weights, alpha, out + i);
  for (; i < head_dim; i += 8) mix_columns<1>(values + i, head_dim, n, weights, alpha, out + i);
}

/// Query heads [first, last) share kv head `kv_head`.
template <bool bf16>
HWY_INLINE void attend_group(const Attention& a, std::uint32_t kv_head, std::uint32_t first,
                             std::uint32_t last) {
  const std::size_t chunk_floats = std::size_t{chunk_positions} * a.head_dim;
  float* keys = reinterpret_cast<float*>(a.scratch);
  float* values = keys + chunk_floats;
  float* maximum = values + chunk_floats;
  const std::uint32_t heads = last - first;
  float* total = maximum + std::size_t{a.tokens} * heads;
  const hn::CappedTag<float, 1> one;
  const float scale = 1.0F / hn::GetLane(hn::Sqrt(hn::Set(one, static_cast<float>(a.head_dim))));
  const auto out_of = [&](std::uint32_t t, std::uint32_t h) {
    return a.out.data + t * a.out.stride + std::size_t{first + h} * a.head_dim;
  };

  for (std::uint32_t t = 0; t < a.tokens; ++t) {
    for (std::uint32_t h = 0; h < heads; ++h) {
      maximum[t * heads + h] = -std::numeric_limits<float>::infinity();
      total[t * heads + h] = 0;
      std::memset(out_of(t, h), 0, a.head_dim * sizeof(float));
    }
  }
  const std::uint32_t end = a.past + a.tokens;
  // Chunks begin at multiples of chunk_positions of the sequence, whatever the tile.
  for (std::uint32_t from = 0; from < end; from += chunk_positions) {
    const std::uint32_t filled = std::min(chunk_positions, end - from);
    gather_chunk<bf16>(a, a.keys, kv_head, from, filled, keys);
    gather_chunk<bf16>(a, a.values, kv_head, from, filled, values);
    for (std::uint32_t t = from > a.past ? from - a.past : 0; t < a.tokens; ++t) {
      const std::uint32_t n = std::min(chunk_positions, a.past + t + 1 - from);
      for (std::uint32_t h = 0; h < heads; ++h)
        fold_chunk(a.in.data + t * a.in.stride + std::size_t{first + h} * a.head_dim, keys, values,
                   a.head_dim, n, scale, maximum + t * heads + h, total + t * heads + h,
                   out_of(t, h));
    }
  }
  for (std::uint32_t t = 0; t < a.tokens; ++t) {
    for (std::uint32_t h = 0; h < heads; ++h) {
      const F8 sum = all8(total[t * heads + h]);
      float* out = out_of(t, h);
      for (std::uint32_t i = 0; i < a.head_dim; i += 8) store8(div8(load8(out + i), sum), out + i);
    }
  }
}

template <bool bf16>
HWY_INLINE void attend(const Attention& a) {
  const std::uint32_t end = a.first + a.count;
  for (std::uint32_t head = a.first; head < end;) {
    const std::uint32_t kv_head = head / a.group;
    const std::uint32_t last = std::min(end, (kv_head + 1) * a.group);
    attend_group<bf16>(a, kv_head, head, last);
    head = last;
  }
}

inline void attention_bf16(const Attention& a) {
  attend<true>(a);
}
inline void attention_f32(const Attention& a) {
  attend<false>(a);
}

}   // namespace HWY_NAMESPACE
}   // namespace duet::device
HWY_AFTER_NAMESPACE();
#endif
