// model_source.cpp: reads hyper-parameters and tensors of llama, qwen2 and qwen3 models from GGUF.
#include "device/package/model_source.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace duet::device {
namespace {

constexpr std::uint64_t block_elements = 32;   // of Q8_0 and of activations
constexpr std::uint64_t q8_block_bytes = 34;

/// Reads the keys of one architecture; keeps the first error.
class ConfigReader {
 public:
  explicit ConfigReader(const Gguf& gguf) : gguf_(gguf) {}

  Result<ModelConfig> run() {
    const auto architecture = gguf_.get_string("general.architecture");
    if (architecture.has_error()) return architecture.error();
    if (*architecture != "llama" && *architecture != "qwen2" && *architecture != "qwen3") {
      return failure(gguf_.name(), ": architecture ", in_quotes(*architecture),
                     " is not supported; llama, qwen2 and qwen3 are");
    }
    config_.architecture = std::string(*architecture);
    config_.rope_neox = config_.architecture != "llama";
    config_.qk_norm = config_.architecture == "qwen3";
    config_.qkv_bias = config_.architecture == "qwen2";
    read_sizes();
    read_attention();
    read_rope();
    read_vocabulary();
    refuse_unsupported();
    if (!error_.message.empty()) return error_;
    const auto sound = check_config(config_, gguf_.name());
    if (sound.has_error()) return sound.error();
    return std::move(config_);
  }

 private:
  [[nodiscard]] std::string key(std::string_view suffix) const {
    return config_.architecture + "." + std::string(suffix);
  }
  void keep(Error error) {
    if (error_.message.empty()) error_ = std::move(error);
  }

  std::uint32_t number(std::string_view suffix, std::optional<std::uint64_t> fallback = {}) {
    const auto value = gguf_.get_unsigned(key(suffix), fallback);
    if (value.has_error()) {
      keep(value.error());
      return 0;
    }
    if (*value > 0xffffffffU) {
      keep(failure(gguf_.name(), ": metadata key ", in_quotes(key(suffix)),
                   " is too large: ", *value));
      return 0;
    }
    return static_cast<std::uint32_t>(*value);
  }
  double real(std::string_view suffix, std::optional<double> fallback = {}) {
    const auto value = gguf_.get_real(key(suffix), fallback);
    if (value.has_value()) return *value;
    keep(value.error());
    return 0;
  }

  void read_sizes() {
    config_.layers = number("block_count");
    config_.context = number("context_length");
    config_.embedding = number("embedding_length");
    config_.feed_forward = number("feed_forward_length");
    config_.norm_epsilon = static_cast<float>(real("attention.layer_norm_rms_epsilon"));
  }

  void read_attention() {
    config_.heads = number("attention.head_count");
    config_.kv_heads = number("attention.head_count_kv", config_.heads);
    if (config_.heads == 0) {
      keep(failure(gguf_.name(), ": ", key("attention.head_count"), " is 0"));
      return;
    }
    if (gguf_.find(key("attention.key_length")) == nullptr &&
        config_.embedding % config_.heads != 0) {
      keep(failure(gguf_.name(), ": ", key("embedding_length"), " ", config_.embedding,
                   " is not a multiple of ", config_.heads, " heads"));
    }
    const std::uint32_t fallback = config_.embedding / config_.heads;
    config_.head_dim = number("attention.key_length", fallback);
    const std::uint32_t value_length = number("attention.value_length", config_.head_dim);
    if (value_length != config_.head_dim) {
      keep(failure(gguf_.name(), ": key length ", config_.head_dim, " and value length ",
                   value_length, " differ; this is not supported"));
    }
  }

  void read_rope() {
    config_.rope_base = static_cast<float>(real("rope.freq_base", 10000.0));
    config_.rope_dims = number("rope.dimension_count", config_.head_dim);
    const auto type = gguf_.get_string(key("rope.scaling.type"), "none");
    if (type.has_error()) {
      keep(type.error());
    } else if (*type != "none") {
      keep(failure(gguf_.name(), ": rope scaling type ", in_quotes(*type),
                   " is not supported; use a model file without rope scaling"));
    }
    // 0 and 1 both mean "not scaled" to llama.cpp.
    for (const char* suffix : {"rope.scaling.factor", "rope.scale_linear"}) {
      const double factor = real(suffix, 1.0);
      if (factor != 0.0 && factor != 1.0) {
        keep(failure(gguf_.name(), ": ", key(suffix), " ", factor, " is not supported; use a ",
                     "model file without rope scaling"));
      }
    }
  }

