// choice.hpp: one answer in the making: logits in, text out. Pure: no actor, no clock; the same
// logits give the same text.
#pragma once

#include "actors/model_profile.hpp"
#include "actors/output_stream.hpp"
#include "text/logprobs.hpp"
#include "text/sampler.hpp"
#include "text/stop_matcher.hpp"
#include "text/token_decoder.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace duet::actors {

struct ChoiceOptions {
  text::SamplingOptions sampling;   ///< `choice` is the index of the answer.
  std::vector<std::string> stop;
  std::uint32_t tokens_max = 0;   ///< of the answer; at least 1.
  bool logprobs = false;
  std::uint32_t logprobs_top = 0;
};

/// Working memory, one a thread or request.
struct ChoiceScratch {
  text::SamplerScratch sampler;
  text::LogprobScratch logprobs;
  std::vector<text::TokenLogprob> top;
};

class Choice {
 public:
  /// Errors: parameter_invalid of a sampling option or stop string.
  static text::Result<Choice> create(std::shared_ptr<const ModelProfile> profile,
                                     ChoiceOptions options, std::span<const text::TokenId> prompt);

  /// Chooses the next token from `logits` and appends what may be shown to text(). Returns the
  /// token; the answer goes on with it unless finished(). Errors: logits_not_finite.
  text::Result<text::TokenId> take(std::span<const float> logits, ChoiceScratch& scratch);

  /// What has become certain since take_delta() was last called. The views end with the next call.
  [[nodiscard]] OutputDelta take_delta(std::uint32_t index);
  [[nodiscard]] bool has_delta() const { return !text_.empty() || !tokens_.empty(); }

  [[nodiscard]] std::optional<FinishReason> finished() const { return finished_; }
  /// Sampled tokens, the one that ended the answer included.
  [[nodiscard]] std::uint32_t tokens() const { return count_; }

 private:
  Choice(std::shared_ptr<const ModelProfile> profile, ChoiceOptions options, text::Sampler sampler,
         text::StopMatcher stops);
  text::Result<void> note_logprobs(std::span<const float> logits, text::TokenId token,
                                   ChoiceScratch& scratch);
  void finish(FinishReason reason);

  struct Noted {
    text::TokenLogprob chosen;
    std::vector<text::TokenLogprob> top;
  };

  std::shared_ptr<const ModelProfile> profile_;
  ChoiceOptions options_;
  text::Sampler sampler_;
  text::StopMatcher stops_;
  text::TokenDecoder decoder_;
  std::uint32_t count_ = 0;
  std::optional<FinishReason> finished_;
  std::string piece_;   // of one token
  std::string text_;    // since the last delta
  std::string taken_;   // the last delta's
  std::vector<Noted> tokens_;
  std::vector<Noted> tokens_taken_;
  std::vector<OutputLogprob> views_;   // of tokens_taken_, chosen and top in a row
  std::vector<OutputToken> token_views_;
};

}   // namespace duet::actors
