// gguf_builder.cpp: makes GGUF files in memory for tests.
#include "tests/device/package/gguf_builder.hpp"

#include "device/kernels/half.hpp"
#include "device/package/quantize.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>
#include <cstring>

namespace duet::device::test {
namespace {

constexpr std::uint64_t alignment = 32;

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_text(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out.append(text);
}
template <typename T>
std::string array_of(MetaType type, const std::vector<T>& values) {
  std::string out;
  append(out, static_cast<std::uint32_t>(type));
  append(out, std::uint64_t{values.size()});
  for (const T& value : values) append(out, value);
  return out;
}

}   // namespace

GgufBuilder& GgufBuilder::raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
  keys_.push_back({std::string(key), type, std::string(bytes)});
  return *this;
}
GgufBuilder& GgufBuilder::text(std::string_view key, std::string_view value) {
  std::string bytes;
  append_text(bytes, value);
  return raw(key, 8, bytes);
}
GgufBuilder& GgufBuilder::u32(std::string_view key, std::uint32_t value) {
  std::string bytes;
  append(bytes, value);
  return raw(key, 4, bytes);
}
GgufBuilder& GgufBuilder::f32(std::string_view key, float value) {
  std::string bytes;
  append(bytes, value);
  return raw(key, 6, bytes);
}
GgufBuilder& GgufBuilder::boolean(std::string_view key, bool value) {
  return raw(key, 7, std::string(1, value ? '\1' : '\0'));
}
GgufBuilder& GgufBuilder::texts(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes;
  append(bytes, std::uint32_t{8});
  append(bytes, std::uint64_t{values.size()});
  for (const std::string& value : values) append_text(bytes, value);
  return raw(key, 9, bytes);
}
GgufBuilder& GgufBuilder::i32s(std::string_view key, const std::vector<std::int32_t>& values) {
  return raw(key, 9, array_of(MetaType::i32, values));
}
GgufBuilder& GgufBuilder::f32s(std::string_view key, const std::vector<float>& values) {
  return raw(key, 9, array_of(MetaType::f32, values));
}
GgufBuilder& GgufBuilder::tensor(std::string_view name, std::vector<std::uint64_t> dimensions,
                                 std::uint32_t type, std::vector<std::byte> bytes) {
  tensors_.push_back({std::string(name), std::move(dimensions), type, std::move(bytes), false, 0});
  return *this;
}
GgufBuilder& GgufBuilder::tensor_at(std::string_view name, std::vector<std::uint64_t> dimensions,
                                    std::uint32_t type, std::uint64_t offset) {
  tensors_.push_back({std::string(name), std::move(dimensions), type, {}, true, offset});
  return *this;
}
GgufBuilder& GgufBuilder::drop_key(std::string_view key) {
  std::erase_if(keys_, [&](const Key& k) { return k.name == key; });
  return *this;
}
GgufBuilder& GgufBuilder::drop_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Entry& t) { return t.name == name; });
  return *this;
}

std::vector<std::byte> GgufBuilder::build() const {
  std::string out = "GGUF";
  append(out, version);
  append(out, std::uint64_t{tensors_.size()});
  append(out, std::uint64_t{keys_.size()});
  for (const Key& key : keys_) {
    append_text(out, key.name);
    append(out, key.type);
    out += key.bytes;
  }
  std::uint64_t offset = 0;
  for (const Entry& tensor : tensors_) {
    append_text(out, tensor.name);
    append(out, static_cast<std::uint32_t>(tensor.dimensions.size()));
    for (const std::uint64_t length : tensor.dimensions) append(out, length);
    append(out, tensor.type);
    append(out, tensor.has_offset ? tensor.offset : offset);
    offset += (tensor.bytes.size() + alignment - 1) / alignment * alignment;
  }
  const auto pad = [&] { out.resize((out.size() + alignment - 1) / alignment * alignment); };
  pad();
  for (const Entry& tensor : tensors_) {
    out.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    pad();
  }
  const auto bytes = as_byte_span(out);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> weights(DType type, std::uint64_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
  }
  if (type == DType::q8_0) {
    std::vector<std::byte> out(count / q8_block_elements * q8_block_bytes);
    (void)quantize_q8_0(values, out);
    return out;
  }
  std::string out;
  for (const float value : values) {
    if (type == DType::f32) append(out, value);
    if (type == DType::f16) append(out, f32_to_f16(value));
    if (type == DType::bf16) append(out, f32_to_bf16(value));
  }
  const auto bytes = as_byte_span(out);
  return {bytes.begin(), bytes.end()};
}

