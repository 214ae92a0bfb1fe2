// sampler.cpp: chooses the next token of one answer from the model's logits.
#include "text/sampler.hpp"

#include "runtime/assert.hpp"
#include "text/exponential.hpp"
#include "text/limits.hpp"
#include "text/philox.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace duet::text {
namespace {

std::optional<Error> check_range(std::string_view name, float value, float low, float high,
                                 bool low_excluded = false) {
  const bool below = low_excluded ? !(value > low) : !(value >= low);
  if (!below && value <= high) return {};
  const auto shown = [](float number) {
    std::string text = std::to_string(number);
    return text.substr(
        0, text.find_last_not_of('0') + 1 + (text.find_last_not_of('0') == text.find('.')));
  };
  return Error{errc::parameter_invalid, std::string{name} + " is " + shown(value) +
                                            ", but must be " + (low_excluded ? "above " : "from ") +
                                            shown(low) + (low_excluded ? ", up to " : " to ") +
                                            shown(high)};
}

std::optional<Error> check(const SamplingOptions& options) {
  if (auto e = check_range("temperature", options.temperature, 0, 100)) return e;
  if (auto e = check_range("top_p", options.top_p, 0, 1, true)) return e;
  if (auto e = check_range("min_p", options.min_p, 0, 1)) return e;
  if (auto e = check_range("repetition_penalty", options.repetition_penalty, 0, 100, true))
    return e;
  if (auto e = check_range("presence_penalty", options.presence_penalty, -2, 2)) return e;
  if (auto e = check_range("frequency_penalty", options.frequency_penalty, -2, 2)) return e;
  for (const auto& [token, bias] : options.logit_bias) {
    if (auto e = check_range("logit_bias of token " + std::to_string(token), bias, -100, 100)) {
      return e;
    }
  }
  if (options.logit_bias.size() > limits::logit_bias_max) {
    return Error{errc::parameter_invalid,
                 "logit_bias has " + std::to_string(options.logit_bias.size()) +
                     " tokens, more than " + std::to_string(limits::logit_bias_max)};
  }
  return {};
}

/// A number that sorts ascending as: logit descending, then id ascending.
std::uint64_t key_of(float logit, TokenId id) noexcept {
  auto bits = std::bit_cast<std::uint32_t>(logit + 0.0F);   // -0 becomes 0: they are equal
  bits = (bits & 0x80000000U) != 0 ? bits : bits ^ 0x7FFFFFFFU;
  return std::uint64_t{bits} << 32U | id;
}

TokenId id_of(std::uint64_t key) noexcept {
  return static_cast<TokenId>(key);
}

/// Sorts keys[from, to) into place, such that all later keys are larger.
void sort_next(std::vector<std::uint64_t>& keys, std::size_t from, std::size_t to) {
  const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end = keys.begin() + static_cast<std::ptrdiff_t>(to);
  if (end != keys.end()) std::nth_element(begin, end, keys.end());
  std::sort(begin, end);
}

/// Candidates in order, sorted as far as they are asked for: mostly a few dozen of a vocabulary of
/// a hundred thousand hold all the probability.
class Ordered {
 public:
  Ordered(std::vector<std::uint64_t>& keys, std::size_t count) : keys_(keys), count_(count) {}
  [[nodiscard]] TokenId at(std::size_t index) {
    DUET_ASSERT(index < count_, index, count_);
    while (index >= sorted_) {
      const std::size_t next = std::min(count_, std::max<std::size_t>(64, sorted_ * 4));
      sort_next(keys_, sorted_, next);
      sorted_ = next;
    }
    return id_of(keys_[index]);
  }

 private:
  std::vector<std::uint64_t>& keys_;
  std::size_t count_;
  std::size_t sorted_ = 0;
};

}   // namespace

std::optional<TokenId> largest_logit(std::span<const float> logits) noexcept {
  if (logits.empty()) return std::nullopt;
  // This reads all logits of every token, so it takes four at a time, in the vector types that both
  // compilers have; they do not see it by themselves.
  using Floats = float __attribute__((vector_size(16)));
  using Bits = std::uint32_t __attribute__((vector_size(16)));
  constexpr std::size_t lanes = 4;
  constexpr std::uint32_t exponent = 0x7F800000U;   // all ones: an infinity or NaN
  const float first = logits[0];
  Floats largest{first, first, first, first};
  Bits not_finite{};
  const auto look = [&](const float* four) {
    Floats values;
    Bits bits;
    std::memcpy(&values, four, sizeof values);
    std::memcpy(&bits, four, sizeof bits);
    largest = values > largest ? values : largest;
    not_finite |= reinterpret_cast<Bits>((bits & exponent) == exponent);
  };
  std::size_t at = 0;
  for (; at + lanes <= logits.size(); at += lanes) look(logits.data() + at);
  std::array<float, lanes> rest = {first, first, first, first};
  std::copy(logits.begin() + static_cast<std::ptrdiff_t>(at), logits.end(), rest.begin());
  look(rest.data());
  float best = largest[0];
  for (std::size_t lane = 1; lane < lanes; ++lane) best = std::max(best, largest[lane]);
  if ((not_finite[0] | not_finite[1] | not_finite[2] | not_finite[3]) != 0) return std::nullopt;
  // The first of equals: its sixteen, then itself.
  const Floats wanted{best, best, best, best};
  std::size_t from = 0;
  for (; from + 4 * lanes <= logits.size(); from += 4 * lanes) {
    std::array<Floats, 4> values;
    std::memcpy(values.data(), logits.data() + from, sizeof values);
    const auto hits = (values[0] == wanted) | (values[1] == wanted) | (values[2] == wanted) |
                      (values[3] == wanted);
    std::array<std::uint64_t, 2> halves;
    std::memcpy(halves.data(), &hits, sizeof halves);
    if ((halves[0] | halves[1]) != 0) break;
  }
  const auto found =
      std::find(logits.begin() + static_cast<std::ptrdiff_t>(from), logits.end(), best);
  return static_cast<TokenId>(found - logits.begin());
}

