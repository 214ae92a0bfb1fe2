// spelling.cpp: edit distance with swaps (optimal string alignment), for words of bounded length.
#include "config/spelling.hpp"

#include "config/limits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace duet::config {
namespace {

char folded(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Both words are at most key_bytes_max long.
std::size_t distance(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, limits::key_bytes_max + 1>;
  Row before{};   // row i - 2
  Row above{};    // row i - 1
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = above;
    above = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                           folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}   // namespace

std::string_view nearest_key(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.size() > limits::key_bytes_max) return {};
  std::string_view best;
  // One mistake in short words, one more for each further four letters.
  std::size_t best_distance = 2 + word.size() / 4;
  for (const std::string_view candidate : known) {
    if (candidate.size() > limits::key_bytes_max) continue;
    const std::size_t d = distance(word, candidate);
    if (d < best_distance && d < candidate.size()) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}   // namespace duet::config
