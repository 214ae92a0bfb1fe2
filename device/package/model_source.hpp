// model_source.hpp: what a GGUF file says about a model: hyper-parameters and tensors, checked
// against each other.
#pragma once

#include "device/package/dequantize.hpp"
#include "device/package/gguf.hpp"
#include "device/package/manifest.hpp"
#include "device/program/message.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

namespace model_limits {
inline constexpr std::uint64_t layers_max = 512;
inline constexpr std::uint64_t heads_max = 1024;
inline constexpr std::uint64_t head_dim_max = 1024;
inline constexpr std::uint64_t embedding_max = 1U << 16;
inline constexpr std::uint64_t feed_forward_max = 1U << 20;
inline constexpr std::uint64_t vocabulary_max = 1U << 22;
inline constexpr std::uint64_t context_max = 1U << 22;
}   // namespace model_limits

/// A tensor as it lies in the model file. `data` lives as long as the Gguf (or its bytes).
struct SourceTensor {
  std::string name;
  WeightType type = WeightType::f32;
  std::vector<std::uint64_t> shape;   ///< outermost first: [rows, columns] or [elements].
  std::span<const std::byte> data;
};

struct ModelSource {
  ModelConfig config;
  /// In a fixed order: token_embd, output_norm, output (if not tied), then block by block.
  std::vector<SourceTensor> tensors;
};

/// A tensor that a model of `config` must have.
struct TensorSpec {
  std::string name;
  std::vector<std::uint64_t> shape;   ///< one entry: norm or bias; two: matrix.
};

/// All tensors of a model of `config`, in ModelSource's order. The names are GGUF's.
[[nodiscard]] std::vector<TensorSpec> expected_tensors(const ModelConfig& config);

/// Checks ranges and divisibility of the hyper-parameters; `where` begins the sentence.
[[nodiscard]] Result<void> check_config(const ModelConfig& config, const std::string& where);

/// Reads architecture llama, qwen2 or qwen3 with llama.cpp's defaults for absent keys. Matrices are
/// F32, F16, BF16, Q8_0, Q6_K, Q4_K or Q4_0, vectors F32, F16 or BF16. Refuses other architectures
/// and types, rope scaling, experts, missing, misshaped and unexpected tensors. Does not read the
/// weights themselves.
[[nodiscard]] Result<ModelSource> read_model_source(const Gguf& gguf);

/// Refuses NaN and infinity in weights or block scales, naming the tensor and the element. Reads
/// every weight once.
[[nodiscard]] Result<void> check_weights(const SourceTensor& tensor, const std::string& file);
[[nodiscard]] Result<void> check_weights(const ModelSource& source, const std::string& file);

/// "F32", "F16", "BF16", "Q8_0", "I32".
[[nodiscard]] const char* dtype_name(DType dtype);

/// Bytes of `elements` elements; for Q8_0 a multiple of 32 elements.
[[nodiscard]] std::uint64_t dtype_bytes(DType dtype, std::uint64_t elements);

}   // namespace duet::device
