// tokenizer.cpp: text to token ids and back, for the models we serve.
#include "text/tokenizer.hpp"

#include "runtime/assert.hpp"
#include "text/byte_bpe.hpp"
#include "text/limits.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/sentencepiece_bpe.hpp"
#include "text/special_tokens.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace duet::text {
namespace {

// A model that ends its turn with another token than its eos would never stop; files often name
// one of the two only.
constexpr std::array<std::string_view, 10> end_markers = {
    "<|endoftext|>", "<|im_end|>",    "<|eot_id|>", "<|end|>", "<|end_of_text|>",
    "<|eom_id|>",    "<end_of_turn>", "</s>",       "<EOT>",   "<|end_of_turn|>"};

std::vector<TokenId> find_stop_tokens(const TokenizerData& data) {
  std::vector<TokenId> stops;
  if (data.eos) stops.push_back(*data.eos);
  if (data.eot) stops.push_back(*data.eot);
  for (TokenId id = 0; id < data.tokens.size(); ++id) {
    if (data.types[id] != TokenType::control) continue;
    if (std::find(end_markers.begin(), end_markers.end(), data.tokens[id]) != end_markers.end()) {
      stops.push_back(id);
    }
  }
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  return stops;
}

}   // namespace

struct Tokenizer::State {
  State(TokenizerData from, Vocabulary words)
      : data(std::move(from)),
        vocabulary(std::move(words)),
        specials(data),
        stops(find_stop_tokens(data)),
        sentencepiece(data) {}

  TokenizerData data;   // without tokens, types, scores and merges, which live in the tables
  Vocabulary vocabulary;
  SpecialTokens specials;
  std::vector<TokenId> stops;
  SentencePieceBpe sentencepiece;
  std::optional<PreTokenizer> pre_tokenizer;   // for byte_bpe, as the next
  std::optional<ByteBpe> byte_bpe;
};

struct Tokenizer::Work {
  ByteBpe::Scratch byte_bpe;
  SentencePieceBpe::Scratch sentencepiece;
  std::vector<std::uint32_t> piece_ends;
};

Result<Tokenizer> Tokenizer::from_json(std::string_view document) {
  auto data = parse_tokenizer_json(document);
  if (!data) return std::move(data).error();
  return create(std::move(*data));
}

Result<Tokenizer> Tokenizer::create(TokenizerData data) {
  auto vocabulary = Vocabulary::create(data);
  if (!vocabulary) return std::move(vocabulary).error();
  auto state = std::make_shared<State>(std::move(data), std::move(*vocabulary));
  if (state->data.model == TokenizerModel::byte_bpe) {
    auto pre = PreTokenizer::create(state->data.pre);
    if (!pre) return std::move(pre).error();
    state->pre_tokenizer.emplace(std::move(*pre));
    auto bpe = ByteBpe::create(state->data, state->vocabulary);
    if (!bpe) return std::move(bpe).error();
    state->byte_bpe.emplace(std::move(*bpe));
  }
  state->data.tokens = {};
  state->data.types = {};
  state->data.scores = {};
  state->data.merges = {};
  return Tokenizer{std::move(state)};
}

Result<void> Tokenizer::encode(const TemplatedText& text, AddSpecial add,
                               std::vector<TokenId>& out) const {
  return encode_all(text.text(), text.runs(), add, out);
}

Result<void> Tokenizer::encode(std::string_view content, AddSpecial add,
                               std::vector<TokenId>& out) const {
  std::vector<TemplatedText::Run> runs;
  if (!content.empty()) runs.push_back({content.size(), Origin::content});
  return encode_all(content, runs, add, out);
}

