// gguf_values.cpp: typed access to the metadata of a parsed GGUF file.
#include "device/package/gguf.hpp"
#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace duet::device {
namespace {

const char* type_name(MetaType type) {
  static constexpr std::array<const char*, 13> names = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                        "i32", "f32", "bool", "string", "array",
                                                        "u64", "i64", "f64"};
  return names[static_cast<std::uint32_t>(type)];
}

bool is_integer(MetaType type) {
  return type <= MetaType::i32 || type == MetaType::u64 || type == MetaType::i64;
}

/// Element `index` of an integer value; nothing if it is a u64 above the signed range.
std::optional<std::int64_t> integer_at(const MetaValue& value, std::uint64_t index) {
  switch (value.type) {
    case MetaType::u8:
      return load_le<std::uint8_t>(value.bytes, index * 1);
    case MetaType::i8:
      return load_le<std::int8_t>(value.bytes, index * 1);
    case MetaType::u16:
      return load_le<std::uint16_t>(value.bytes, index * 2);
    case MetaType::i16:
      return load_le<std::int16_t>(value.bytes, index * 2);
    case MetaType::u32:
      return load_le<std::uint32_t>(value.bytes, index * 4);
    case MetaType::i32:
      return load_le<std::int32_t>(value.bytes, index * 4);
    case MetaType::i64:
      return load_le<std::int64_t>(value.bytes, index * 8);
    case MetaType::u64: {
      const auto wide = load_le<std::uint64_t>(value.bytes, index * 8);
      if (wide > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
      return static_cast<std::int64_t>(wide);
    }
    default:
      return {};
  }
}

/// The scalar under `key`, null if it is absent and may be; the error says what it should have
/// been.
Result<const MetaValue*> scalar(const Gguf& gguf, std::string_view key, bool optional,
                                const char* wanted, bool (*fits)(MetaType)) {
  const MetaValue* value = gguf.find(key);
  if (value == nullptr) {
    if (optional) return value;
    return failure(gguf.name(), ": metadata key ", in_quotes(key), " is missing");
  }
  if (value->is_array || !fits(value->type)) {
    return failure(gguf.name(), ": metadata key ", in_quotes(key), " should be ", wanted,
                   " but is ", value->is_array ? "an array of " : "", type_name(value->type));
  }
  return value;
}

Result<const MetaValue*> array(const Gguf& gguf, std::string_view key, const char* wanted,
                               bool (*fits)(MetaType)) {
  const MetaValue* value = gguf.find(key);
  if (value == nullptr)
    return failure(gguf.name(), ": metadata key ", in_quotes(key), " is missing");
  if (!value->is_array || !fits(value->type)) {
    return failure(gguf.name(), ": metadata key ", in_quotes(key), " should be an array of ",
                   wanted, " but is ", value->is_array ? "an array of " : "",
                   type_name(value->type));
  }
  return value;
}

bool is_real(MetaType type) {
  return type == MetaType::f32 || type == MetaType::f64;
}
bool is_bool(MetaType type) {
  return type == MetaType::boolean;
}
bool is_string(MetaType type) {
  return type == MetaType::string;
}

double real_at(const MetaValue& value, std::uint64_t index) {
  return value.type == MetaType::f32 ? static_cast<double>(load_le<float>(value.bytes, index * 4))
                                     : load_le<double>(value.bytes, index * 8);
}

}   // namespace

const MetaValue* Gguf::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> Gguf::keys() const {
  std::vector<std::string_view> out;
  out.reserve(metadata_.size());
  for (const auto& [key, value] : metadata_) out.push_back(key);
  return out;
}

Result<std::uint64_t> Gguf::get_unsigned(std::string_view key,
                                         std::optional<std::uint64_t> fallback) const {
  const auto value = scalar(*this, key, fallback.has_value(), "an integer", is_integer);
  if (value.has_error()) return value.error();
  if (*value == nullptr) return *fallback;
  const auto number = integer_at(**value, 0);
  if (!number || *number < 0) {
    return failure(name_, ": metadata key ", in_quotes(key), " is negative or too large");
  }
  return static_cast<std::uint64_t>(*number);
}

Result<double> Gguf::get_real(std::string_view key, std::optional<double> fallback) const {
  const auto value = scalar(*this, key, fallback.has_value(), "a floating-point number", is_real);
  if (value.has_error()) return value.error();
  if (*value == nullptr) return *fallback;
  const double number = real_at(**value, 0);
  if (!std::isfinite(number)) {
    return failure(name_, ": metadata key ", in_quotes(key), " is not a finite number");
  }
  return number;
}

Result<bool> Gguf::get_bool(std::string_view key, std::optional<bool> fallback) const {
  const auto value = scalar(*this, key, fallback.has_value(), "a bool", is_bool);
  if (value.has_error()) return value.error();
  if (*value == nullptr) return *fallback;
  return (*value)->bytes[0] != std::byte{0};
}

Result<std::string_view> Gguf::get_string(std::string_view key,
                                          std::optional<std::string_view> fallback) const {
  const auto value = scalar(*this, key, fallback.has_value(), "a string", is_string);
  if (value.has_error()) return value.error();
  if (*value == nullptr) return *fallback;
  return as_text((*value)->bytes.subspan(8));
}

Result<std::vector<std::string_view>> Gguf::get_strings(std::string_view key) const {
  const auto value = array(*this, key, "strings", is_string);
  if (value.has_error()) return value.error();
  std::vector<std::string_view> out;
  out.reserve((*value)->count);
  ByteReader reader{(*value)->bytes};
  for (std::uint64_t i = 0; i < (*value)->count; ++i) {
    std::uint64_t length = 0;
    std::span<const std::byte> text;
    const bool whole = reader.take(length) && reader.take(length, text);
    DUET_ASSERT(whole, i, length);   // the parser walked these strings
    out.push_back(as_text(text));
  }
  return out;
}

Result<std::vector<float>> Gguf::get_reals(std::string_view key) const {
  const auto value = array(*this, key, "floating-point numbers", is_real);
  if (value.has_error()) return value.error();
  std::vector<float> out((*value)->count);
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(real_at(**value, i));
    if (!std::isfinite(out[i])) {
      return failure(name_, ": metadata key ", in_quotes(key), ": element ", i, " is not finite");
    }
  }
  return out;
}

Result<std::vector<std::int64_t>> Gguf::get_integers(std::string_view key) const {
  const auto value = array(*this, key, "integers", is_integer);
  if (value.has_error()) return value.error();
  std::vector<std::int64_t> out((*value)->count);
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    const auto number = integer_at(**value, i);
    if (!number)
      return failure(name_, ": metadata key ", in_quotes(key), ": element ", i, " is too large");
    out[i] = *number;
  }
  return out;
}

const GgufTensor* Gguf::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> Gguf::data(const GgufTensor& tensor) const {
  DUET_ASSERT(tensor.offset <= bytes_.size() && tensor.bytes <= bytes_.size() - tensor.offset,
              tensor.offset, tensor.bytes);
  return bytes_.subspan(tensor.offset, tensor.bytes);
}

void Gguf::forget(std::span<const std::byte> part) const {
  if (file_ != nullptr) file_->forget(part);
}

}   // namespace duet::device
