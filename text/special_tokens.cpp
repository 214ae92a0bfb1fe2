// special_tokens.cpp: finds whole tokens in text before it is tokenized.
#include "text/special_tokens.hpp"

#include "runtime/assert.hpp"

#include <algorithm>

namespace duet::text {
namespace {

std::vector<std::pair<std::string, TokenId>> select(const TokenizerData& data, bool markup) {
  DUET_ASSERT(data.tokens.size() == data.types.size(), data.tokens.size(), data.types.size());
  std::vector<std::pair<std::string, TokenId>> chosen;
  for (std::size_t id = 0; id < data.tokens.size(); ++id) {
    const TokenType type = data.types[id];
    const bool user_defined = type == TokenType::user_defined;
    const bool wanted =
        markup ? type == TokenType::control || type == TokenType::unknown || user_defined
               : user_defined && !looks_like_marker(data.tokens[id]);
    if (wanted) chosen.emplace_back(data.tokens[id], static_cast<TokenId>(id));
  }
  return chosen;
}

}   // namespace

bool looks_like_marker(std::string_view spelling) noexcept {
  if (spelling.size() < 3) return false;
  if (spelling.front() == '<' && spelling.back() == '>') return true;
  const char second = spelling.front() == '[' ? spelling[spelling[1] == '/' ? 2 : 1] : '\0';
  return spelling.back() == ']' && second >= 'A' && second <= 'Z';
}

SpellingSet::SpellingSet(std::vector<std::pair<std::string, TokenId>> entries)
    : entries_(std::move(entries)) {
  std::erase_if(entries_, [](const auto& entry) { return entry.first.empty(); });
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
  for (const auto& entry : entries_) {
    first_bytes_[static_cast<std::uint8_t>(entry.first.front())] = true;
  }
}

TokenMatch SpellingSet::longest_at_front(std::string_view text) const noexcept {
  TokenMatch found;
  if (text.empty() || !first_bytes_[static_cast<std::uint8_t>(text.front())]) return found;
  auto low = entries_.begin();
  auto high = entries_.end();
  // The invariant: [low, high) are the spellings that begin with the first `depth` bytes of text.
  for (std::size_t depth = 0; depth < text.size() && low != high; ++depth) {
    const auto byte = static_cast<std::uint8_t>(text[depth]);
    // A spelling that ends here sorts before all longer ones.
    const auto key = [depth](const auto& entry) {
      return entry.first.size() <= depth ? -1 : int{static_cast<std::uint8_t>(entry.first[depth])};
    };
    low = std::partition_point(low, high, [&](const auto& entry) { return key(entry) < byte; });
    high = std::partition_point(low, high, [&](const auto& entry) { return key(entry) <= byte; });
    if (low != high && low->first.size() == depth + 1) {
      found = {low->second, static_cast<std::uint32_t>(depth + 1)};
    }
  }
  return found;
}

SpecialTokens::SpecialTokens(const TokenizerData& data)
    : in_markup(select(data, true)), everywhere(select(data, false)) {}

}   // namespace duet::text
