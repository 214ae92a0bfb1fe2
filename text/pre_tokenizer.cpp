// pre_tokenizer.cpp: cuts text into the pieces that byte-level BPE may not merge across.
#include "text/pre_tokenizer.hpp"

#include "runtime/assert.hpp"
#include "text/limits.hpp"
#include "text/utf8.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <string>
#include <utility>

namespace duet::text {
namespace {

// Unicode's White_Space and its complement. PCRE2's own \s has U+180E too, which the tokenizers'
// libraries do not count as a blank.
#define DUET_BLANK R"(\p{Z}\t-\r\x{85})"

constexpr const char* gpt2_pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" DUET_BLANK "\\p{L}\\p{N}]+|[" DUET_BLANK
    "]+(?![^" DUET_BLANK "])|[" DUET_BLANK "]+";
#define DUET_WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define DUET_MARKS_AND_BLANKS                                                          \
  "| ?[^" DUET_BLANK "\\p{L}\\p{N}]+[\\r\\n]*|[" DUET_BLANK "]*[\\r\\n]+|[" DUET_BLANK \
  "]+(?![^" DUET_BLANK "])|[" DUET_BLANK "]+"
constexpr const char* qwen2_pattern = DUET_WORDS "\\p{N}" DUET_MARKS_AND_BLANKS;
constexpr const char* llama3_pattern = DUET_WORDS "\\p{N}{1,3}" DUET_MARKS_AND_BLANKS;
constexpr const char* falcon_marks_pattern = R"([\p{P}$+<=>^~|`]+)";
constexpr const char* default_marks_pattern = R"([\p{P}$+<=>^~|]+)";
constexpr const char* three_digits_pattern = "[0-9][0-9][0-9]";
constexpr const char* number_pattern = R"(\p{N}+)";
constexpr const char* digit_pattern = R"(\p{N})";

#undef DUET_MARKS_AND_BLANKS
#undef DUET_WORDS
#undef DUET_BLANK

struct Scheme {
  std::array<std::string_view, 6> names;
  // Applied in order, each within the pieces that the ones before have made.
  std::array<const char*, 4> patterns;
  bool whole_pieces_first;
};

constexpr std::array<Scheme, 6> schemes = {{
    {{"gpt-2", "mpt", "olmo", "phi-2", "roberta-bpe", "jina-v2-en"}, {gpt2_pattern}, false},
    {{"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"}, {qwen2_pattern}, false},
    {{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"}, {llama3_pattern}, true},
    {{"falcon"}, {falcon_marks_pattern, gpt2_pattern, three_digits_pattern}, false},
    {{"default"},
     {default_marks_pattern, gpt2_pattern, number_pattern, three_digits_pattern},
     false},
    {{"smollm", "starcoder", "refact", "command-r", "codeshell"},
     {digit_pattern, gpt2_pattern},
     false},
}};

const Scheme* find_scheme(std::string_view name) noexcept {
  if (name.empty()) return nullptr;
  for (const auto& scheme : schemes) {
    for (const auto known : scheme.names) {
      if (known == name) return &scheme;
    }
  }
  return nullptr;
}

struct Free {
  void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
  void operator()(pcre2_match_context* context) const noexcept {
    pcre2_match_context_free(context);
  }
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};
using Code = std::unique_ptr<pcre2_code, Free>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free>;
using MatchData = std::unique_ptr<pcre2_match_data, Free>;

/// Appends the pieces of text[begin, end): the matches, and what lies between them.
Result<void> split_piece(const pcre2_code* code, pcre2_match_context* context,
                         pcre2_match_data* data, std::string_view text, std::uint32_t begin,
                         std::uint32_t end, std::vector<std::uint32_t>& ends) {
  // The piece is the whole subject, so that a look-ahead sees its end as the end of the text.
  const auto piece = text.substr(begin, end - begin);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
  std::size_t at = 0;
  std::size_t covered = 0;
  while (at < piece.size()) {
    // The text was validated once; PCRE2 would do it again from the start at every match.
    std::uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int count = pcre2_match(code, subject, piece.size(), at, options, data, context);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
      // The interpreter keeps its state on the heap, within the context's limit.
      options |= PCRE2_NO_JIT;
      count = pcre2_match(code, subject, piece.size(), at, options, data, context);
    }
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0) {
      return Error{errc::pattern_limit, "the text cannot be split into words (PCRE2 error " +
                                            std::to_string(count) + " at byte " +
                                            std::to_string(begin + at) + "); send a shorter text"};
    }
    const auto* offsets = pcre2_get_ovector_pointer(data);
    DUET_ASSERT(offsets[0] >= at && offsets[1] > offsets[0], offsets[0], offsets[1], at);
    if (offsets[0] > covered) ends.push_back(begin + static_cast<std::uint32_t>(offsets[0]));
    ends.push_back(begin + static_cast<std::uint32_t>(offsets[1]));
    at = covered = offsets[1];
  }
  if (covered < piece.size()) ends.push_back(end);
  return {};
}

}   // namespace

struct PreTokenizer::Patterns {
  std::vector<Code> codes;
  MatchContext context;
  bool whole_pieces_first = false;
};

PreTokenizer::PreTokenizer(std::unique_ptr<Patterns> patterns) : patterns_(std::move(patterns)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  const Scheme* scheme = find_scheme(name);
  if (scheme == nullptr) {
    std::string message = "tokenizer.json: key 'pre': \"";
    message.append(name.substr(0, 64)).append("\" is no pre-tokenizer known here; known are");
    for (const auto& known : schemes) {
      for (const auto alias : known.names) {
        if (!alias.empty()) message.append(" ").append(alias);
      }
    }
    return Error{errc::tokenizer_invalid, std::move(message)};
  }
  auto patterns = std::make_unique<Patterns>();
  patterns->whole_pieces_first = scheme->whole_pieces_first;
  for (const char* pattern : scheme->patterns) {
    if (pattern == nullptr) break;
    int failed = 0;
    PCRE2_SIZE offset = 0;
    Code code{pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP, &failed, &offset, nullptr)};
    DUET_ASSERT(code != nullptr, failed, offset, pattern);   // the patterns are ours
    // Without JIT support the interpreter does the same, slower.
    static_cast<void>(pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE));
    patterns->codes.push_back(std::move(code));
  }
  patterns->context.reset(pcre2_match_context_create(nullptr));
  DUET_ASSERT(patterns->context != nullptr);
  pcre2_set_match_limit(patterns->context.get(), limits::pattern_match_max);
  pcre2_set_heap_limit(patterns->context.get(), limits::pattern_heap_kib_max);
  return PreTokenizer{std::move(patterns)};
}

