// random_model.cpp: streams GGUF files with random weights to disk.
#include "tools/random_model.hpp"

#include "device/kernels/half.hpp"
#include "device/package/model_source.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace duet::tools {
namespace {

using device::ModelConfig;
using device::WeightType;

constexpr std::uint64_t alignment = 32;   // GGUF's own default
constexpr std::uint64_t piece_bytes = 1U << 20;
constexpr std::uint32_t bytes_tokens = 256;
constexpr std::uint32_t special_tokens = 1;   // the end of text
constexpr std::uint32_t vocabulary_min = 260;

/// layers, embedding, feed-forward, heads, kv heads, head dimension, vocabulary, context, epsilon,
/// RoPE base: as published in the models' configurations.
ModelConfig shape(const char* architecture, std::array<std::uint32_t, 8> sizes, float epsilon,
                  float rope_base) {
  ModelConfig c;
  c.architecture = architecture;
  c.layers = sizes[0];
  c.embedding = sizes[1];
  c.feed_forward = sizes[2];
  c.heads = sizes[3];
  c.kv_heads = sizes[4];
  c.head_dim = c.rope_dims = sizes[5];
  c.vocabulary = sizes[6];
  c.context = sizes[7];
  c.norm_epsilon = epsilon;
  c.rope_base = rope_base;
  c.rope_neox = c.architecture != "llama";
  c.qk_norm = c.architecture == "qwen3";
  c.qkv_bias = c.architecture == "qwen2";
  c.tied_output = true;
  return c;
}

/// SplitMix64: small, and any seed is as good as another.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// In [-1, 1).
  float spread() { return static_cast<float>(next() >> 40U) * 0x1p-23F - 1.0F; }
  void fill(std::span<std::byte> out) {
    for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = next();
      std::memcpy(out.data() + at, &word, std::min(sizeof word, out.size() - at));
    }
  }

 private:
  std::uint64_t state_;
};

void put_half(std::span<std::byte> out, float value) {
  const std::uint16_t half = device::f32_to_f16(value);
  std::memcpy(out.data(), &half, sizeof half);
}

/// Eight scales that are their own minima, so that a group of any scale has the mean 0.
void put_group_scales(Random& random, std::span<std::byte> packed) {
  std::array<std::uint8_t, 8> scales = {};
  for (std::uint8_t& scale : scales) scale = static_cast<std::uint8_t>(32 + random.next() % 32);
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned top = scales[i + 4] >> 4U << 6U;
    const unsigned low = scales[i + 4] & 15U;
    packed[i] = packed[i + 4] = static_cast<std::byte>(scales[i] | top);
    packed[i + 8] = static_cast<std::byte>(low | low << 4U);
  }
}

/// One block of values in about ±width.
void put_block(WeightType type, Random& random, float width, std::span<std::byte> out) {
  const auto value = [&] { return width * random.spread(); };
  switch (type) {
    case WeightType::f32: {
      const float number = value();
      std::memcpy(out.data(), &number, sizeof number);
      return;
    }
    case WeightType::f16:
      return put_half(out, value());
    case WeightType::bf16: {
      const std::uint16_t half = device::f32_to_bf16(value());
      std::memcpy(out.data(), &half, sizeof half);
      return;
    }
    case WeightType::q4_0:
      random.fill(out);
      return put_half(out, width / 8);
    case WeightType::q8_0:
      random.fill(out);
      return put_half(out, width / 128);
    case WeightType::q4_k:
      random.fill(out);
      put_half(out, width / (63 * 7.5F));
      put_half(out.subspan(2), width / 63);
      return put_group_scales(random, out.subspan(4, 12));
    case WeightType::q6_k:
      random.fill(out);
      return put_half(out.subspan(208), width / (128 * 32));
  }
}

class Writer {
 public:
  Writer(const RandomModel& model, const std::string& path)
      : model_(model),
        random_(model.seed),
        path_(path),
        file_(path, std::ios::binary | std::ios::trunc) {}

  device::Result<void> run() {
    plan();
    write_header();
    write_tokenizer();
    write_infos();
    if (model_.hollow) {
      write_out();
      file_.close();
      std::error_code ec;
      if (file_) std::filesystem::resize_file(path_, data_ + total_, ec);
      if (ec) return device::failure(path_, ": cannot be written: ", ec.message());
    } else {
      for (const Entry& entry : entries_) write_weights(entry);
      write_out();
      file_.close();
    }
    if (!file_) return device::failure(path_, ": cannot be written (is the disk full?)");
    return {};
  }