  void read_vocabulary() {
    const GgufTensor* embedding = gguf_.find_tensor("token_embd.weight");
    if (embedding == nullptr) {
      keep(failure(gguf_.name(), ": tensor 'token_embd.weight' is missing"));
      return;
    }
    const std::uint64_t rows = embedding->dimensions.size() == 2 ? embedding->dimensions[1] : 0;
    if (rows == 0 || rows > model_limits::vocabulary_max) {
      keep(failure(gguf_.name(), ": tensor 'token_embd.weight' is no matrix of 1 to ",
                   model_limits::vocabulary_max, " rows"));
      return;
    }
    config_.vocabulary = static_cast<std::uint32_t>(rows);
    const std::uint32_t said = number("vocab_size", rows);
    if (said != rows) {
      keep(failure(gguf_.name(), ": ", key("vocab_size"), " is ", said, " but 'token_embd.weight'",
                   " has ", rows, " rows"));
    }
    config_.tied_output = gguf_.find_tensor("output.weight") == nullptr;
  }

  void refuse_unsupported() {
    if (number("expert_count", 0) != 0) {
      keep(failure(gguf_.name(), ": ", key("expert_count"), ": models with experts are not ",
                   "supported"));
    }
  }

  const Gguf& gguf_;
  ModelConfig config_;
  Error error_;
};

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string out = "[";
  for (const std::uint64_t length : shape) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(length);
  }
  return out + "]";
}

Result<SourceTensor> take_tensor(const Gguf& gguf, const TensorSpec& spec) {
  const GgufTensor* tensor = gguf.find_tensor(spec.name);
  if (tensor == nullptr) {
    return failure(gguf.name(), ": tensor ", in_quotes(spec.name), " is missing");
  }
  std::vector<std::uint64_t> shape{tensor->dimensions.rbegin(), tensor->dimensions.rend()};
  if (shape != spec.shape) {
    return failure(gguf.name(), ": tensor ", in_quotes(spec.name), " has the shape ",
                   shape_text(shape), "; the model's metadata asks for ", shape_text(spec.shape));
  }
  const bool matrix = spec.shape.size() == 2;
  const auto type = weight_type(tensor->type->number);
  if (!type || (!matrix && tensor->type->block_elements != 1)) {
    return failure(gguf.name(), ": tensor ", in_quotes(spec.name), " has the type ",
                   tensor->type->name, "; ",
                   matrix ? "F32, F16, BF16, Q8_0, Q6_K, Q4_K and Q4_0" : "F32, F16 and BF16",
                   " are supported here: convert the model file");
  }
  return SourceTensor{spec.name, *type, spec.shape, gguf.data(*tensor)};
}

struct Range {
  const char* name;
  std::uint64_t value;
  std::uint64_t max;
};

}   // namespace

std::vector<TensorSpec> expected_tensors(const ModelConfig& config) {
  const std::uint64_t q = std::uint64_t{config.heads} * config.head_dim;
  const std::uint64_t kv = std::uint64_t{config.kv_heads} * config.head_dim;
  const std::uint64_t d = config.embedding;
  const std::uint64_t ff = config.feed_forward;
  std::vector<TensorSpec> out;
  out.push_back({"token_embd.weight", {config.vocabulary, d}});
  out.push_back({"output_norm.weight", {d}});
  if (!config.tied_output) out.push_back({"output.weight", {config.vocabulary, d}});
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    out.push_back({block + "attn_norm.weight", {d}});
    out.push_back({block + "attn_q.weight", {q, d}});
    out.push_back({block + "attn_k.weight", {kv, d}});
    out.push_back({block + "attn_v.weight", {kv, d}});
    if (config.qkv_bias) {
      out.push_back({block + "attn_q.bias", {q}});
      out.push_back({block + "attn_k.bias", {kv}});
      out.push_back({block + "attn_v.bias", {kv}});
    }
    if (config.qk_norm) {
      out.push_back({block + "attn_q_norm.weight", {config.head_dim}});
      out.push_back({block + "attn_k_norm.weight", {config.head_dim}});
    }
    out.push_back({block + "attn_output.weight", {d, q}});
    out.push_back({block + "ffn_norm.weight", {d}});
    out.push_back({block + "ffn_gate.weight", {ff, d}});
    out.push_back({block + "ffn_up.weight", {ff, d}});
    out.push_back({block + "ffn_down.weight", {d, ff}});
  }
  return out;
}

