// values.hpp: numbers, durations and sizes as they are written in a configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace duet::config {

/// Decimal digits without sign and leading zeros; a number above 2^64-1 reads as 2^64-1, so that it
/// is out of every range.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text);

/// A number and its unit without a space: 250ms, 30s, 5m, 2h; "0" needs none. Milliseconds. A bare
/// number is refused, so that nobody is wrong by a thousand.
[[nodiscard]] std::optional<std::uint64_t> parse_duration(std::string_view text);

/// Bytes as a number, or a number with KiB, MiB or GiB (powers of 1024) without a space.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// The shortest spelling that reads back as the same value.
[[nodiscard]] std::string print_duration(std::uint64_t milliseconds);
[[nodiscard]] std::string print_size(std::uint64_t bytes);

}   // namespace duet::config