 private:
  struct Entry {
    device::TensorSpec spec;
    WeightType type;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  void plan() {
    for (device::TensorSpec& spec : device::expected_tensors(model_.config)) {
      const bool matrix = spec.shape.size() == 2;
      WeightType type = matrix ? model_.type : WeightType::f32;
      if (spec.shape.back() % device::layout_of(type).block_elements != 0) type = WeightType::q8_0;
      const std::uint64_t elements = matrix ? spec.shape[0] * spec.shape[1] : spec.shape[0];
      const std::uint64_t bytes = device::weight_bytes(type, elements);
      entries_.push_back({std::move(spec), type, total_, bytes});
      total_ += (bytes + alignment - 1) / alignment * alignment;
    }
  }

  void write_out() {
    file_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }
  void put_bytes(std::string_view bytes) {
    buffer_ += bytes;
    size_ += bytes.size();
    if (buffer_.size() >= piece_bytes) write_out();
  }
  template <typename T>
  void put(T value) {
    put_bytes({reinterpret_cast<const char*>(&value), sizeof value});
  }
  void put_text(std::string_view text) {
    put(std::uint64_t{text.size()});
    put_bytes(text);
  }
  void pad() {
    static constexpr std::array<char, alignment> zeros = {};
    put_bytes({zeros.data(), (alignment - size_ % alignment) % alignment});
  }

  void put_key(std::string_view key, device::MetaType type) {
    put_text(key);
    put(static_cast<std::uint32_t>(type));
  }
  void put_string(std::string_view key, std::string_view value) {
    put_key(key, device::MetaType::string);
    put_text(value);
  }
  void put_number(std::string_view key, std::uint32_t value) {
    put_key(model_.config.architecture + "." + std::string(key), device::MetaType::u32);
    put(value);
  }
  void put_real(std::string_view key, float value) {
    put_key(model_.config.architecture + "." + std::string(key), device::MetaType::f32);
    put(value);
  }
  void put_array(std::string_view key, device::MetaType type, std::uint64_t count) {
    put_key(key, device::MetaType::array);
    put(static_cast<std::uint32_t>(type));
    put(count);
  }

  void write_header() {
    constexpr std::uint64_t keys = 20;
    const ModelConfig& c = model_.config;
    put_bytes("GGUF");
    put(std::uint32_t{3});
    put(std::uint64_t{entries_.size()});
    put(keys);
    put_string("general.architecture", c.architecture);
    put_string("general.name", "random weights");
    put_number("block_count", c.layers);
    put_number("context_length", c.context);
    put_number("embedding_length", c.embedding);
    put_number("feed_forward_length", c.feed_forward);
    put_number("attention.head_count", c.heads);
    put_number("attention.head_count_kv", c.kv_heads);
    put_number("attention.key_length", c.head_dim);
    put_number("attention.value_length", c.head_dim);
    put_number("rope.dimension_count", c.rope_dims);
    put_real("attention.layer_norm_rms_epsilon", c.norm_epsilon);
    put_real("rope.freq_base", c.rope_base);
  }

  /// The bytes as GPT-2 writes them, then words of small letters by length, each a merge of the
  /// word without its last letter and that letter.
  void write_tokenizer() {
    const std::uint32_t words = model_.config.vocabulary - bytes_tokens - special_tokens;
    std::vector<std::string> merged;
    std::vector<std::string> merges;
    for (std::size_t from = 0; merged.size() < words; ++from) {
      // The one-letter words are bytes; the longer ones follow in the order they are made.
      const std::string left =
          from < 26 ? std::string(1, static_cast<char>('a' + from)) : merged[from - 26];
      for (char c = 'a'; c <= 'z' && merged.size() < words; ++c) {
        merged.push_back(left + c);
        merges.push_back(left + " " + c);
      }
    }
    put_string("tokenizer.ggml.model", "gpt2");
    put_string("tokenizer.ggml.pre", model_.config.architecture == "llama" ? "llama-bpe" : "qwen2");
    put_array("tokenizer.ggml.tokens", device::MetaType::string, model_.config.vocabulary);
    std::uint32_t next = 256;   // of bytes without a printable character of their own
    for (std::uint32_t byte = 0; byte < bytes_tokens; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      put_text(utf8(printable ? byte : next++));
    }
    for (const std::string& word : merged) put_text(word);
    put_text("<|endoftext|>");
    put_array("tokenizer.ggml.token_type", device::MetaType::i32, model_.config.vocabulary);
    for (std::uint32_t i = 0; i + 1 < model_.config.vocabulary; ++i) put(std::int32_t{1});
    put(std::int32_t{3});   // control
    put_array("tokenizer.ggml.merges", device::MetaType::string, merges.size());
    for (const std::string& merge : merges) put_text(merge);
    for (const char* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}) {
      put_key(key, device::MetaType::u32);
      put(model_.config.vocabulary - 1);
    }
  }

