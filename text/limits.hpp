// limits.hpp: every bound of text/, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

namespace duet::text::limits {

// Tokenizer documents. The largest public vocabularies have 262,144 tokens and 514,906 merges.
inline constexpr std::size_t vocabulary_max = 1U << 20;
inline constexpr std::size_t merges_max = 1U << 20;
// The longest tokens of public vocabularies are runs of a few hundred blanks.
inline constexpr std::size_t token_bytes_max = 4096;
// A document of a quarter million tokens is 15 MB. Parsed, a hostile document of this size takes
// at most eight times as much memory (two bytes, `1,`, become a value of sixteen bytes).
inline constexpr std::size_t document_bytes_max = 32U << 20;
inline constexpr std::size_t document_depth_max = 4;   // an object of arrays of scalars needs two
inline constexpr std::size_t template_bytes_max = 256U << 10;   // the longest public one has 20 KB

// One text to encode. A context of a million tokens is about five megabytes; the working memory of
// a merge is up to 40 bytes a byte of text.
inline constexpr std::size_t text_bytes_max = 8U << 20;
// Backtracking of one pattern match. A match needs a few steps a character of what it passes over,
// and can pass over the whole text (a run of blanks).
inline constexpr std::uint32_t pattern_match_max = 64U << 20;
inline constexpr std::uint32_t pattern_heap_kib_max = 64U << 10;
static_assert(pattern_match_max >= 8 * text_bytes_max);

// Templates. The deepest public templates nest about twelve expressions; the parser and the
// renderer use a few hundred bytes of stack a level, so this stays far below a coroutine's thread.
inline constexpr std::uint32_t template_depth_max = 128;
// Levels that a rendering may stand in at once: those of the nodes, through calls of macros.
inline constexpr std::uint32_t template_call_depth_max = 512;
inline constexpr std::size_t template_nodes_max = 1U << 17;   // two bytes of source a node
// Work of one rendering: one unit a node evaluated and one for each 16 bytes copied. It bounds
// time (some 100 ms) and, as every byte kept was copied once, memory.
inline constexpr std::uint64_t template_work_max = 16U << 20;
inline constexpr std::size_t template_output_max = text_bytes_max;
inline constexpr std::size_t template_list_max = 1U << 20;   // items of one list, as of range()

// Stop strings. OpenAI allows 4; some clients send every role marker they know.
inline constexpr std::size_t stops_max = 16;
inline constexpr std::size_t stop_bytes_max = 1024;

// Sampling. OpenAI allows 20 top log-probabilities and 1024 biased tokens are more than any client
// sends.
inline constexpr std::size_t top_logprobs_max = 20;
inline constexpr std::size_t logit_bias_max = 1024;

}   // namespace duet::text::limits
