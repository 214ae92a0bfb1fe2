// duet_bench_decode.cpp: how fast transformer inference runs here, against the memory's bandwidth.
#include "tools/duet_bench_decode.hpp"

#include "device/kernels/executor.hpp"
#include "device/package/model_source.hpp"
#include "device/program/lower.hpp"
#include "tools/duet_bench_memory.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>

namespace duet::tools {
namespace {

using device::Arithmetic;
using device::DType;
using device::Executable;
using device::GraphKind;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Core 0 on the calling thread, core 1 on one of its own.
class TwoThreads final : public device::CoreRunner {
 public:
  TwoThreads() : thread_([this] { loop(); }) {}
  ~TwoThreads() override {
    body_ = nullptr;
    start();
    thread_.join();
  }
  void run_cores(void (*body)(void* context, std::uint32_t core), void* context) override {
    body_ = body;
    context_ = context;
    start();
    body(context, 0);
    while (done_.load(std::memory_order_acquire) != asked_.load()) std::this_thread::yield();
  }
  [[nodiscard]] bool parallel() const override { return true; }

 private:
  void start() {
    asked_.fetch_add(1, std::memory_order_release);
    asked_.notify_one();
  }
  void loop() {
    for (std::uint32_t seen = 0;;) {
      asked_.wait(seen, std::memory_order_acquire);
      seen = asked_.load(std::memory_order_acquire);
      if (body_ == nullptr) return;
      body_(context_, 1);
      done_.store(seen, std::memory_order_release);
    }
  }

  void (*body_)(void*, std::uint32_t) = nullptr;
  void* context_ = nullptr;
  std::atomic<std::uint32_t> asked_{0};
  std::atomic<std::uint32_t> done_{0};
  std::thread thread_;
};

/// A model ready to run: both graphs, one sequence.
struct Model {
  std::string name;
  device::ModelConfig config;
  std::vector<device::Tensor> tensors;
  std::vector<device::TensorView> views;
  std::unique_ptr<HugeBlock> memory;
  std::shared_ptr<const Executable> prefill;
  std::shared_ptr<const Executable> decode;
  std::unique_ptr<Executable::Workspace> prefill_space;
  std::unique_ptr<Executable::Workspace> decode_space;
  std::vector<std::uint64_t> kv;
  std::vector<float> logits;

