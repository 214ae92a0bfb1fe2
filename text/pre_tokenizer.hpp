// pre_tokenizer.hpp: cuts text into the pieces that byte-level BPE may not merge across.
//
// The patterns are those the models were trained with, as published in their tokenizers:
//   gpt-2 (also mpt, olmo, phi-2, roberta-bpe, jina-v2-en), qwen2 (also deepseek-r1-qwen, megrez,
//   stablelm2), llama-bpe (also llama3, llama-v3, falcon3, pixtral), falcon, default (llama.cpp's
//   fallback), smollm (also starcoder, refact, command-r, codeshell)
#pragma once

#include "text/error.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace duet::text {

/// Immutable after creation; any thread.
class PreTokenizer {
 public:
  /// Errors: tokenizer_invalid when the name is none of the list above.
  [[nodiscard]] static Result<PreTokenizer> create(std::string_view name);

  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  /// Writes the end offset of each piece to `ends`, in order; the pieces cover `text`, none is
  /// empty. `text` must be UTF-8. Time is linear in its length.
  /// Errors: text_too_long, pattern_limit.
  [[nodiscard]] Result<void> split(std::string_view text, std::vector<std::uint32_t>& ends) const;

  /// Whether a piece that is a token as a whole is taken as it is, without merges (Llama 3).
  [[nodiscard]] bool whole_pieces_first() const noexcept;

 private:
  struct Patterns;
  explicit PreTokenizer(std::unique_ptr<Patterns> patterns);
  std::unique_ptr<Patterns> patterns_;
};

}   // namespace duet::text
