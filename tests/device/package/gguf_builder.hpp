// gguf_builder.hpp: makes GGUF files in memory for tests, sound ones and broken ones.
#pragma once

#include "device/package/gguf.hpp"
#include "device/package/manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device::test {

/// Collects keys and tensors in order; build() lays them out as GGUF version 3 does.
class GgufBuilder {
 public:
  GgufBuilder& text(std::string_view key, std::string_view value);
  GgufBuilder& u32(std::string_view key, std::uint32_t value);
  GgufBuilder& f32(std::string_view key, float value);
  GgufBuilder& boolean(std::string_view key, bool value);
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& values);
  GgufBuilder& i32s(std::string_view key, const std::vector<std::int32_t>& values);
  GgufBuilder& f32s(std::string_view key, const std::vector<float>& values);
  /// A key with a type number and bytes of its own.
  GgufBuilder& raw(std::string_view key, std::uint32_t type, std::string_view bytes);
  /// `dimensions` innermost first. The bytes may be too few or too many.
  GgufBuilder& tensor(std::string_view name, std::vector<std::uint64_t> dimensions,
                      std::uint32_t type, std::vector<std::byte> bytes);
  /// As tensor(), at an offset of its own; adds no data.
  GgufBuilder& tensor_at(std::string_view name, std::vector<std::uint64_t> dimensions,
                         std::uint32_t type, std::uint64_t offset);
  /// Takes a key or tensor out again, so that another can take its place.
  GgufBuilder& drop_key(std::string_view key);
  GgufBuilder& drop_tensor(std::string_view name);

  std::uint32_t version = 3;
  [[nodiscard]] std::vector<std::byte> build() const;

 private:
  struct Key {
    std::string name;
    std::uint32_t type;
    std::string bytes;
  };
  struct Entry {
    std::string name;
    std::vector<std::uint64_t> dimensions;
    std::uint32_t type;
    std::vector<std::byte> bytes;
    bool has_offset;
    std::uint64_t offset;
  };
  std::vector<Key> keys_;
  std::vector<Entry> tensors_;
};

/// A whole random model of 1 layer, embedding 64, 4 heads of 16 on 2 kv heads, feed-forward 96,
/// vocabulary 48, context 64. `matrix` is the type of matrices; norms are F32. llama gets a
/// SentencePiece tokenizer and its own output matrix, qwen2 and qwen3 a byte-level one and tied
/// output. The same arguments give the same bytes.
[[nodiscard]] GgufBuilder tiny_model(const std::string& architecture, DType matrix,
                                     std::uint32_t seed = 1);

/// `count` numbers in about ±0.5, always the same for a seed, as elements of `type`.
[[nodiscard]] std::vector<std::byte> weights(DType type, std::uint64_t count, std::uint32_t seed);

}   // namespace duet::device::test
