// models.hpp: models for the kernels' tests and benchmarks: demo files and generated ones.
#pragma once

#include "device/kernels/executor.hpp"
#include "device/package/gguf.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace duet::device::test {

/// A model in memory: what lower() and Executable::create() take, and the bytes behind it.
struct TestModel {
  ModelConfig config;
  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
  std::vector<std::vector<std::byte>> bytes;   ///< of generated tensors.
  std::optional<Gguf> file;                    ///< of a demo model.
};

/// NAME-f16.gguf or NAME-q8_0.gguf of tools/demo_models. Throws std::runtime_error.
[[nodiscard]] std::unique_ptr<TestModel> demo_model(const std::string& name);

/// Random weights of the model's shape from `seed`: matrices of `dtype`, norms near 1, small
/// biases.
[[nodiscard]] std::unique_ptr<TestModel> random_model(const ModelConfig& config, DType dtype,
                                                      std::uint64_t seed);

/// qwen2 with bias, one kv head, an odd vocabulary, a width that fills no whole chunk.
[[nodiscard]] ModelConfig odd_config();

[[nodiscard]] KvLayout kv_layout(const TestModel& model, std::uint32_t tokens);

/// Lowers and verifies. Throws std::runtime_error with the error text.
[[nodiscard]] std::shared_ptr<const Executable> make_executable(const TestModel& model,
                                                                GraphKind kind,
                                                                Arithmetic arithmetic,
                                                                std::uint32_t context,
                                                                std::uint32_t cores = 2);

/// A sequence's KV and the two graphs that extend it.
class Sequence {
 public:
  Sequence(const TestModel& model, Arithmetic arithmetic, std::uint32_t context,
           std::uint32_t tile = tile_default, std::uint32_t cores = 2);

  void restart() { past_ = 0; }
  std::span<const float> prefill(std::span<const std::uint32_t> tokens);
  std::span<const float> decode(std::uint32_t token);
  void use(CoreRunner& runner) { runner_ = &runner; }
  [[nodiscard]] std::uint32_t past() const { return past_; }
  [[nodiscard]] std::span<const std::uint64_t> kv() const { return kv_; }

 private:
  std::span<const float> run(const Executable& graph, Executable::Workspace& space,
                             std::span<const std::uint32_t> tokens);

  std::shared_ptr<const Executable> prefill_;
  std::shared_ptr<const Executable> decode_;
  std::unique_ptr<Executable::Workspace> prefill_space_;
  std::unique_ptr<Executable::Workspace> decode_space_;
  std::vector<std::uint64_t> kv_;   ///< aligned for F32.
  std::vector<float> logits_;
  std::uint32_t past_ = 0;
  SerialRunner serial_;
  CoreRunner* runner_ = &serial_;
};

}   // namespace duet::device::test
