// choice.cpp: sample, decode, look for stops.
#include "actors/choice.hpp"

#include "runtime/assert.hpp"

#include <utility>

namespace duet::actors {

text::Result<Choice> Choice::create(std::shared_ptr<const ModelProfile> profile,
                                    ChoiceOptions options, std::span<const text::TokenId> prompt) {
  DUET_ASSERT(options.tokens_max > 0);
  auto stops = text::StopMatcher::create(options.stop);
  if (!stops) return stops.error();
  auto sampler =
      text::Sampler::create(options.sampling, profile->tokenizer.vocabulary().size(), prompt);
  if (!sampler) return sampler.error();
  return Choice(std::move(profile), std::move(options), std::move(*sampler), std::move(*stops));
}

Choice::Choice(std::shared_ptr<const ModelProfile> profile, ChoiceOptions options,
               text::Sampler sampler, text::StopMatcher stops)
    : profile_(std::move(profile)),
      options_(std::move(options)),
      sampler_(std::move(sampler)),
      stops_(std::move(stops)),
      decoder_(profile_->tokenizer, text::DecodeFrom::continuation) {}

void Choice::finish(FinishReason reason) {
  if (!stops_.matched().has_value()) {
    piece_.clear();
    decoder_.flush(piece_);
    if (stops_.push(piece_, text_)) reason = FinishReason::stop;
    stops_.flush(text_);
  }
  finished_ = reason;
}

text::Result<void> Choice::note_logprobs(std::span<const float> logits, text::TokenId token,
                                         ChoiceScratch& scratch) {
  scratch.top.resize(options_.logprobs_top);
  const auto chosen = text::token_logprobs(logits, token, scratch.top, scratch.logprobs);
  if (!chosen) return chosen.error();
  tokens_.push_back({*chosen, scratch.top});
  return {};
}

text::Result<text::TokenId> Choice::take(std::span<const float> logits, ChoiceScratch& scratch) {
  DUET_ASSERT(!finished_.has_value());
  const auto token = sampler_.choose(logits, count_, scratch.sampler);
  if (!token) return token.error();
  sampler_.add(*token);
  ++count_;
  if (profile_->tokenizer.is_stop_token(*token)) {
    finish(FinishReason::stop);
    return token;
  }
  if (options_.logprobs) {
    if (auto noted = note_logprobs(logits, *token, scratch); !noted) return noted.error();
  }
  piece_.clear();
  if (auto decoded = decoder_.push(*token, piece_); !decoded) return decoded.error();
  if (stops_.push(piece_, text_)) {
    finish(FinishReason::stop);
  } else if (count_ >= options_.tokens_max) {
    finish(FinishReason::length);
  }
  return token;
}

OutputDelta Choice::take_delta(std::uint32_t index) {
  taken_.swap(text_);
  text_.clear();
  tokens_taken_.swap(tokens_);
  tokens_.clear();
  const auto view = [this](const text::TokenLogprob& logprob) {
    return OutputLogprob{logprob.token, profile_->tokenizer.vocabulary().bytes(logprob.token),
                         logprob.logprob};
  };
  views_.clear();
  token_views_.clear();
  for (const Noted& noted : tokens_taken_) {
    for (const text::TokenLogprob& logprob : noted.top) views_.push_back(view(logprob));
  }
  std::size_t first = 0;
  for (const Noted& noted : tokens_taken_) {
    token_views_.push_back(
        {view(noted.chosen), std::span(views_).subspan(first, noted.top.size())});
    first += noted.top.size();
  }
  return {index, taken_, token_views_};
}

}   // namespace duet::actors
