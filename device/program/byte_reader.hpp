// byte_reader.hpp: takes little-endian values from a span and never leaves it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace duet::device {

static_assert(std::endian::native == std::endian::little,
              "the file formats here are little-endian");

/// A little-endian value at `offset`, which must lie inside `bytes` (checked by the caller).
template <typename T>
[[nodiscard]] T load_le(std::span<const std::byte> bytes, std::uint64_t offset = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// `a + b` and `a * b`, or nothing if the result does not fit.
[[nodiscard]] inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
[[nodiscard]] inline std::optional<std::uint64_t> checked_multiply(std::uint64_t a,
                                                                   std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// A cursor over bytes. A failed take leaves the position where it was.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size() - position_; }

  template <typename T>
  [[nodiscard]] bool take(T& value) {
    if (left() < sizeof value) return false;
    value = load_le<T>(bytes_, position_);
    position_ += sizeof value;
    return true;
  }
  [[nodiscard]] bool take(std::uint64_t count, std::span<const std::byte>& out) {
    if (left() < count) return false;
    out = bytes_.subspan(position_, count);
    position_ += count;
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
};

[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
[[nodiscard]] inline std::span<const std::byte> as_byte_span(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}   // namespace duet::device
