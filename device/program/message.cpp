// message.cpp: quoting and UTF-8 checks for error texts.
#include "device/program/message.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace duet::device {
namespace {

constexpr std::size_t quoted_bytes_max = 80;   // a line of a report stays readable
constexpr std::size_t name_bytes_max = 128;    // longer names are never typed by a person

/// Length of the UTF-8 sequence at the front of `text`, or 0 if it is malformed.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;   // overlong
  if (lead == 0xed && byte(1) > 0x9f) return 0;   // surrogate
  if (lead == 0xf0 && byte(1) < 0x90) return 0;   // overlong
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;   // above U+10FFFF
  return length;
}

}   // namespace

void throw_exception_from_error(const Error& error, const boost::source_location& /*where*/) {
  throw std::runtime_error(error.message);
}

std::string in_quotes(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, quoted_bytes_max)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  if (text.size() > quoted_bytes_max) out += "...";
  return out + "'";
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_plain_name(std::string_view text) {
  if (text.empty() || text.size() > name_bytes_max || text[0] == '.' || text[0] == '-')
    return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

}   // namespace duet::device
