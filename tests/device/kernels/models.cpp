// models.cpp: models for the kernels' tests and benchmarks: demo files and generated ones.
#include "tests/device/kernels/models.hpp"

#include "device/kernels/half.hpp"
#include "device/package/model_source.hpp"
#include "device/program/lower.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

namespace duet::device::test {
namespace {

void add_view(TestModel& model, const std::string& name, DType dtype,
              const std::vector<std::uint64_t>& shape, std::span<const std::byte> data) {
  Tensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.bytes = data.size();
  model.tensors.push_back(tensor);
  model.views.push_back({dtype, shape.size() == 2 ? shape[0] : 1, shape.back(), data.data()});
}

std::vector<std::byte> random_matrix(std::mt19937_64& random, DType dtype, std::uint64_t rows,
                                     std::uint64_t columns) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  const float spread = 2.0F / std::sqrt(static_cast<float>(columns));
  std::vector<std::byte> bytes(dtype_bytes(dtype, rows * columns));
  std::byte* to = bytes.data();
  const auto put = [&](auto value) {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  };
  for (std::uint64_t i = 0; i < rows * columns; ++i) {
    if (dtype == DType::q8_0) {
      if (i % 32 == 0) put(f32_to_f16(spread / 127 * (1.5F + uniform(random))));
      // -128 never comes out of quantising but may stand in a file.
      put(static_cast<std::int8_t>(static_cast<int>(random() % 256) - 128));
      continue;
    }
    const float value = spread * uniform(random);
    if (dtype == DType::f32) put(value);
    if (dtype == DType::f16) put(f32_to_f16(value));
    if (dtype == DType::bf16) put(f32_to_bf16(value));
  }
  return bytes;
}

std::vector<std::byte> random_vector(std::mt19937_64& random, float center, std::uint64_t n) {
  std::uniform_real_distribution<float> uniform(-0.2F, 0.2F);
  std::vector<std::byte> bytes(n * sizeof(float));
  for (std::uint64_t i = 0; i < n; ++i) {
    const float value = center + uniform(random);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

}   // namespace

std::unique_ptr<TestModel> demo_model(const std::string& name) {
  auto model = std::make_unique<TestModel>();
  model->file =
      Gguf::open(std::string(DUET_SOURCE_DIR "/tools/demo_models/") + name + ".gguf").value();
  const ModelSource source = read_model_source(*model->file).value();
  model->config = source.config;
  for (const SourceTensor& t : source.tensors)
    add_view(*model, t.name, dtype_of(t.type).value(), t.shape, t.data);
  return model;
}

std::unique_ptr<TestModel> random_model(const ModelConfig& config, DType dtype,
                                        std::uint64_t seed) {
  auto model = std::make_unique<TestModel>();
  model->config = config;
  std::mt19937_64 random(seed);
  for (const TensorSpec& spec : expected_tensors(config)) {
    const bool matrix = spec.shape.size() == 2;
    const bool bias = spec.name.ends_with(".bias");
    model->bytes.push_back(matrix ? random_matrix(random, dtype, spec.shape[0], spec.shape[1])
                                  : random_vector(random, bias ? 0.0F : 1.0F, spec.shape[0]));
    add_view(*model, spec.name, matrix ? dtype : DType::f32, spec.shape, model->bytes.back());
  }
  return model;
}

ModelConfig odd_config() {
  ModelConfig c;
  c.architecture = "qwen2";
  c.layers = 3;
  c.embedding = 160;
  c.feed_forward = 352;
  c.heads = 5;
  c.kv_heads = 1;
  c.head_dim = 32;
  c.rope_dims = 32;
  c.vocabulary = 517;
  c.context = 1024;
  c.norm_epsilon = 1e-6F;
  c.rope_base = 1e6F;
  c.rope_neox = true;
  c.qkv_bias = true;
  c.tied_output = true;
  return c;
}

KvLayout kv_layout(const TestModel& model, std::uint32_t tokens) {
  return {model.config.layers, tokens, model.config.kv_heads, model.config.head_dim};
}

std::shared_ptr<const Executable> make_executable(const TestModel& model, GraphKind kind,
                                                  Arithmetic arithmetic, std::uint32_t context,
                                                  std::uint32_t cores) {
  auto programs =
      lower(model.config, model.tensors,
            kind == GraphKind::prefill ? "test.prefill" : "test.decode", kind, 0, cores);
  if (programs.has_error()) throw std::runtime_error(programs.error());
  auto made =
      Executable::create(std::move(*programs), model.views, kv_layout(model, context), arithmetic);
  if (made.has_error()) throw std::runtime_error(made.error());
  return *made;
}

Sequence::Sequence(const TestModel& model, Arithmetic arithmetic, std::uint32_t context,
                   std::uint32_t tile, std::uint32_t cores)
    : prefill_(make_executable(model, GraphKind::prefill, arithmetic, context, cores)),
      decode_(make_executable(model, GraphKind::decode, arithmetic, context, cores)),
      prefill_space_(prefill_->make_workspace(tile)),
      decode_space_(decode_->make_workspace(1)),
      kv_((kv_layout(model, context).bytes(arithmetic) + 7) / 8),
      logits_(prefill_->vocabulary()) {}

std::span<const float> Sequence::prefill(std::span<const std::uint32_t> tokens) {
  return run(*prefill_, *prefill_space_, tokens);
}

std::span<const float> Sequence::decode(std::uint32_t token) {
  return run(*decode_, *decode_space_, {&token, 1});
}

std::span<const float> Sequence::run(const Executable& graph, Executable::Workspace& space,
                                     std::span<const std::uint32_t> tokens) {
  graph.run(tokens, past_, std::as_writable_bytes(std::span(kv_)), logits_, space, *runner_);
  past_ += static_cast<std::uint32_t>(tokens.size());
  return logits_;
}

}   // namespace duet::device::test
