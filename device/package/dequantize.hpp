// dequantize.hpp: the element types that weights may have in a model file, and their values in F32.
//
// Source of the block layouts: the ggml project's description of its quantised types (ggml-common.h
// and the GGUF specification): which bytes hold scales and quants, and the formula of an element.
#pragma once

#include "device/package/gguf.hpp"
#include "device/package/manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace duet::device {

/// The types of weights that are read; the numbers are ggml's.
enum class WeightType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,   ///< 32 elements: F16 d, 16 bytes of two 4-bit q: d · (q − 8).
  q8_0 = 8,   ///< 32 elements: F16 d, 32 signed bytes q: d · q.
  /// 256 elements: F16 d and dmin, 8 scales s and 8 minima m of 6 bits in 12 bytes, 128 bytes of
  /// two 4-bit q; of the group of 32 that an element is in: d · s · q − dmin · m.
  q4_k = 12,
  /// 256 elements: 128 bytes of the low 4 bits of q, 64 bytes of its high 2 bits, 16 signed bytes
  /// s, one a group of 16, F16 d: d · s · (q − 32).
  q6_k = 14,
  bf16 = 30,
};

/// Nothing if weights of this ggml type are not read.
[[nodiscard]] std::optional<WeightType> weight_type(std::uint32_t ggml_number);
/// The same type in a model file; nothing for I32.
[[nodiscard]] std::optional<WeightType> weight_type(DType dtype);
/// The same type in a package; nothing for Q4_0, Q4_K and Q6_K, which kernels do not read.
[[nodiscard]] std::optional<DType> dtype_of(WeightType type);

/// Name and block of the type.
[[nodiscard]] const GgmlType& layout_of(WeightType type);
/// Bytes of `elements` elements, a multiple of the block's.
[[nodiscard]] std::uint64_t weight_bytes(WeightType type, std::uint64_t elements);

/// Every element as F32, in order. Exact but for Q4_K, whose difference of two exact products is
/// rounded once to nearest even, as ggml's is. `data` holds whole blocks and `out` as many elements
/// as they do. Scales that are not finite give elements that are not: see first_not_finite().
void dequantize(WeightType type, std::span<const std::byte> data, std::span<float> out);

/// The first element (F32, F16, BF16) or block (the others, by its F16 scales) that is NaN or
/// infinite.
[[nodiscard]] std::optional<std::uint64_t> first_not_finite(WeightType type,
                                                            std::span<const std::byte> data);

}   // namespace duet::device
