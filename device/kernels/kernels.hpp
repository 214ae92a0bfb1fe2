// kernels.hpp: the arithmetic of one SIMD target as a table of plain functions; for executor.cpp
// and its tests.
//
// Every function adds floats in the order that docs/numerics.md gives, over eight virtual lanes,
// without fused multiply-add: all targets give the same bits. None allocates, throws or keeps
// state. Pointers need the alignment of their type only. Sizes are checked by the caller
// (verify.hpp).
#pragma once

#include "device/package/manifest.hpp"

#include <cstddef>
#include <cstdint>

namespace duet::device {

inline constexpr std::uint32_t block_elements =
    32;   ///< one scale for so many weights or activations.
inline constexpr std::uint32_t block_bytes = 34;   ///< GGUF's Q8_0: an F16 scale, then 32 int8.
inline constexpr std::uint32_t chunk_blocks = 8;   ///< blocks that fill the eight lanes once.
inline constexpr std::uint32_t chunk_positions =
    64;   ///< positions that attention folds in at a time.

/// Rows of quantised activations: token t has its int8 at q + t*q_stride and its scales at d +
/// t*d_stride. The scales are f16(d) widened to F32; a row of them is padded with zeros to a
/// multiple of chunk_blocks.
struct Q8Rows {
  std::int8_t* q = nullptr;
  float* d = nullptr;
  std::size_t q_stride = 0;
  std::size_t d_stride = 0;
};

/// Rows of floats: token t at data + t*stride.
struct F32Rows {
  float* data = nullptr;
  std::size_t stride = 0;
};

/// out[t][row] (= or +=) dot(weights[row], in[t]) + bias[row], rows [first, first + count), tokens
/// [0, tokens).
struct Matmul {
  DType dtype = DType::q8_0;            ///< the integer path takes q8_0 only.
  const std::byte* weights = nullptr;   ///< row 0 of the whole tensor.
  const float* bias = nullptr;          ///< row 0's, or null.
  std::uint32_t columns = 0;            ///< a multiple of 32.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t tokens = 0;
  bool accumulate = false;
  Q8Rows in_q8;
  F32Rows in_f32;
  F32Rows out;
  std::byte* scratch = nullptr;   ///< matmul_scratch_bytes(), 64-byte aligned, one a core.
};

/// Scratch of one core: packed activations of `tokens` tokens and a few widened or packed rows of
/// weights.
[[nodiscard]] std::size_t matmul_scratch_bytes(std::uint32_t columns, std::uint32_t tokens);

/// Query heads [first, first + count) of `tokens` tokens at positions past, past + 1, …
struct Attention {
  F32Rows in;   ///< queries, [heads][head_dim] a token.
  F32Rows out;
  const std::byte* keys = nullptr;   ///< [positions][kv_heads][head_dim], BF16 or F32.
  const std::byte* values = nullptr;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;   ///< a multiple of 8.
  std::uint32_t group = 0;      ///< query heads a kv head.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t tokens = 0;
  std::uint32_t past = 0;         ///< position of token 0.
  std::byte* scratch = nullptr;   ///< attention_scratch_bytes(), 64-byte aligned, one a core.
};

[[nodiscard]] std::size_t attention_scratch_bytes(std::uint32_t head_dim, std::uint32_t group,
                                                  std::uint32_t tokens);

/// Rotates `heads` heads at `data`: cosine and sine hold `dims` / 2 values of the token's position.
struct Rope {
  float* data = nullptr;
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t dims = 0;
  bool neox = false;
  const float* cosine = nullptr;
  const float* sine = nullptr;
};

struct Kernels {
  void (*widen)(DType dtype, const std::byte* from, std::size_t elements, float* to);
  void (*rms_norm_f32)(const float* x, const float* weight, float epsilon, std::size_t n, float* y);
  void (*rms_norm_q8)(const float* x, const float* weight, float epsilon, std::size_t n,
                      std::int8_t* q, float* d);
  void (*quantize)(const float* x, std::size_t n, std::int8_t* q, float* d);
  void (*rope)(const Rope& rope);
  void (*narrow_bf16)(const float* x, std::size_t n, std::uint16_t* y);
  void (*swiglu)(const float* gate, const float* up, std::size_t n, float* y);
  void (*exponential)(const float* x, std::size_t n, float* y);   ///< for tests: exp of x <= 88.
  void (*matmul_q8)(const Matmul& matmul);
  void (*matmul_f32)(const Matmul& matmul);
  void (*attention_bf16)(const Attention& attention);
  void (*attention_f32)(const Attention& attention);
};

/// The table of the target that dispatch chooses now (see force_simd_target).
[[nodiscard]] const Kernels& kernels();

}   // namespace duet::device