namespace {

void add_tokenizer(GgufBuilder& builder, bool sentencepiece) {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types(48, 1);
  std::vector<float> scores(48, 0.0F);
  if (sentencepiece) {
    tokens = {"<unk>", "<s>", "</s>"};
    types[0] = 2;
    types[1] = types[2] = 3;
  }
  for (char c = 'A'; tokens.size() < 48; ++c) tokens.emplace_back(1, c);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -0.25F * static_cast<float>(i);
  builder.text("tokenizer.ggml.model", sentencepiece ? "llama" : "gpt2")
      .text("tokenizer.ggml.pre", "default")
      .texts("tokenizer.ggml.tokens", tokens)
      .i32s("tokenizer.ggml.token_type", types);
  if (sentencepiece) {
    builder.f32s("tokenizer.ggml.scores", scores);
  } else {
    builder.texts("tokenizer.ggml.merges", {"A B", "C D"}).u32("tokenizer.ggml.eos_token_id", 47);
  }
}

}   // namespace

GgufBuilder tiny_model(const std::string& architecture, DType matrix, std::uint32_t seed) {
  GgufBuilder builder;
  const std::string a = architecture + ".";
  builder.text("general.architecture", architecture)
      .u32(a + "block_count", 1)
      .u32(a + "context_length", 64)
      .u32(a + "embedding_length", 64)
      .u32(a + "feed_forward_length", 96)
      .u32(a + "attention.head_count", 4)
      .u32(a + "attention.head_count_kv", 2)
      .f32(a + "attention.layer_norm_rms_epsilon", 1e-5F);
  add_tokenizer(builder, architecture == "llama");
  const auto add_matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    builder.tensor(name, {columns, rows}, static_cast<std::uint32_t>(matrix),
                   weights(matrix, rows * columns, ++seed));
  };
  const auto add_vector = [&](const std::string& name, std::uint64_t size) {
    builder.tensor(name, {size}, 0, weights(DType::f32, size, ++seed));
  };
  add_matrix("token_embd.weight", 48, 64);
  add_vector("output_norm.weight", 64);
  if (architecture == "llama") add_matrix("output.weight", 48, 64);
  add_vector("blk.0.attn_norm.weight", 64);
  add_matrix("blk.0.attn_q.weight", 64, 64);
  add_matrix("blk.0.attn_k.weight", 32, 64);
  add_matrix("blk.0.attn_v.weight", 32, 64);
  if (architecture == "qwen2") {
    add_vector("blk.0.attn_q.bias", 64);
    add_vector("blk.0.attn_k.bias", 32);
    add_vector("blk.0.attn_v.bias", 32);
  }
  if (architecture == "qwen3") {
    add_vector("blk.0.attn_q_norm.weight", 16);
    add_vector("blk.0.attn_k_norm.weight", 16);
  }
  add_matrix("blk.0.attn_output.weight", 64, 64);
  add_vector("blk.0.ffn_norm.weight", 64);
  add_matrix("blk.0.ffn_gate.weight", 96, 64);
  add_matrix("blk.0.ffn_up.weight", 96, 64);
  add_matrix("blk.0.ffn_down.weight", 64, 96);
  return builder;
}

}   // namespace duet::device::test
