// stop_matcher.hpp: ends a stream of text at the first stop string, across any borders.
#pragma once

#include "text/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

/// Passes text on until a stop string is complete. The stop that is complete first counts, of
/// several at the same byte the one that began first; so the result does not depend on how the text
/// was cut into pieces. Bytes that may be the beginning of a stop are held back. Text and stops are
/// whole UTF-8, so what is passed on is, too. One object a sequence; not thread-safe; nothing is
/// allocated once `out` has room.
class StopMatcher {
 public:
  /// Without stops everything is passed on at once.
  StopMatcher() = default;
  /// Errors: parameter_invalid: a stop is empty, not UTF-8 or longer than limits::stop_bytes_max,
  /// or there are more than limits::stops_max.
  [[nodiscard]] static Result<StopMatcher> create(std::vector<std::string> stops);

  /// Appends to `out` what is certain to stand before any stop. True when a stop is complete: the
  /// sequence ends here, later text is ignored.
  [[nodiscard]] bool push(std::string_view text, std::string& out);
  /// End of the sequence without a stop: appends what was held back.
  void flush(std::string& out);

  /// Index of the stop that ended the sequence.
  [[nodiscard]] std::optional<std::size_t> matched() const noexcept { return matched_; }
  [[nodiscard]] std::size_t held() const noexcept { return held_.size(); }

 private:
  struct Stop {
    std::string text;
    std::vector<std::uint16_t> fallback;   // Knuth, Morris, Pratt: the longest border of a prefix
    std::uint16_t state = 0;               // bytes of the stop that the text ends with
  };

  std::vector<Stop> stops_;
  std::string held_;   // the longest end of the text that begins a stop
  std::optional<std::size_t> matched_;
};

}   // namespace duet::text