  static std::string utf8(std::uint32_t code) {
    if (code < 128) return {static_cast<char>(code)};
    return {static_cast<char>(0xc0U | code >> 6U), static_cast<char>(0x80U | (code & 63U))};
  }

  void write_infos() {
    for (const Entry& entry : entries_) {
      put_text(entry.spec.name);
      put(static_cast<std::uint32_t>(entry.spec.shape.size()));
      for (auto d = entry.spec.shape.rbegin(); d != entry.spec.shape.rend(); ++d) put(*d);
      put(static_cast<std::uint32_t>(entry.type));
      put(entry.offset);
    }
    pad();
    data_ = size_;
  }

  void write_weights(const Entry& entry) {
    const device::GgmlType& layout = device::layout_of(entry.type);
    const bool matrix = entry.spec.shape.size() == 2;
    // Uniform in ±sqrt(3 / n) has the variance 1 / n, so that a sum of n products keeps it.
    const float width = matrix ? std::sqrt(3.0F / static_cast<float>(entry.spec.shape[1])) : 0.1F;
    const bool norm = entry.spec.name.find("norm") != std::string::npos;
    std::array<std::byte, 256> block = {};
    const auto bytes = std::span(block).first(layout.block_bytes);
    for (std::uint64_t left = entry.bytes; left > 0; left -= layout.block_bytes) {
      if (norm) {
        const float value = 1.0F + width * random_.spread();
        std::memcpy(block.data(), &value, sizeof value);
      } else {
        put_block(entry.type, random_, width, bytes);
      }
      put_bytes(device::as_text(bytes));
    }
    pad();
  }

  const RandomModel& model_;
  Random random_;
  const std::string& path_;
  std::ofstream file_;
  std::string buffer_;
  std::uint64_t size_ = 0;
  std::uint64_t data_ = 0;
  std::uint64_t total_ = 0;
  std::vector<Entry> entries_;
};

}   // namespace

std::span<const ModelShape> model_shapes() {
  static const std::array<ModelShape, 8> shapes = {{
      {"qwen2-0.5b", true, shape("qwen2", {24, 896, 4864, 14, 2, 64, 151936, 32768}, 1e-6F, 1e6F)},
      {"llama-1b", true, shape("llama", {16, 2048, 8192, 32, 8, 64, 128256, 131072}, 1e-5F, 5e5F)},
      {"qwen3-0.6b", true,
       shape("qwen3", {28, 1024, 3072, 16, 8, 128, 151936, 40960}, 1e-6F, 1e6F)},
      {"llama-3b", true, shape("llama", {28, 3072, 8192, 24, 8, 128, 128256, 131072}, 1e-5F, 5e5F)},
      {"qwen2-layer", false, shape("qwen2", {1, 896, 4864, 14, 2, 64, 512, 32768}, 1e-6F, 1e6F)},
      {"llama-layer", false, shape("llama", {1, 2048, 8192, 32, 8, 64, 512, 131072}, 1e-5F, 5e5F)},
      {"qwen3-layer", false, shape("qwen3", {1, 1024, 3072, 16, 8, 128, 512, 40960}, 1e-6F, 1e6F)},
      {"small", false, shape("llama", {1, 256, 256, 4, 2, 64, 260, 128}, 1e-5F, 1e4F)},
  }};
  return shapes;
}

const ModelShape* find_model_shape(std::string_view name) {
  const auto shapes = model_shapes();
  const auto found = std::find_if(shapes.begin(), shapes.end(),
                                  [&](const ModelShape& shape) { return shape.name == name; });
  return found == shapes.end() ? nullptr : &*found;
}

device::Result<void> write_random_model(const RandomModel& model, const std::string& path) {
  const auto sound = device::check_config(model.config, path);
  if (sound.has_error()) return sound.error();
  if (model.config.vocabulary < vocabulary_min) {
    return device::failure(path, ": a vocabulary of ", model.config.vocabulary, " is below ",
                           vocabulary_min);
  }
  return Writer{model, path}.run();
}

}   // namespace duet::tools
