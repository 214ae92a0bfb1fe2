// tokenizer_metadata.hpp: GGUF tokenizer metadata → the tokenizer document of a package
// (tokenizer.json).
//
// The document "duet-tokenizer/v1" is one JSON object with the keys format, model ("gpt2" or
// "llama"), pre, tokens, token_types, scores, merges, bos_id, eos_id, unknown_id, padding_id,
// eot_id (id or null), add_bos, add_eos, add_space_prefix, chat_template (text or null);
// docs/package.md says what each means.
#pragma once

#include "device/package/gguf.hpp"
#include "device/program/message.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

namespace tokenizer_limits {
inline constexpr std::uint64_t tokens_max = 1U << 20;   // the largest known vocabulary has 2^18
inline constexpr std::uint64_t merges_max = 1U << 20;
inline constexpr std::uint64_t token_bytes_max = 4096;   // runs of blanks are the longest tokens
inline constexpr std::uint64_t template_bytes_max =
    256U << 10;   // the longest known one is below 64 KiB
inline constexpr std::uint64_t document_bytes_max = 32U << 20;
}   // namespace tokenizer_limits

/// Converts the keys `tokenizer.*`. Defaults of absent keys are llama.cpp's, with one difference: a
/// "gpt2" file without bos or eos id gets none, where llama.cpp takes token 11 (right for one old
/// model, a comma in others). The same metadata gives the same bytes. Errors name the key and the
/// element.
[[nodiscard]] Result<std::string> tokenizer_document(const Gguf& gguf);

/// Checks that `document` is a tokenizer document with `vocabulary` tokens at most, as far as a
/// package needs it: sizes and ids. `file` begins every error. The text library reads it in full.
[[nodiscard]] Result<void> check_tokenizer_document(std::string_view document,
                                                    std::uint64_t vocabulary,
                                                    const std::string& file);

/// The ids of the document's tokens of type normal, ascending: those that are plain text
/// and none of its special ids. `file`
/// begins every error.
[[nodiscard]] Result<std::vector<std::uint32_t>> ordinary_tokens(std::string_view document,
                                                                 const std::string& file);

}   // namespace duet::device
