// vocabulary.hpp: the tokens of a model: text to id for encoding, id to bytes for decoding.
#pragma once

#include "text/tokenizer_json.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

inline constexpr TokenId no_token = std::numeric_limits<TokenId>::max();

/// Immutable after creation; any thread.
class Vocabulary {
 public:
  /// Errors: tokenizer_invalid: for SentencePiece, a byte token that is no byte, or a byte of UTF-8
  /// text that no token can express while there is no unknown token.
  [[nodiscard]] static Result<Vocabulary> create(const TokenizerData& data);

  [[nodiscard]] std::size_t size() const noexcept { return types_.size(); }
  /// `id` < size(), as for the functions below.
  [[nodiscard]] TokenType type(TokenId id) const;
  /// The token as the document spells it, with its stand-ins for bytes and blanks.
  [[nodiscard]] std::string_view spelling(TokenId id) const;
  /// The bytes that the token means: maybe part of a character. Those of a control or unknown token
  /// are its spelling, which belongs into no answer: see shown().
  [[nodiscard]] std::string_view bytes(TokenId id) const;
  /// False for control, unknown and unused tokens.
  [[nodiscard]] bool shown(TokenId id) const;

  /// The token that ordinary text of this spelling may become: never a control, unknown or byte
  /// token, nor a marker (see special_tokens.hpp). no_token when there is none.
  [[nodiscard]] TokenId find_ordinary(std::string_view spelling) const;
  /// The token of any type with this spelling; of several an ordinary one, then the lowest id.
  [[nodiscard]] TokenId find(std::string_view spelling) const;
  /// The token of one byte. Where there is none: for SentencePiece the unknown token; for
  /// byte-level BPE no_token, and the byte is left out of the text (Falcon lacks some control
  /// characters; its own tokenizer leaves them out too).
  [[nodiscard]] TokenId byte_token(std::uint8_t byte) const { return byte_tokens_[byte]; }
  /// Length in bytes of the longest spelling.
  [[nodiscard]] std::size_t spelling_bytes_max() const noexcept { return spelling_bytes_max_; }

 private:
  Vocabulary() = default;
  void index_spellings();
  [[nodiscard]] std::optional<Error> map_bytes(TokenizerModel model,
                                               std::optional<TokenId> unknown);
  void add_bytes(TokenizerModel model, TokenId id);

  std::string spellings_;
  std::string bytes_;
  std::vector<std::uint32_t> spelling_ends_;   // where the spelling of an id ends in spellings_
  std::vector<std::uint32_t> byte_ends_;
  std::vector<TokenType> types_;
  std::vector<bool> ordinary_;
  // Open addressing with linear probing, at most half full. Of equal spellings an ordinary token
  // comes first, then the lowest id.
  std::vector<TokenId> slots_;
  std::array<TokenId, 256> byte_tokens_{};
  std::size_t spelling_bytes_max_ = 0;
};

/// GPT-2's printable stand-in for a byte, as a code point.
[[nodiscard]] char32_t byte_stand_in(std::uint8_t byte) noexcept;

}   // namespace duet::text
