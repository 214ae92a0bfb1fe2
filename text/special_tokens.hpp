// special_tokens.hpp: finds whole tokens in text before it is tokenized.
//
// Control tokens (turn and end markers) are found only in text that a chat template wrote, never in
// what a client sent: otherwise a message could end its own turn and speak for somebody else. So
// are unknown tokens, and user-defined tokens that look like a marker (`</s>`, `<tool_call>`,
// `[INST]`): vocabularies are not careful about that type. Other user-defined tokens (runs of
// blanks, words) are plain vocabulary and are found everywhere.
#pragma once

#include "text/tokenizer_json.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace duet::text {

/// Whether a user-defined token is to be treated as a control token: `<...>`, `[A...]`.
[[nodiscard]] bool looks_like_marker(std::string_view spelling) noexcept;

struct TokenMatch {
  TokenId id = 0;
  std::uint32_t size = 0;   ///< Bytes of text; 0 when nothing was found.
};

/// A set of spellings, kept sorted; a lookup narrows the range byte by byte. Immutable after
/// creation; any thread. It copies the spellings.
class SpellingSet {
 public:
  /// Of equal spellings the first id given wins; empty ones are left out.
  explicit SpellingSet(std::vector<std::pair<std::string, TokenId>> entries);

  /// The longest spelling that `text` begins with.
  [[nodiscard]] TokenMatch longest_at_front(std::string_view text) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

 private:
  std::vector<std::pair<std::string, TokenId>> entries_;
  std::array<bool, 256> first_bytes_{};
};

/// The two sets of a vocabulary: what is found in a template's own text, and what everywhere.
struct SpecialTokens {
  explicit SpecialTokens(const TokenizerData& data);
  SpellingSet in_markup;
  SpellingSet everywhere;
};

}   // namespace duet::text