Result<Sampler> Sampler::create(SamplingOptions options, std::size_t vocabulary,
                                std::span<const TokenId> prompt) {
  DUET_ASSERT(vocabulary > 0 && vocabulary <= limits::vocabulary_max, vocabulary);
  if (auto error = check(options)) return std::move(*error);
  const auto out_of_range = [vocabulary](std::string_view what, TokenId token) {
    return Error{errc::token_out_of_range, std::string{what} + " " + std::to_string(token) +
                                               " is not in the vocabulary of " +
                                               std::to_string(vocabulary)};
  };
  for (const auto& [token, bias] : options.logit_bias) {
    if (token >= vocabulary) return out_of_range("logit_bias: token", token);
  }
  for (const TokenId token : prompt) {
    if (token >= vocabulary) return out_of_range("prompt: token", token);
  }
  Sampler made;
  made.options_ = std::move(options);
  made.vocabulary_ = vocabulary;
  if (made.has_penalties()) {
    made.counts_.resize(vocabulary);
    made.seen_.reserve(vocabulary);
    if (made.options_.repetition_penalty != 1.0F) {
      for (const TokenId token : prompt) made.note(token, false);
    }
  }
  return made;
}

bool Sampler::has_penalties() const noexcept {
  return options_.repetition_penalty != 1.0F || options_.presence_penalty != 0.0F ||
         options_.frequency_penalty != 0.0F;
}

bool Sampler::adjusts_logits() const noexcept {
  return !options_.logit_bias.empty() || has_penalties();
}

void Sampler::note(TokenId token, bool of_answer) {
  std::uint32_t& count = counts_[token];
  if (count == 0) {
    seen_.push_back(token);
    count = 1;
  }
  if (of_answer) count += 2;
}

void Sampler::add(TokenId token) {
  DUET_ASSERT(token < vocabulary_, token, vocabulary_);
  if (has_penalties()) note(token, true);
}

void Sampler::adjust(std::span<float> logits) const {
  for (const auto& [token, bias] : options_.logit_bias) logits[token] += bias;
  for (const TokenId token : seen_) {
    float& logit = logits[token];
    if (logit > 0) {
      logit /= options_.repetition_penalty;
    } else {
      logit *= options_.repetition_penalty;
    }
    const std::uint32_t count = counts_[token] / 2;
    if (count == 0) continue;
    logit -= static_cast<float>(count) * options_.frequency_penalty + options_.presence_penalty;
  }
}

Result<TokenId> Sampler::choose(std::span<const float> logits, std::uint32_t position,
                                SamplerScratch& scratch) const {
  DUET_ASSERT(logits.size() == vocabulary_, logits.size(), vocabulary_);
  auto best = largest_logit(logits);
  if (best && adjusts_logits()) {
    scratch.logits.assign(logits.begin(), logits.end());
    adjust(scratch.logits);
    logits = scratch.logits;
    best = largest_logit(logits);   // a penalty may have made a huge logit infinite
  }
  if (!best) {
    return Error{errc::logits_not_finite,
                 "the model's logits hold NaN or an infinity at position " +
                     std::to_string(position) + " of the answer"};
  }
  if (options_.temperature == 0.0F || options_.top_k == 1) return *best;
  return draw(logits, position, scratch.keys);
}

TokenId Sampler::draw(std::span<const float> logits, std::uint32_t position,
                      std::vector<std::uint64_t>& keys) const {
  const double largest = logits[*largest_logit(logits)];
  const double temperature = options_.temperature;
  // Probability relative to the likeliest token's.
  const auto weight = [&](TokenId id) {
    return portable_exp((static_cast<double>(logits[id]) - largest) / temperature);
  };
  keys.clear();
  for (TokenId id = 0; id < logits.size(); ++id) keys.push_back(key_of(logits[id], id));
  Ordered ordered{keys, keys.size()};
  std::size_t count = keys.size();
  double total = 0;
  // min-p and top-k both keep a front part of the ordered candidates, so the smaller one counts.
  if (options_.top_k > 0 || options_.min_p > 0.0F) {
    if (options_.top_k > 0) count = std::min<std::size_t>(count, options_.top_k);
    std::size_t kept = 0;
    for (; kept < count; ++kept) {
      const double w = weight(ordered.at(kept));
      if (w < static_cast<double>(options_.min_p)) break;
      total += w;
    }
    count = kept;
  } else {
    for (TokenId id = 0; id < logits.size(); ++id) total += weight(id);
  }
  if (options_.top_p < 1.0F) {
    const double wanted = static_cast<double>(options_.top_p) * total;
    double sum = 0;
    std::size_t kept = 0;
    while (kept < count && (kept == 0 || sum < wanted)) sum += weight(ordered.at(kept++));
    count = kept;
    total = sum;
  }
  DUET_ASSERT(count > 0 && total >= 1.0, count, total);
  const double target = token_uniform(options_.seed, options_.choice, position) * total;
  double sum = 0;
  for (std::size_t at = 0; at < count; ++at) {
    sum += weight(ordered.at(at));
    if (target < sum) return ordered.at(at);
  }
  // The sums were taken in two orders, so the last bits may differ: then it is the last one that
  // has a probability at all.
  std::size_t last = count - 1;
  while (last > 0 && weight(ordered.at(last)) == 0.0) --last;
  return ordered.at(last);
}

}   // namespace duet::text
