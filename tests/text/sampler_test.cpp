// sampler_test.cpp: random numbers, the order of the filters, reproducibility, log-probabilities.
#include "text/sampler.hpp"

#include "text/exponential.hpp"
#include "text/limits.hpp"
#include "text/logprobs.hpp"
#include "text/philox.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace duet::text::test {
namespace {

Sampler sampler_of(const SamplingOptions& options, std::size_t vocabulary,
                   std::vector<TokenId> prompt = {}) {
  auto made = Sampler::create(options, vocabulary, prompt);
  if (!made) throw std::runtime_error(made.error().message);
  return *made;
}

TokenId choose(const Sampler& sampler, const std::vector<float>& logits,
               std::uint32_t position = 0) {
  SamplerScratch scratch;
  const auto chosen = sampler.choose(logits, position, scratch);
  if (!chosen) throw std::runtime_error(chosen.error().message);
  return *chosen;
}

std::vector<float> random_logits(std::mt19937& random, std::size_t size) {
  std::vector<float> logits(size);
  // Few distinct values, so that there are ties.
  for (auto& logit : logits) logit = static_cast<float>(static_cast<int>(random() % 40) - 20) / 4;
  return logits;
}

/// The definition in sampler.hpp, step by step, with everything sorted.
TokenId reference_choice(const SamplingOptions& o, std::vector<float> logits,
                         const std::vector<TokenId>& prompt, const std::vector<TokenId>& answer,
                         std::uint32_t position) {
  for (const auto& [token, bias] : o.logit_bias) logits[token] += bias;
  std::map<TokenId, int> counts;
  for (const auto token : answer) ++counts[token];
  std::map<TokenId, int> seen = counts;
  if (o.repetition_penalty != 1) {
    for (const auto token : prompt) seen[token];
  }
  for (const auto& [token, unused] : seen) {
    float& logit = logits[token];
    logit = logit > 0 ? logit / o.repetition_penalty : logit * o.repetition_penalty;
  }
  for (const auto& [token, count] : counts) {
    logits[token] -= static_cast<float>(count) * o.frequency_penalty + o.presence_penalty;
  }
  std::vector<TokenId> order(logits.size());
  for (TokenId id = 0; id < order.size(); ++id) order[id] = id;
  std::stable_sort(order.begin(), order.end(),
                   [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  if (o.temperature == 0) return order[0];
  std::vector<double> weights;
  for (const auto id : order) {
    weights.push_back(std::exp((double{logits[id]} - double{logits[order[0]]}) / o.temperature));
  }
  std::size_t count = order.size();
  while (weights[count - 1] < o.min_p) --count;
  if (o.top_k > 0) count = std::min<std::size_t>(count, o.top_k);
  double total = 0;
  for (std::size_t i = 0; i < count; ++i) total += weights[i];
  std::size_t kept = 0;
  double mass = 0;
  while (kept < count && (kept == 0 || mass < double{o.top_p} * total)) mass += weights[kept++];
  if (o.top_p == 1) {
    kept = count;
    mass = total;
  }
  double left = token_uniform(o.seed, o.choice, position) * mass;
  for (std::size_t i = 0; i < kept; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[kept - 1];
}

}   // namespace

BOOST_AUTO_TEST_SUITE(sampler)

BOOST_AUTO_TEST_CASE(philox_gives_the_known_answers_of_its_authors) {
  BOOST_TEST((philox({0, 0, 0, 0}, {0, 0}) ==
              PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  BOOST_TEST((philox({ones, ones, ones, ones}, {ones, ones}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  BOOST_TEST((philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(the_uniform_number_is_the_documented_24_bits) {
  BOOST_TEST(token_uniform(0, 0, 0) == static_cast<double>(0x6627e8) / 16777216.0);
  BOOST_TEST(token_uniform(7, 2, 3) ==
             static_cast<double>(philox({3, 0, 0, 0}, {7, 2})[0] >> 8U) / 16777216.0);
  BOOST_TEST(token_uniform(0x500000007, 2, 3) ==
             static_cast<double>(philox({3, 0, 0, 5}, {7, 2})[0] >> 8U) / 16777216.0);
  double sum = 0;
  for (std::uint32_t i = 0; i < 10000; ++i) sum += token_uniform(1, 0, i);
  BOOST_TEST(std::abs(sum / 10000 - 0.5) < 0.02);
}

BOOST_AUTO_TEST_CASE(portable_exp_is_exact_to_1e_15) {
  double worst = 0;
  for (double x = 0; x > -700; x -= 0.0137) {
    worst = std::max(worst, std::abs(portable_exp(x) / std::exp(x) - 1));
  }
  BOOST_TEST(worst < 1e-15);
  BOOST_TEST(portable_exp(0.0) == 1.0);
  BOOST_TEST(portable_exp(-0.0) == 1.0);
  BOOST_TEST(portable_exp(-1e300) == 0.0);
  BOOST_TEST(portable_exp(-std::numeric_limits<double>::infinity()) == 0.0);
}

BOOST_AUTO_TEST_CASE(greedy_takes_the_largest_logit_and_the_lowest_id_of_equal_ones) {
  SamplingOptions options;
  options.temperature = 0;
  const Sampler sampler = sampler_of(options, 4);
  BOOST_TEST(choose(sampler, {1, 3, 3, 2}) == 1U);
  BOOST_TEST(choose(sampler, {-0.0F, 0.0F, -1, -2}) == 0U);
}

BOOST_AUTO_TEST_CASE(
    the_largest_logit_is_found_in_every_size_and_what_is_not_finite_at_every_place) {
  std::mt19937 random{9};
  for (std::size_t size = 1; size <= 70; ++size) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> logits = random_logits(random, size);
      if (round == 0) std::fill(logits.begin(), logits.end(), -1e30F);
      const auto expected = std::max_element(logits.begin(), logits.end()) - logits.begin();
      const auto found = largest_logit(logits);
      BOOST_REQUIRE(found.has_value());
      BOOST_REQUIRE(*found == static_cast<TokenId>(expected));
    }
    for (std::size_t at = 0; at < size; ++at) {
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()}) {
        std::vector<float> logits = random_logits(random, size);
        logits[at] = bad;
        BOOST_REQUIRE(!largest_logit(logits).has_value());
      }
    }
  }
  BOOST_TEST(!largest_logit({}).has_value());
}

BOOST_AUTO_TEST_CASE(every_choice_equals_the_definition_step_by_step) {
  std::mt19937 random{5};
  SamplerScratch scratch;
  int sampled = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::size_t size = 1 + random() % (round % 10 == 0 ? 2000 : 60);
    SamplingOptions o;
    const auto any = [&random](auto... values) {
      const std::array options{static_cast<float>(values)...};
      return options[random() % options.size()];
    };
    o.temperature = any(0, 0.3, 1, 1, 2, 100);
    o.top_k = static_cast<std::uint32_t>(any(0, 0, 1, 5, 40, 5000));
    o.top_p = any(1, 1, 0.9, 0.5, 0.01);
    o.min_p = any(0, 0, 0.05, 0.5, 1);
    o.repetition_penalty = any(1, 1, 1.3, 0.7);
    o.presence_penalty = any(0, 0, 1.5, -0.5);
    o.frequency_penalty = any(0, 0, 0.25, -2);
    o.seed = random();
    o.choice = random() % 3;
    const auto some = [&] {
      std::vector<TokenId> tokens(random() % 8);
      for (auto& token : tokens) token = static_cast<TokenId>(random() % size);
      return tokens;
    };
    if (random() % 3 == 0)
      o.logit_bias = {{static_cast<TokenId>(random() % size), any(-100, 2, 100)}};
    const auto prompt = some();
    const auto answer = some();
    Sampler sampler = sampler_of(o, size, prompt);
    for (const auto token : answer) sampler.add(token);
    const auto logits = random_logits(random, size);
    const auto position = static_cast<std::uint32_t>(random() % 1000);
    const auto chosen = sampler.choose(logits, position, scratch);
    BOOST_REQUIRE(chosen.has_value());
    const TokenId wanted = reference_choice(o, logits, prompt, answer, position);
    BOOST_REQUIRE_EQUAL(*chosen, wanted);
    sampled += o.temperature > 0 ? 1 : 0;
  }
  BOOST_TEST(sampled > 1000);
}

BOOST_AUTO_TEST_CASE(frequencies_follow_the_probabilities) {
  SamplingOptions options;
  options.seed = 99;
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  const Sampler sampler = sampler_of(options, logits.size());
  std::array<int, 3> counts{};
  for (std::uint32_t i = 0; i < 20000; ++i) ++counts[choose(sampler, logits, i)];
  BOOST_TEST(std::abs(counts[0] / 20000.0 - 0.5) < 0.015);
  BOOST_TEST(std::abs(counts[1] / 20000.0 - 0.3) < 0.015);
  BOOST_TEST(std::abs(counts[2] / 20000.0 - 0.2) < 0.015);
}

BOOST_AUTO_TEST_CASE(a_choice_depends_on_seed_choice_and_position_alone) {
  std::mt19937 random{3};
  const auto logits = random_logits(random, 500);
  SamplingOptions options;
  options.seed = 42;
  std::vector<TokenId> alone;
  for (std::uint32_t i = 0; i < 200; ++i)
    alone.push_back(choose(sampler_of(options, 500), logits, i));
  // The same with one scratch shared with another sequence, in another order.
  SamplerScratch scratch;
  const Sampler sampler = sampler_of(options, 500);
  options.choice = 1;
  const Sampler other = sampler_of(options, 500);
  int equal = 0;
  for (std::uint32_t i = 200; i-- > 0;) {
    equal += *other.choose(logits, i, scratch) == alone[i] ? 1 : 0;
    BOOST_REQUIRE_EQUAL(*sampler.choose(logits, i, scratch), alone[i]);
  }
  BOOST_TEST(equal < 100);   // another choice of the same seed goes its own way
}

BOOST_AUTO_TEST_CASE(logits_that_are_not_finite_are_an_error) {
  SamplerScratch scratch;
  LogprobScratch logprob_scratch;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const float temperature : {0.0F, 1.0F}) {
      for (std::size_t at = 0; at < 9; ++at) {
        SamplingOptions options;
        options.temperature = temperature;
        std::vector<float> logits(9, 1.0F);
        logits[at] = bad;
        const auto chosen = sampler_of(options, 9).choose(logits, 5, scratch);
        BOOST_REQUIRE(!chosen.has_value());
        BOOST_TEST((chosen.error().code == errc::logits_not_finite));
        const auto logprob = token_logprobs(logits, 0, {}, logprob_scratch);
        BOOST_REQUIRE(!logprob.has_value());
        BOOST_TEST((logprob.error().code == errc::logits_not_finite));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(extreme_but_finite_logits_are_sampled) {
  const float huge = std::numeric_limits<float>::max();
  SamplingOptions options;
  options.temperature = 1e-30F;
  options.top_p = 0.5F;
  BOOST_TEST(choose(sampler_of(options, 4), {-huge, huge, huge, 0}) <= 2U);
  options.temperature = 1;
  options.repetition_penalty = 0.5F;   // doubles what is already the largest number
  SamplerScratch scratch;
  const auto chosen = sampler_of(options, 2, {0}).choose(std::vector<float>{huge, 0}, 0, scratch);
  BOOST_REQUIRE(!chosen.has_value());
  BOOST_TEST((chosen.error().code == errc::logits_not_finite));
}

BOOST_AUTO_TEST_CASE(the_warm_path_does_not_move_its_scratch) {
  std::mt19937 random{9};
  const auto logits = random_logits(random, 1000);
  SamplingOptions options;
  options.presence_penalty = 1;
  Sampler sampler = sampler_of(options, 1000);
  SamplerScratch scratch;
  static_cast<void>(sampler.choose(logits, 0, scratch));
  const auto* keys = scratch.keys.data();
  const auto* copy = scratch.logits.data();
  for (std::uint32_t i = 1; i < 300; ++i) {
    sampler.add(*sampler.choose(logits, i, scratch));
    BOOST_REQUIRE(scratch.keys.data() == keys);
    BOOST_REQUIRE(scratch.logits.data() == copy);
  }
}

BOOST_AUTO_TEST_CASE(parameters_out_of_range_are_refused_by_name) {
  const auto message = [](auto change) {
    SamplingOptions options;
    change(options);
    const auto made = Sampler::create(options, 10, {});
    return made ? std::string{} : made.error().message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  BOOST_TEST(message([](auto& o) { o.temperature = -1; }) ==
             "temperature is -1.0, but must be from 0.0 to 100.0");
  BOOST_TEST(message([&](auto& o) { o.temperature = nan; }).starts_with("temperature"));
  BOOST_TEST(message([](auto& o) { o.top_p = 0; }) ==
             "top_p is 0.0, but must be above 0.0, up to 1.0");
  BOOST_TEST(message([](auto& o) { o.top_p = 1.5F; }).starts_with("top_p"));
  BOOST_TEST(message([](auto& o) { o.min_p = 2; }).starts_with("min_p"));
  BOOST_TEST(message([](auto& o) { o.repetition_penalty = 0; }).starts_with("repetition_penalty"));
  BOOST_TEST(message([](auto& o) { o.presence_penalty = 3; }).starts_with("presence_penalty"));
  BOOST_TEST(message([](auto& o) { o.frequency_penalty = -3; }).starts_with("frequency_penalty"));
  BOOST_TEST(message([](auto& o) {
               o.logit_bias = {{3, 101.0F}};
             }).starts_with("logit_bias of token 3"));
  BOOST_TEST(message([](auto& o) {
               o.logit_bias = {{10, 1.0F}};
             }) == "logit_bias: token 10 is not in the vocabulary of 10");
  BOOST_TEST(message([](auto&) {}).empty());
}

BOOST_AUTO_TEST_CASE(log_probabilities_sum_to_one_and_are_ordered) {
  std::mt19937 random{21};
  LogprobScratch scratch;
  for (int round = 0; round < 200; ++round) {
    const auto logits = random_logits(random, 1 + random() % 300);
    double sum = 0;
    std::vector<double> all;
    for (TokenId id = 0; id < logits.size(); ++id) {
      all.push_back(token_logprobs(logits, id, {}, scratch)->logprob);
      sum += std::exp(all.back());
    }
    BOOST_REQUIRE_CLOSE(sum, 1.0, 1e-9);
    std::vector<TokenLogprob> top(std::min<std::size_t>(logits.size(), limits::top_logprobs_max));
    BOOST_REQUIRE(token_logprobs(logits, 0, top, scratch).has_value());
    std::vector<TokenId> order(logits.size());
    for (TokenId id = 0; id < order.size(); ++id) order[id] = id;
    std::stable_sort(order.begin(), order.end(),
                     [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
    for (std::size_t i = 0; i < top.size(); ++i) {
      BOOST_REQUIRE_EQUAL(top[i].token, order[i]);
      BOOST_REQUIRE_EQUAL(top[i].logprob, all[order[i]]);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_least_likely_token_still_has_a_finite_log_probability) {
  const float huge = std::numeric_limits<float>::max();
  LogprobScratch scratch;
  std::array<TokenLogprob, 2> top;
  const auto logprob = token_logprobs(std::vector<float>{huge, -huge}, 1, top, scratch);
  BOOST_REQUIRE(logprob.has_value());
  BOOST_TEST(std::isfinite(logprob->logprob));
  BOOST_TEST(top[0].logprob == 0.0);
  BOOST_TEST(std::isfinite(top[1].logprob));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::text::test
