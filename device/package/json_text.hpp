// json_text.hpp: writes JSON so that the same values give the same bytes.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace duet::device {

/// `text` (UTF-8) between double quotes, escaped as JSON; also a YAML double-quoted scalar.
[[nodiscard]] std::string json_string(std::string_view text);

/// The shortest text that reads back as the same number; integers in decimal.
template <typename T>
requires std::is_arithmetic_v<T>
[[nodiscard]] std::string number_text(T value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

/// "[a,b,c]" with `write(item)` for each.
template <typename Range, typename Write>
[[nodiscard]] std::string json_array(const Range& items, const Write& write) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ',';
    out += write(item);
  }
  return out + "]";
}

}   // namespace duet::device