  /// What one decode reads of the weights: every tensor once. A table that is also the output
  /// matrix is read whole; one that is not gives one row.
  [[nodiscard]] double bytes_per_token() const {
    double sum = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (config.tied_output || tensors[i].name != "token_embd.weight")
        sum += static_cast<double>(tensors[i].bytes);
    return sum;
  }
};

constexpr std::uint32_t context = 1024;

std::shared_ptr<const Executable> compile(const Model& model, GraphKind kind) {
  auto programs = device::lower(model.config, model.tensors, model.name, kind, 0, 2);
  if (programs.has_error()) throw std::runtime_error(programs.error());
  const device::KvLayout kv{model.config.layers, context, model.config.kv_heads,
                            model.config.head_dim};
  auto made = Executable::create(std::move(*programs), model.views, kv, Arithmetic::w8a8);
  if (made.has_error()) throw std::runtime_error(made.error());
  return *made;
}

void finish(Model& model) {
  model.prefill = compile(model, GraphKind::prefill);
  model.decode = compile(model, GraphKind::decode);
  model.prefill_space = model.prefill->make_workspace(device::tile_default);
  model.decode_space = model.decode->make_workspace(1);
  const device::KvLayout kv{model.config.layers, context, model.config.kv_heads,
                            model.config.head_dim};
  model.kv.resize(kv.bytes(Arithmetic::w8a8) / sizeof(std::uint64_t));
  model.logits.resize(model.decode->vocabulary());
}

/// The shape of a common qwen2 model of 494 million weights.
device::ModelConfig half_billion() {
  device::ModelConfig c;
  c.architecture = "qwen2";
  c.layers = 24;
  c.embedding = 896;
  c.feed_forward = 4864;
  c.heads = 14;
  c.kv_heads = 2;
  c.head_dim = 64;
  c.rope_dims = 64;
  c.vocabulary = 151936;
  c.context = context;
  c.norm_epsilon = 1e-6F;
  c.rope_base = 1e6F;
  c.rope_neox = true;
  c.qkv_bias = true;
  c.tied_output = true;
  return c;
}

/// Lays the tensors out in one block as a package does: each at a multiple of 64 bytes.
std::unique_ptr<Model> generated_model() {
  auto model = std::make_unique<Model>();
  model->name = "generated-0.5b-q8_0";
  model->config = half_billion();
  std::uint64_t size = 0;
  for (const device::TensorSpec& spec : device::expected_tensors(model->config)) {
    device::Tensor tensor;
    tensor.name = spec.name;
    tensor.dtype = spec.shape.size() == 2 ? DType::q8_0 : DType::f32;
    tensor.shape = spec.shape;
    tensor.offset = size;
    const std::uint64_t elements = std::accumulate(spec.shape.begin(), spec.shape.end(),
                                                   std::uint64_t{1}, std::multiplies<>());
    tensor.bytes = device::dtype_bytes(tensor.dtype, elements);
    size += (tensor.bytes + 63) / 64 * 64;
    model->tensors.push_back(std::move(tensor));
  }
  model->memory = std::make_unique<HugeBlock>(size);
  fill_random(model->memory->bytes(), 0x5eed);
  for (const device::Tensor& tensor : model->tensors) {
    std::byte* data = model->memory->bytes().data() + tensor.offset;
    if (tensor.dtype == DType::q8_0) {
      // Integers stay random; each scale becomes an F16 near 2^-12, as in a trained model.
      constexpr std::uint16_t scale = 0x0c00;
      for (std::uint64_t at = 0; at < tensor.bytes; at += 34)
        std::memcpy(data + at, &scale, sizeof scale);
    } else {
      const float value = tensor.name.ends_with(".bias") ? 0.0F : 1.0F;
      for (std::uint64_t at = 0; at < tensor.bytes; at += sizeof value)
        std::memcpy(data + at, &value, sizeof value);
    }
    model->views.push_back(
        {tensor.dtype, tensor.shape.size() == 2 ? tensor.shape[0] : 1, tensor.shape.back(), data});
  }
  finish(*model);
  return model;
}

/// Copies a GGUF's tensors into a block of their own.
std::unique_ptr<Model> file_model(const std::string& path) {
  const device::Gguf file = device::Gguf::open(path).value();
  const device::ModelSource source = device::read_model_source(file).value();
  auto model = std::make_unique<Model>();
  model->name = std::filesystem::path(path).stem().string();
  model->config = source.config;
  std::uint64_t size = 0;
  for (const device::SourceTensor& t : source.tensors) size += (t.data.size() + 63) / 64 * 64;
  model->memory = std::make_unique<HugeBlock>(size);
  std::uint64_t offset = 0;
  for (const device::SourceTensor& t : source.tensors) {
    std::byte* data = model->memory->bytes().data() + offset;
    std::memcpy(data, t.data.data(), t.data.size());
    const auto dtype = device::dtype_of(t.type);
    if (!dtype) throw std::runtime_error(path + ": kernels do not read its weights' type; pack it");
    model->tensors.push_back({t.name, *dtype, t.shape, offset, t.data.size()});
    model->views.push_back({*dtype, t.shape.size() == 2 ? t.shape[0] : 1, t.shape.back(), data});
    offset += (t.data.size() + 63) / 64 * 64;
  }
  finish(*model);
  return model;
}

/// Tokens a second of `count` decodes from position `past` on.
double decode_rate(Model& model, device::CoreRunner& runner, std::uint32_t past,
                   std::uint32_t count) {
  const auto kv = std::as_writable_bytes(std::span(model.kv));
  const double time = seconds([&] {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t token = (i * 7919) % model.config.vocabulary;
      model.decode->run({&token, 1}, past + i, kv, model.logits, *model.decode_space, runner);
    }
  });
  return count / time;
}

double prefill_rate(Model& model, device::CoreRunner& runner, std::uint32_t count) {
  std::vector<std::uint32_t> tokens(count);
  for (std::uint32_t i = 0; i < count; ++i) tokens[i] = (i * 7919) % model.config.vocabulary;
  const auto kv = std::as_writable_bytes(std::span(model.kv));
  return count / seconds([&] {
           model.prefill->run(tokens, 0, kv, model.logits, *model.prefill_space, runner);
         });
}

/// GB/s of one sum over the block, on as many threads as compute uses.
double read_rate(const HugeBlock& block, std::uint32_t threads) {
  std::atomic<std::uint64_t> total{0};
  const std::size_t part = block.bytes().size() / threads;
  const double time = seconds([&] {
    std::vector<std::thread> others;
    for (std::uint32_t i = 1; i < threads; ++i)
      others.emplace_back([&, i] { total += sum_words(block.bytes().subspan(i * part, part)); });
    total += sum_words(block.bytes().first(part));
    for (std::thread& other : others) other.join();
  });
  // The sum must be used, or the compiler may leave it out.
  if (total == 1) std::cerr << "unlikely sum\n";
  return static_cast<double>(part * threads) / time / 1e9;
}

}   // namespace

