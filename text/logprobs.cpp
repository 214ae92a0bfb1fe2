// logprobs.cpp: log-probabilities of tokens, as OpenAI's API reports them.
#include "text/logprobs.hpp"

#include "runtime/assert.hpp"
#include "text/limits.hpp"
#include "text/sampler.hpp"

#include <algorithm>
#include <cmath>

namespace duet::text {

Result<TokenLogprob> token_logprobs(std::span<const float> logits, TokenId chosen,
                                    std::span<TokenLogprob> top, LogprobScratch& scratch) {
  DUET_ASSERT(chosen < logits.size(), chosen, logits.size());
  DUET_ASSERT(top.size() <= limits::top_logprobs_max, top.size());
  DUET_ASSERT(top.size() <= logits.size(), top.size(), logits.size());
  const auto best = largest_logit(logits);
  if (!best) {
    return Error{errc::logits_not_finite, "the model's logits hold NaN or an infinity"};
  }
  const double largest = logits[*best];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  // The sum has the term 1 of the largest logit, so its logarithm is finite and not below 0.
  const double log_sum = std::log(sum);
  const auto logprob = [&](TokenId id) {
    return std::min(0.0, static_cast<double>(logits[id]) - largest - log_sum);
  };
  if (!top.empty()) {
    const auto before = [&logits](std::uint64_t a, std::uint64_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    };
    // The keys are a heap of the likeliest so far, the least likely one in front.
    auto& keys = scratch.keys;
    keys.clear();
    for (std::uint64_t id = 0; id < logits.size(); ++id) {
      if (keys.size() == top.size()) {
        if (!before(id, keys.front())) continue;
        std::pop_heap(keys.begin(), keys.end(), before);
        keys.pop_back();
      }
      keys.push_back(id);
      std::push_heap(keys.begin(), keys.end(), before);
    }
    std::sort_heap(keys.begin(), keys.end(), before);
    for (std::size_t at = 0; at < top.size(); ++at) {
      const auto id = static_cast<TokenId>(keys[at]);
      top[at] = {id, logprob(id)};
    }
  }
  return TokenLogprob{chosen, logprob(chosen)};
}

}   // namespace duet::text
