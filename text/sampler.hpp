// sampler.hpp: chooses the next token of one answer from the model's logits.
//
// The steps, in this order (that of vLLM, so that its users' settings mean the same):
//   1. logit bias            logit + bias
//   2. repetition penalty    tokens of prompt and answer: logit / r if above 0, else logit * r
//   3. frequency, presence   tokens of the answer: logit - count * f - p
//   4. temperature 0         the largest logit, of equal ones the lowest id: the end
//   5. temperature           logit / temperature
//   6. min-p                 drops tokens below min_p times the likeliest one's probability
//   7. top-k                 keeps the k likeliest
//   8. top-p                 of what is left keeps the fewest, likeliest first, that reach top_p of
//                            its probability
//   9. one uniform number    picks from what is left, in the order: likeliest first, then lowest id
#pragma once

#include "text/error.hpp"
#include "text/tokenizer_json.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace duet::text {

struct SamplingOptions {
  float temperature = 1.0F;                            ///< 0 (greedy) to 100
  std::uint32_t top_k = 0;                             ///< 0: all
  float top_p = 1.0F;                                  ///< above 0, up to 1
  float min_p = 0.0F;                                  ///< 0 to 1
  float repetition_penalty = 1.0F;                     ///< above 0, up to 100
  float presence_penalty = 0.0F;                       ///< -2 to 2
  float frequency_penalty = 0.0F;                      ///< -2 to 2
  std::vector<std::pair<TokenId, float>> logit_bias;   ///< -100 to 100 each
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;   ///< Index of the answer among the n of one request.
};

/// Working memory, one a thread; it grows to the vocabulary once.
struct SamplerScratch {
  std::vector<std::uint64_t> keys;
  std::vector<float> logits;
};

/// One sequence's sampler. What it chooses depends on options, tokens and logits alone, never on
/// other sequences. Not thread-safe. Nothing is allocated by choose() and add() once `scratch` has
/// its size.
class Sampler {
 public:
  /// `vocabulary`: number of logits. `prompt`: for the repetition penalty; each id < vocabulary.
  /// Errors: parameter_invalid, naming the option; token_out_of_range for a biased or prompt token.
  [[nodiscard]] static Result<Sampler> create(SamplingOptions options, std::size_t vocabulary,
                                              std::span<const TokenId> prompt);

  /// The next token. `logits` has `vocabulary` entries and is not changed; `position` counts the
  /// answer's tokens from 0. Errors: logits_not_finite.
  [[nodiscard]] Result<TokenId> choose(std::span<const float> logits, std::uint32_t position,
                                       SamplerScratch& scratch) const;
  /// Counts a token of the answer for the penalties; `token` < vocabulary. To be called for each
  /// one, also when it was not chosen here.
  void add(TokenId token);

  [[nodiscard]] const SamplingOptions& options() const noexcept { return options_; }

 private:
  Sampler() = default;
  [[nodiscard]] bool adjusts_logits() const noexcept;
  [[nodiscard]] bool has_penalties() const noexcept;
  void adjust(std::span<float> logits) const;
  void note(TokenId token, bool of_answer);
  [[nodiscard]] TokenId draw(std::span<const float> logits, std::uint32_t position,
                             std::vector<std::uint64_t>& keys) const;

  SamplingOptions options_;
  std::size_t vocabulary_ = 0;
  std::vector<TokenId> seen_;           // each token of prompt and answer once; only with penalties
  std::vector<std::uint32_t> counts_;   // by token: answer's count * 2 + 1, 0: not seen
};

/// Whether all are finite; the largest's index, of equal ones the lowest. `logits` is not empty.
[[nodiscard]] std::optional<TokenId> largest_logit(std::span<const float> logits) noexcept;

}   // namespace duet::text