Result<void> PreTokenizer::split(std::string_view text, std::vector<std::uint32_t>& ends) const {
  ends.clear();
  if (text.empty()) return {};
  if (text.size() > limits::text_bytes_max) {
    return Error{errc::text_too_long, "the text has " + std::to_string(text.size()) +
                                          " bytes, more than " +
                                          std::to_string(limits::text_bytes_max)};
  }
  DUET_DEBUG_ASSERT(utf8_valid_prefix(text) == text.size());
  ends.push_back(static_cast<std::uint32_t>(text.size()));
  std::vector<std::uint32_t> before;
  for (const auto& code : patterns_->codes) {
    const MatchData data{pcre2_match_data_create_from_pattern(code.get(), nullptr)};
    if (data == nullptr) throw std::bad_alloc{};
    before.swap(ends);
    ends.clear();
    std::uint32_t begin = 0;
    for (const std::uint32_t end : before) {
      auto done =
          split_piece(code.get(), patterns_->context.get(), data.get(), text, begin, end, ends);
      if (!done) return done;
      begin = end;
    }
  }
  DUET_ASSERT(ends.back() == text.size(), ends.back(), text.size());
  return {};
}

bool PreTokenizer::whole_pieces_first() const noexcept {
  return patterns_->whole_pieces_first;
}

}   // namespace duet::text
