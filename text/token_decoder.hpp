// token_decoder.hpp: turns tokens into text one by one, never half a character.
#pragma once

#include "text/tokenizer.hpp"
#include "text/utf8.hpp"

#include <span>
#include <string>

namespace duet::text {

/// text_start: the tokens are a whole text as encode() made it, whose first blank it added itself.
/// continuation: they go on after other tokens, as an answer does; a first blank is kept.
enum class DecodeFrom : std::uint8_t { text_start, continuation };

/// One decoder a sequence. Not thread-safe; `tokenizer` may be destroyed before it. Once `out` has
/// room, nothing is allocated.
class TokenDecoder {
 public:
  TokenDecoder(Tokenizer tokenizer, DecodeFrom from);

  /// Appends what `id` completes: control, unknown and unused tokens give nothing; bytes that begin
  /// a character are held until it is complete. Errors: token_out_of_range.
  [[nodiscard]] Result<void> push(TokenId id, std::string& out);
  /// End of the sequence: an incomplete character becomes U+FFFD. Ready for the next sequence.
  void flush(std::string& out);

 private:
  Tokenizer tokenizer_;
  Utf8Stream stream_;
  DecodeFrom from_;
  bool strip_blank_;   // the next token with text loses one leading blank
};

/// A whole sequence at once. Errors: token_out_of_range, naming the position.
[[nodiscard]] Result<std::string> decode(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                                         DecodeFrom from);

}   // namespace duet::text
