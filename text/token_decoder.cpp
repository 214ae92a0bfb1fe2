// token_decoder.cpp: turns tokens into text one by one, never half a character.
#include "text/token_decoder.hpp"

#include <utility>

namespace duet::text {

TokenDecoder::TokenDecoder(Tokenizer tokenizer, DecodeFrom from)
    : tokenizer_(std::move(tokenizer)),
      from_(from),
      strip_blank_(from == DecodeFrom::text_start && tokenizer_.adds_space_prefix()) {}

Result<void> TokenDecoder::push(TokenId id, std::string& out) {
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  if (id >= vocabulary.size()) {
    return Error{errc::token_out_of_range, "token " + std::to_string(id) +
                                               " is not in the vocabulary of " +
                                               std::to_string(vocabulary.size())};
  }
  if (!vocabulary.shown(id)) return {};
  std::string_view bytes = vocabulary.bytes(id);
  if (strip_blank_ && !bytes.empty()) {
    if (bytes.front() == ' ') bytes.remove_prefix(1);
    strip_blank_ = false;
  }
  stream_.push(bytes, out);
  return {};
}

void TokenDecoder::flush(std::string& out) {
  stream_.flush(out);
  strip_blank_ = from_ == DecodeFrom::text_start && tokenizer_.adds_space_prefix();
}

Result<std::string> decode(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                           DecodeFrom from) {
  TokenDecoder decoder{tokenizer, from};
  std::string out;
  for (std::size_t at = 0; at < ids.size(); ++at) {
    if (auto done = decoder.push(ids[at], out); !done) {
      Error error = std::move(done).error();
      error.message += " (position " + std::to_string(at) + ")";
      return error;
    }
  }
  decoder.flush(out);
  return out;
}

}   // namespace duet::text
