// dequantize.cpp: values of weights, block by block.
#include "device/package/dequantize.hpp"

#include "device/kernels/half.hpp"
#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

namespace duet::device {
namespace {

constexpr std::uint64_t k_group = 32;   // elements of a Q4_K block that share scale and minimum

float half_at(std::span<const std::byte> data, std::uint64_t at) {
  return f16_to_f32(load_le<std::uint16_t>(data, at));
}
std::uint32_t byte_at(std::span<const std::byte> data, std::uint64_t at) {
  return std::to_integer<std::uint32_t>(data[at]);
}

/// The low nibbles are the first half of the block, the high ones the second.
void expand_q4_0(std::span<const std::byte> block, std::span<float> out) {
  const float d = half_at(block, 0);
  for (std::uint64_t i = 0; i < 16; ++i) {
    const std::uint32_t pair = byte_at(block, 2 + i);
    out[i] = d * static_cast<float>(static_cast<std::int32_t>(pair & 15U) - 8);
    out[i + 16] = d * static_cast<float>(static_cast<std::int32_t>(pair >> 4U) - 8);
  }
}

void expand_q8_0(std::span<const std::byte> block, std::span<float> out) {
  const float d = half_at(block, 0);
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
}

/// Scale and minimum of one group of a Q4_K block, from its 12 bytes: the first four groups have
/// theirs in the low 6 bits of bytes 0-3 and 4-7; the others have the low 4 bits in the nibbles of
/// bytes 8-11 and the high 2 bits in the tops of bytes 0-3 and 4-7.
struct GroupScale {
  std::uint32_t scale;
  std::uint32_t minimum;
};
GroupScale group_scale(std::span<const std::byte> packed, std::uint64_t group) {
  if (group < 4) return {byte_at(packed, group) & 63U, byte_at(packed, group + 4) & 63U};
  const std::uint32_t low = byte_at(packed, group + 4);
  return {(low & 15U) | byte_at(packed, group - 4) >> 6U << 4U,
          low >> 4U | byte_at(packed, group) >> 6U << 4U};
}

/// Groups come in pairs that share 32 bytes: low nibbles are the first of the pair.
void expand_q4_k(std::span<const std::byte> block, std::span<float> out) {
  const float d = half_at(block, 0);
  const float dmin = half_at(block, 2);
  const auto packed = block.subspan(4, 12);
  for (std::uint64_t group = 0; group < 8; ++group) {
    const auto quants = block.subspan(16 + group / 2 * k_group, k_group);
    const auto [scale, minimum] = group_scale(packed, group);
    const float step = d * static_cast<float>(scale);
    const float base = dmin * static_cast<float>(minimum);
    const std::uint32_t shift = group % 2 == 0 ? 0 : 4;
    for (std::uint64_t i = 0; i < k_group; ++i) {
      const std::uint32_t q = byte_at(quants, i) >> shift & 15U;
      out[group * k_group + i] = step * static_cast<float>(q) - base;
    }
  }
}

/// Each half of 128 elements has 64 bytes of low bits and 32 of high bits. Of its four runs of 32
/// elements, run r takes low bytes 32·(r mod 2) on, nibble r / 2, and bits 2r of the high bytes.
void expand_q6_k(std::span<const std::byte> block, std::span<float> out) {
  const float d = half_at(block, 208);
  for (std::uint64_t run = 0; run < 8; ++run) {
    const std::uint64_t half = run / 4;
    const std::uint64_t part = run % 4;
    const auto low = block.subspan(half * 64 + part % 2 * 32, 32);
    const auto high = block.subspan(128 + half * 32, 32);
    const std::uint64_t low_shift = part / 2 * 4;
    for (std::uint64_t i = 0; i < 32; ++i) {
      const std::uint32_t q =
          (byte_at(low, i) >> low_shift & 15U) | (byte_at(high, i) >> (2 * part) & 3U) << 4U;
      const auto scale = static_cast<std::int8_t>(block[192 + run * 2 + i / 16]);
      out[run * 32 + i] =
          d * static_cast<float>(scale) * static_cast<float>(static_cast<std::int32_t>(q) - 32);
    }
  }
}

void expand_block(WeightType type, std::span<const std::byte> block, std::span<float> out) {
  switch (type) {
    case WeightType::f32:
      out[0] = load_le<float>(block, 0);
      return;
    case WeightType::f16:
      out[0] = half_at(block, 0);
      return;
    case WeightType::bf16:
      out[0] = bf16_to_f32(load_le<std::uint16_t>(block, 0));
      return;
    case WeightType::q4_0:
      return expand_q4_0(block, out);
    case WeightType::q8_0:
      return expand_q8_0(block, out);
    case WeightType::q4_k:
      return expand_q4_k(block, out);
    case WeightType::q6_k:
      return expand_q6_k(block, out);
  }
  DUET_UNREACHABLE();
}

/// True if the IEEE number at `at` with these exponent bits all set is infinity or NaN.
template <typename Word>
bool not_finite_at(std::span<const std::byte> data, std::uint64_t at, Word exponent) {
  return (load_le<Word>(data, at) & exponent) == exponent;
}
constexpr std::uint16_t f16_exponent = 0x7c00U;

template <typename Bad>
std::optional<std::uint64_t> first_block(std::span<const std::byte> data, std::uint64_t stride,
                                         Bad bad) {
  for (std::uint64_t at = 0; at + stride <= data.size(); at += stride) {
    if (bad(at)) return at / stride;
  }
  return std::nullopt;
}

}   // namespace

std::optional<WeightType> weight_type(std::uint32_t ggml_number) {
  const auto type = static_cast<WeightType>(ggml_number);
  switch (type) {
    case WeightType::f32:
    case WeightType::f16:
    case WeightType::q4_0:
    case WeightType::q8_0:
    case WeightType::q4_k:
    case WeightType::q6_k:
    case WeightType::bf16:
      return type;
  }
  return std::nullopt;
}

std::optional<WeightType> weight_type(DType dtype) {
  return weight_type(static_cast<std::uint32_t>(dtype));
}

std::optional<DType> dtype_of(WeightType type) {
  switch (type) {
    case WeightType::f32:
    case WeightType::f16:
    case WeightType::q8_0:
    case WeightType::bf16:
      return static_cast<DType>(type);
    case WeightType::q4_0:
    case WeightType::q4_k:
    case WeightType::q6_k:
      break;
  }
  return std::nullopt;
}

const GgmlType& layout_of(WeightType type) {
  const GgmlType* layout = find_ggml_type(static_cast<std::uint32_t>(type));
  DUET_ASSERT(layout != nullptr, static_cast<std::uint32_t>(type));
  return *layout;
}

std::uint64_t weight_bytes(WeightType type, std::uint64_t elements) {
  const GgmlType& layout = layout_of(type);
  DUET_ASSERT(elements % layout.block_elements == 0, elements);
  return elements / layout.block_elements * layout.block_bytes;
}

void dequantize(WeightType type, std::span<const std::byte> data, std::span<float> out) {
  const GgmlType& layout = layout_of(type);
  const std::uint64_t blocks = data.size() / layout.block_bytes;
  DUET_ASSERT(data.size() % layout.block_bytes == 0, data.size());
  DUET_ASSERT(out.size() == blocks * layout.block_elements, data.size(), out.size());
  for (std::uint64_t i = 0; i < blocks; ++i) {
    expand_block(type, data.subspan(i * layout.block_bytes, layout.block_bytes),
                 out.subspan(i * layout.block_elements, layout.block_elements));
  }
}

std::optional<std::uint64_t> first_not_finite(WeightType type, std::span<const std::byte> data) {
  const std::uint64_t stride = layout_of(type).block_bytes;
  const auto half = [&](std::uint64_t at) { return not_finite_at(data, at, f16_exponent); };
  switch (type) {
    case WeightType::f32:
      return first_block(data, stride, [&](std::uint64_t at) {
        return not_finite_at<std::uint32_t>(data, at, 0x7f800000U);
      });
    case WeightType::bf16:
      return first_block(data, stride, [&](std::uint64_t at) {
        return not_finite_at<std::uint16_t>(data, at, 0x7f80U);
      });
    case WeightType::f16:
    case WeightType::q4_0:
    case WeightType::q8_0:
      return first_block(data, stride, half);
    case WeightType::q4_k:
      return first_block(data, stride, [&](std::uint64_t at) { return half(at) || half(at + 2); });
    case WeightType::q6_k:
      return first_block(data, stride, [&](std::uint64_t at) { return half(at + 208); });
  }
  DUET_UNREACHABLE();
}

}   // namespace duet::device
