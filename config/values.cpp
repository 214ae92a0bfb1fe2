// values.cpp: reads and prints numbers with units.
#include "config/values.hpp"

#include <array>
#include <limits>

namespace duet::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first: printing takes the first that divides.
constexpr std::array<Unit, 4> duration_units = {
    {{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
constexpr std::array<Unit, 4> size_units = {
    {{"GiB", 1U << 30U}, {"MiB", 1U << 20U}, {"KiB", 1U << 10U}, {"", 1}}};

template <typename Units>
std::optional<std::uint64_t> parse(std::string_view text, const Units& units) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const auto number = parse_number(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name != text.substr(digits)) continue;
    constexpr auto top = std::numeric_limits<std::uint64_t>::max();
    return *number > top / unit.factor ? top : *number * unit.factor;
  }
  return std::nullopt;
}

template <typename Units>
std::string print(std::uint64_t value, const Units& units) {
  for (const Unit& unit : units) {
    if (value % unit.factor == 0) {
      return std::to_string(value / unit.factor) + std::string(unit.name);
    }
  }
  return std::to_string(value);   // not reached: the last factor is 1
}

}   // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  constexpr auto top = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    value = value > (top - digit) / 10 ? top : value * 10 + digit;
  }
  return value;
}

std::optional<std::uint64_t> parse_duration(std::string_view text) {
  if (text == "0") return 0;
  return parse(text, duration_units);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  return parse(text, size_units);
}

std::string print_duration(std::uint64_t milliseconds) {
  return milliseconds == 0 ? "0" : print(milliseconds, duration_units);
}

std::string print_size(std::uint64_t bytes) {
  return bytes == 0 ? "0" : print(bytes, size_units);
}

}   // namespace duet::config
