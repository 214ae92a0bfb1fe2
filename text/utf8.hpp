// utf8.hpp: UTF-8 one character at a time, and its incremental repair.
// Source of the rules: The Unicode Standard, section 3.9, tables 3-7 and 3-8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace duet::text {

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Bytes of the well-formed character at the front of `text` (1 to 4), or 0 when there is none.
[[nodiscard]] std::size_t utf8_character_size(std::string_view text) noexcept;

/// Offset of the first byte that is not part of a well-formed character; text.size() when all are.
[[nodiscard]] std::size_t utf8_valid_prefix(std::string_view text) noexcept;

/// The code point of a well-formed character of 1 to 4 bytes.
[[nodiscard]] char32_t utf8_decode(std::string_view character) noexcept;

/// Appends a code point (no surrogate, at most 0x10FFFF).
void utf8_append(std::string& out, char32_t code_point);

/// Makes well-formed UTF-8 of a stream of bytes that may be cut anywhere: a character is passed on
/// when it is complete; each maximal subpart of an ill-formed sequence becomes one U+FFFD, as soon
/// as it is certain that it is ill-formed. Holds back at most three bytes. Not thread-safe; no heap
/// but `out`.
class Utf8Stream {
 public:
  /// Appends to `out` what has become certain.
  void push(std::string_view bytes, std::string& out);
  /// End of the stream: a sequence that was begun becomes one U+FFFD. Ready for a new stream.
  void flush(std::string& out);
  [[nodiscard]] std::size_t held() const noexcept { return held_size_; }

 private:
  void push_byte(std::uint8_t byte, std::string& out);
  void begin(std::uint8_t byte, std::string& out);

  std::array<char, 4> held_{};
  std::uint8_t held_size_ = 0;
  std::uint8_t missing_ = 0;       // bytes until the character is complete
  std::uint8_t next_low_ = 0x80;   // range of the next byte
  std::uint8_t next_high_ = 0xBF;
};

}   // namespace duet::text