Result<void> check_config(const ModelConfig& config, const std::string& where) {
  const std::array<Range, 8> ranges = {{
      {"layers", config.layers, model_limits::layers_max},
      {"embedding length", config.embedding, model_limits::embedding_max},
      {"feed-forward length", config.feed_forward, model_limits::feed_forward_max},
      {"heads", config.heads, model_limits::heads_max},
      {"kv heads", config.kv_heads, model_limits::heads_max},
      {"head dimension", config.head_dim, model_limits::head_dim_max},
      {"vocabulary", config.vocabulary, model_limits::vocabulary_max},
      {"context length", config.context, model_limits::context_max},
  }};
  for (const Range& range : ranges) {
    if (range.value == 0 || range.value > range.max) {
      return failure(where, ": ", range.name, " ", range.value, " is not in 1..", range.max);
    }
  }
  if (config.heads % config.kv_heads != 0) {
    return failure(where, ": ", config.heads, " heads are not a multiple of ", config.kv_heads,
                   " kv heads");
  }
  const std::uint64_t q = std::uint64_t{config.heads} * config.head_dim;
  if (config.embedding % block_elements != 0 || config.feed_forward % block_elements != 0 ||
      q % block_elements != 0) {
    return failure(where, ": embedding ", config.embedding, ", feed-forward ", config.feed_forward,
                   " and heads x dimension ", q, " must be multiples of ", block_elements);
  }
  if (config.rope_dims == 0 || config.rope_dims % 2 != 0 || config.rope_dims > config.head_dim) {
    return failure(where, ": rope dimensions ", config.rope_dims,
                   " must be even and at most the head dimension ", config.head_dim);
  }
  // Written so that a NaN fails too.
  if (!(config.norm_epsilon > 0.0F && config.norm_epsilon < 1.0F)) {
    return failure(where, ": norm epsilon ", config.norm_epsilon, " is not between 0 and 1");
  }
  if (!(config.rope_base >= 1.0F && config.rope_base <= 1e12F)) {
    return failure(where, ": rope base ", config.rope_base, " is not in 1..1e12");
  }
  return {};
}

Result<ModelSource> read_model_source(const Gguf& gguf) {
  auto config = ConfigReader{gguf}.run();
  if (config.has_error()) return config.error();
  ModelSource source;
  source.config = std::move(*config);
  std::set<std::string_view> known;
  const std::vector<TensorSpec> specs = expected_tensors(source.config);
  for (const TensorSpec& spec : specs) {
    auto tensor = take_tensor(gguf, spec);
    if (tensor.has_error()) return tensor.error();
    known.insert(spec.name);
    source.tensors.push_back(std::move(*tensor));
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (known.count(tensor.name) == 0) {
      return failure(gguf.name(), ": tensor ", in_quotes(tensor.name), " is not part of a plain ",
                     source.config.architecture,
                     " model; it would be ignored, so the file is refused");
    }
  }
  return source;
}

Result<void> check_weights(const SourceTensor& tensor, const std::string& file) {
  const auto bad = first_not_finite(tensor.type, tensor.data);
  if (!bad) return {};
  return failure(file, ": tensor ", in_quotes(tensor.name), ": ",
                 layout_of(tensor.type).block_elements > 1 ? "the scale of block " : "element ",
                 *bad, " is not a finite number; the model file is damaged");
}

Result<void> check_weights(const ModelSource& source, const std::string& file) {
  for (const SourceTensor& tensor : source.tensors) {
    const auto sound = check_weights(tensor, file);
    if (sound.has_error()) return sound.error();
  }
  return {};
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::q8_0:
      return "Q8_0";
    case DType::i32:
      return "I32";
    case DType::bf16:
      return "BF16";
  }
  DUET_UNREACHABLE();
}

std::uint64_t dtype_bytes(DType dtype, std::uint64_t elements) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return elements * 4;
    case DType::f16:
    case DType::bf16:
      return elements * 2;
    case DType::q8_0:
      DUET_ASSERT(elements % block_elements == 0, elements);
      return elements / block_elements * q8_block_bytes;
  }
  DUET_UNREACHABLE();
}

}   // namespace duet::device
