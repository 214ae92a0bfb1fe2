// gguf.hpp: a strict, bounded reader of GGUF model files (versions 2 and 3, little-endian).
//
// Source of the format: the GGUF specification of the ggml project (header, metadata, tensor infos,
// aligned data).
#pragma once

#include "device/package/mapped_file.hpp"
#include "device/program/message.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

namespace gguf_limits {
inline constexpr std::uint64_t keys_max = 1U << 16;      // real files have fewer than 100
inline constexpr std::uint64_t tensors_max = 1U << 16;   // a model of 126 layers has 1137
inline constexpr std::uint64_t key_bytes_max = 65535;    // the specification's own limit
inline constexpr std::uint64_t name_bytes_max = 64;      // the specification's own limit
inline constexpr std::uint64_t string_bytes_max =
    4U << 20;   // the longest known chat template is below 64 KiB
inline constexpr std::uint64_t elements_max = 1U << 24;   // vocabularies have below 2^19 tokens
inline constexpr std::uint64_t header_bytes_max =
    256U << 20;   // all metadata: what a hostile file can make us read
inline constexpr std::uint64_t dimensions_max = 4;
}   // namespace gguf_limits

enum class MetaType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

/// One metadata value: a view into the file. Scalars have count 1.
struct MetaValue {
  MetaType type = MetaType::u8;   ///< of the value, or of the elements if `is_array`.
  bool is_array = false;
  std::uint64_t count = 0;   ///< elements.
  std::span<const std::byte>
      bytes;   ///< the elements as they lie in the file; checked to hold `count` whole ones.
};

/// Name of a ggml tensor type number and its block layout.
struct GgmlType {
  std::uint32_t number;
  const char* name;
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
};

/// Null if the number is not known.
[[nodiscard]] const GgmlType* find_ggml_type(std::uint32_t number);

struct GgufTensor {
  std::string_view name;
  const GgmlType* type = nullptr;
  std::vector<std::uint64_t>
      dimensions;   ///< as in the file: innermost (contiguous) first; each at least 1.
  std::uint64_t elements = 0;
  std::uint64_t offset = 0;   ///< in the file.
  std::uint64_t bytes = 0;
};

/// A parsed file. Movable; any thread may read. Views stay valid as long as the object (or, for
/// parse(), the given bytes). Every error is one sentence with the file's name, the offset, key or
/// tensor, and what is wrong.
class Gguf {
 public:
  static Result<Gguf> open(const std::string& path);
  /// `bytes` must outlive the object.
  static Result<Gguf> parse(std::span<const std::byte> bytes, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t version() const { return version_; }
  [[nodiscard]] std::span<const std::byte> file_bytes() const { return bytes_; }

  /// Null if the key is absent.
  [[nodiscard]] const MetaValue* find(std::string_view key) const;
  /// Keys in order of their text.
  [[nodiscard]] std::vector<std::string_view> keys() const;

  /// Typed getters. An absent key gives `fallback`, or an error if there is none. A key of another
  /// type is an error. Integers of every GGUF width are taken where they fit.
  [[nodiscard]] Result<std::uint64_t> get_unsigned(
      std::string_view key, std::optional<std::uint64_t> fallback = {}) const;
  [[nodiscard]] Result<double> get_real(std::string_view key,
                                        std::optional<double> fallback = {}) const;
  [[nodiscard]] Result<bool> get_bool(std::string_view key,
                                      std::optional<bool> fallback = {}) const;
  [[nodiscard]] Result<std::string_view> get_string(
      std::string_view key, std::optional<std::string_view> fallback = {}) const;
  /// Arrays; an absent key is an error.
  [[nodiscard]] Result<std::vector<std::string_view>> get_strings(std::string_view key) const;
  [[nodiscard]] Result<std::vector<float>> get_reals(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::int64_t>> get_integers(std::string_view key) const;

  [[nodiscard]] std::span<const GgufTensor> tensors() const { return tensors_; }
  /// Null if there is no such tensor.
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;
  [[nodiscard]] std::span<const std::byte> data(const GgufTensor& tensor) const;
  /// Gives the memory of `part` of file_bytes() back; reading it again reads the file again. Does
  /// nothing after parse().
  void forget(std::span<const std::byte> part) const;

 private:
  friend class GgufParser;
  Gguf() = default;

  std::string name_;
  std::shared_ptr<const MappedFile> file_;   ///< null after parse().
  std::span<const std::byte> bytes_;
  std::uint32_t version_ = 0;
  std::map<std::string_view, MetaValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::size_t> tensor_index_;
};

}   // namespace duet::device