Result<void> Tokenizer::encode_all(std::string_view text,
                                   const std::vector<TemplatedText::Run>& runs, AddSpecial add,
                                   std::vector<TokenId>& out) const {
  if (text.size() > limits::text_bytes_max) {
    return Error{errc::text_too_long, "the text has " + std::to_string(text.size()) +
                                          " bytes, more than " +
                                          std::to_string(limits::text_bytes_max)};
  }
  if (const auto valid = utf8_valid_prefix(text); valid != text.size()) {
    return Error{errc::text_not_utf8, "the text is not UTF-8 at byte " + std::to_string(valid)};
  }
  const std::size_t before = out.size();
  const TokenizerData& data = state_->data;
  const bool bos = add == AddSpecial::yes && data.add_bos;
  if (bos) out.push_back(*data.bos);
  if (auto done = encode_runs(text, runs, out); !done) {
    out.resize(before);
    return done;
  }
  // Only markup can have brought a control token.
  if (bos && out.size() > before + 1 && out[before + 1] == *data.bos &&
      state_->vocabulary.type(*data.bos) == TokenType::control) {
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(before));
  }
  if (add == AddSpecial::yes && data.add_eos) out.push_back(*data.eos);
  return {};
}

Result<void> Tokenizer::encode_runs(std::string_view text,
                                    const std::vector<TemplatedText::Run>& runs,
                                    std::vector<TokenId>& out) const {
  const SpecialTokens& specials = state_->specials;
  Work work;
  std::size_t plain_begin = 0;
  bool after_special = true;
  std::size_t at = 0;
  for (const auto& run : runs) {
    while (at < run.end) {
      // A marker must lie within its run; what is found everywhere may cross into the next one.
      TokenMatch match = specials.everywhere.longest_at_front(text.substr(at));
      if (run.origin == Origin::markup) {
        const auto marker = specials.in_markup.longest_at_front(text.substr(at, run.end - at));
        if (marker.size >= match.size) match = marker;
      }
      if (match.size == 0) {
        ++at;
        continue;
      }
      auto done =
          encode_plain(text.substr(plain_begin, at - plain_begin), after_special, work, out);
      if (!done) return done;
      out.push_back(match.id);
      at += match.size;
      plain_begin = at;
      after_special = true;
    }
  }
  return encode_plain(text.substr(plain_begin), after_special, work, out);
}

Result<void> Tokenizer::encode_plain(std::string_view text, bool after_special, Work& work,
                                     std::vector<TokenId>& out) const {
  if (text.empty()) return {};
  const State& state = *state_;
  if (state.data.model == TokenizerModel::sentencepiece_bpe) {
    state.sentencepiece.encode(text, after_special && state.data.add_space_prefix, state.vocabulary,
                               work.sentencepiece, out);
    return {};
  }
  if (auto done = state.pre_tokenizer->split(text, work.piece_ends); !done) return done;
  std::size_t begin = 0;
  std::string spelling;
  for (const std::uint32_t end : work.piece_ends) {
    const auto piece = text.substr(begin, end - begin);
    begin = end;
    if (state.pre_tokenizer->whole_pieces_first()) {
      spelling.clear();
      for (const char byte : piece) {
        utf8_append(spelling, byte_stand_in(static_cast<std::uint8_t>(byte)));
      }
      if (const TokenId whole = state.vocabulary.find_ordinary(spelling); whole != no_token) {
        out.push_back(whole);
        continue;
      }
    }
    state.byte_bpe->encode(piece, state.vocabulary, work.byte_bpe, out);
  }
  return {};
}

const Vocabulary& Tokenizer::vocabulary() const noexcept {
  return state_->vocabulary;
}
TokenizerModel Tokenizer::model() const noexcept {
  return state_->data.model;
}
std::optional<TokenId> Tokenizer::bos() const noexcept {
  return state_->data.bos;
}
std::optional<TokenId> Tokenizer::eos() const noexcept {
  return state_->data.eos;
}
std::optional<TokenId> Tokenizer::padding() const noexcept {
  return state_->data.padding;
}
const std::vector<TokenId>& Tokenizer::stop_tokens() const noexcept {
  return state_->stops;
}
bool Tokenizer::is_stop_token(TokenId id) const noexcept {
  return std::binary_search(state_->stops.begin(), state_->stops.end(), id);
}
bool Tokenizer::adds_bos() const noexcept {
  return state_->data.add_bos;
}
bool Tokenizer::adds_space_prefix() const noexcept {
  return state_->data.add_space_prefix && model() == TokenizerModel::sentencepiece_bpe;
}
const std::optional<std::string>& Tokenizer::chat_template() const noexcept {
  return state_->data.chat_template;
}

}   // namespace duet::text
