// json_text.cpp: escapes and numbers.
#include "http/json_text.hpp"

#include "http/limits.hpp"
#include "text/utf8.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace duet::http {

namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

constexpr auto needs_escape = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < 0x20; ++c) table[c] = true;
  table['"'] = true;
  table['\\'] = true;
  return table;
}();

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += hex_digits[static_cast<unsigned char>(c) >> 4U];
      out += hex_digits[static_cast<unsigned char>(c) & 15U];
  }
}

template <typename T, typename... Format>
void append_chars(std::string& out, T value, Format... format) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, format...);
  out.append(digits.data(), end.ptr);
}

}   // namespace

void append_json_escaped(std::string& out, std::string_view utf8) {
  std::size_t from = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    if (!needs_escape[static_cast<unsigned char>(utf8[i])]) continue;
    out.append(utf8.data() + from, i - from);
    append_escape(out, utf8[i]);
    from = i + 1;
  }
  out.append(utf8.data() + from, utf8.size() - from);
}

void append_json_string(std::string& out, std::string_view utf8) {
  out += '"';
  append_json_escaped(out, utf8);
  out += '"';
}

void append_json_repaired(std::string& out, std::string_view bytes) {
  text::Utf8Stream repair;
  std::string repaired;
  repair.push(bytes, repaired);
  repair.flush(repaired);
  append_json_string(out, repaired);
}

void append_number(std::string& out, std::uint64_t value) {
  append_chars(out, value);
}

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  append_chars(out, value);
}

void append_hex(std::string& out, std::uint64_t value) {
  append_chars(out, value, 16);
}

std::string bounded_echo(std::string_view bytes) {
  text::Utf8Stream repair;
  std::string repaired;
  repair.push(bytes.substr(0, limits::echo_bytes_max), repaired);
  if (bytes.size() <= limits::echo_bytes_max) {
    repair.flush(repaired);
    return repaired;
  }
  // A character that the cut went through is held back and so left out.
  return repaired + "...";
}

}   // namespace duet::http
