// jinja_text.hpp: Python's text operations on texts that keep their origin. Internal to jinja_*.
#pragma once

#include "text/jinja_value.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace duet::text {

/// str(value).
[[nodiscard]] TemplatedText jinja_text(const JinjaValue& value, JinjaBudget& budget);

/// Offsets of the characters of `text`, and its size behind them.
[[nodiscard]] std::vector<std::size_t> character_offsets(std::string_view text);
/// Number of characters (code points).
[[nodiscard]] std::size_t character_count(std::string_view text) noexcept;

/// text.find(wanted, from), in linear time whatever the two are.
[[nodiscard]] std::size_t find_text(std::string_view text, std::string_view wanted,
                                    std::size_t from = 0) noexcept;

enum class LetterCase : std::uint8_t { lower, upper, title, capitalized };
[[nodiscard]] TemplatedText with_case(const TemplatedText& text, LetterCase letter_case);

/// Takes away the characters of `set` (blanks when it is null) at the ends.
[[nodiscard]] TemplatedText strip(const TemplatedText& text, const TemplatedText* set, bool left,
                                  bool right);

/// str.split and str.rsplit: by blanks when `separator` is null, which must not be empty.
/// `splits_max` below zero: no limit.
[[nodiscard]] JinjaList split(const TemplatedText& text, const TemplatedText* separator,
                              std::int64_t splits_max, bool from_right, JinjaBudget& budget);
[[nodiscard]] JinjaList split_lines(const TemplatedText& text, bool keep_ends, JinjaBudget& budget);

/// `count_max` below zero: no limit.
[[nodiscard]] TemplatedText replace(const TemplatedText& text, const TemplatedText& from,
                                    const TemplatedText& to, std::int64_t count_max,
                                    JinjaBudget& budget);

}   // namespace duet::text
