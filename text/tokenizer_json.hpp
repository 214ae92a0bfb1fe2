// tokenizer_json.hpp: the tokenizer document that a package carries as `tokenizer.json`.
//
// One JSON object; every key below must be there, none else may (null where null is allowed):
//   format            "duet-tokenizer/v1"
//   model             "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE with byte fallback)
//   pre               name of the pre-tokenizer, see pre_tokenizer.hpp; unused for "llama"
//   tokens            array of strings: the id is the index. As in GGUF: for "gpt2" in the
//   printable
//                     stand-in letters of GPT-2, for "llama" with U+2581 for a blank
//   token_types       array of integers of the same length, see TokenType
//   scores            "llama": array of finite numbers of the same length; "gpt2": [] or null
//   merges            "gpt2": array of "left right", the best first; "llama": [] or null
//   bos_id eos_id unknown_id padding_id eot_id        token id or null
//   add_bos add_eos add_space_prefix                  boolean
//   chat_template     string (Jinja) or null
// Two tokens may have the same text: the lower id is used for encoding, both decode. An empty token
// is never used for encoding.
#pragma once

#include "text/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

using TokenId = std::uint32_t;

/// The numbers are those of GGUF's `tokenizer.ggml.token_type`.
enum class TokenType : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

enum class TokenizerModel : std::uint8_t { byte_bpe, sentencepiece_bpe };

/// What the document says, checked: sizes agree, ids are in range, texts are UTF-8 within limits.
struct TokenizerData {
  TokenizerModel model = TokenizerModel::byte_bpe;
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<TokenType> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::optional<TokenId> bos, eos, unknown, padding, eot;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  std::optional<std::string> chat_template;
};

/// Reads a document. Errors: tokenizer_invalid, with the key and what to do. Any thread; the result
/// keeps nothing of `document`.
[[nodiscard]] Result<TokenizerData> parse_tokenizer_json(std::string_view document);

}   // namespace duet::text