std::vector<BenchResult> run_decode_bench(const DecodeBench& bench) {
  device::SerialRunner one;
  std::unique_ptr<TwoThreads> two;
  if (bench.threads == 2) two = std::make_unique<TwoThreads>();
  device::CoreRunner& runner = two ? static_cast<device::CoreRunner&>(*two) : one;
  const std::string suffix = bench.threads == 2 ? ", 2 threads" : ", 1 thread";

  BenchResult read{"read bandwidth, sum over 1 GiB" + suffix, "GB/s", {}};
  std::vector<BenchResult> results;
  {
    const HugeBlock block(std::size_t{1} << 30);
    fill_random(block.bytes(), 42);
    const std::unique_ptr<Model> model = generated_model();
    BenchResult decode{model->name + " decode" + suffix, "tokens/s", {}};
    BenchResult weights{model->name + " decode, weights read" + suffix, "GB/s", {}};
    BenchResult prefill{model->name + " prefill of 256" + suffix, "tokens/s", {}};
    decode_rate(*model, runner, 0, 4);   // warm-up: page faults, caches, clock
    for (std::uint32_t round = 0; round < bench.rounds; ++round) {
      read.runs.push_back(read_rate(block, bench.threads));
      decode.runs.push_back(decode_rate(*model, runner, 0, 24));
      weights.runs.push_back(decode.runs.back() * model->bytes_per_token() / 1e9);
      prefill.runs.push_back(prefill_rate(*model, runner, 256));
    }
    weights.peer = read.max();
    results = {std::move(read), std::move(decode), std::move(weights), std::move(prefill)};
  }
  for (const std::string& path : bench.models) {
    const std::unique_ptr<Model> model = file_model(path);
    BenchResult decode{model->name + " decode" + suffix, "tokens/s", {}};
    BenchResult prefill{model->name + " prefill of 256" + suffix, "tokens/s", {}};
    decode_rate(*model, runner, 0, 100);
    for (std::uint32_t round = 0; round < bench.rounds; ++round) {
      decode.runs.push_back(decode_rate(*model, runner, 0, 400));
      prefill.runs.push_back(prefill_rate(*model, runner, 256));
    }
    results.push_back(std::move(decode));
    results.push_back(std::move(prefill));
  }
  return results;
}

}   // namespace duet::tools
