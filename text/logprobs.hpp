// logprobs.hpp: log-probabilities of tokens, as OpenAI's API reports them.
#pragma once

#include "text/error.hpp"
#include "text/tokenizer_json.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace duet::text {

struct TokenLogprob {
  TokenId token = 0;
  double logprob = 0.0;   ///< Natural logarithm; finite, at most 0.
};

struct LogprobScratch {
  std::vector<std::uint64_t> keys;
};

/// Log-softmax of the model's own logits, before penalties, bias and temperature; sums in double.
/// Finite logits give finite log-probabilities, however unlikely the token. `top` has up to
/// limits::top_logprobs_max entries (not more than `logits`) and is filled with the likeliest
/// tokens, of equal ones the lowest id first. `chosen` < logits.size(). Nothing is allocated once
/// `scratch` has grown. Errors: logits_not_finite.
[[nodiscard]] Result<TokenLogprob> token_logprobs(std::span<const float> logits, TokenId chosen,
                                                  std::span<TokenLogprob> top,
                                                  LogprobScratch& scratch);

}   // namespace duet::text
