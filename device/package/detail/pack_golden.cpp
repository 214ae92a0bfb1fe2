// pack_golden.cpp: goldens by the F32 reference, with a rule that the packed model keeps.
#include "device/package/detail/pack_model.hpp"
#include "device/package/golden_verdict.hpp"
#include "device/package/limits.hpp"
#include "device/package/package.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace duet::device::detail {
namespace {

constexpr std::uint32_t prompts = package_limits::golden_prompts_min;
constexpr std::uint32_t prompt_tokens = 16;
constexpr std::uint32_t answer_tokens = 16;
constexpr std::size_t top_count = 5;

/// A rule twice as wide is tried so often; a model that int8 changes more is not served as W8A8.
constexpr int widenings_max = 6;

/// Runs prefill and decode of one sequence.
class Runner {
 public:
  static Result<Runner> create(const Model& model, const std::vector<Program>& prefill,
                               const std::vector<Program>& decode,
                               std::span<const std::byte> parameters, Arithmetic arithmetic) {
    const KvLayout layout = kv_layout_of(model.config, prompt_tokens + answer_tokens);
    const auto views = tensor_views(model, parameters);
    Runner out;
    for (const auto* programs : {&prefill, &decode}) {
      auto executable = Executable::create(*programs, views, layout, arithmetic);
      if (executable.has_error())
        return failure("model ", in_quotes(model.name), ": ", executable.error());
      out.graphs_.push_back({*executable, (*executable)->make_workspace(prompt_tokens)});
    }
    out.kv_.resize(layout.bytes(arithmetic));
    out.logits_.resize(model.config.vocabulary);
    return out;
  }

  const std::vector<float>& run(std::span<const std::uint32_t> tokens, std::uint32_t past) {
    Graph& graph = graphs_[past == 0 ? 0 : 1];
    graph.executable->run(tokens, past, kv_, logits_, *graph.workspace, runner_);
    return logits_;
  }

 private:
  struct Graph {
    std::shared_ptr<const Executable> executable;
    std::unique_ptr<Executable::Workspace> workspace;
  };
  std::vector<Graph> graphs_;   // prefill, decode
  std::vector<std::byte> kv_;
  std::vector<float> logits_;
  SerialRunner runner_;
};

/// 64 bits from a hash of seed and place: the same everywhere, without a random source.
std::uint64_t draw(const BuildId& seed, std::uint32_t prompt, std::uint32_t position) {
  Sha256 hash;
  hash.update(seed);
  hash.update(std::as_bytes(std::span(&prompt, 1)));
  hash.update(std::as_bytes(std::span(&position, 1)));
  const Digest digest = hash.finish();
  return load_le<std::uint64_t>(digest);
}

/// Adds the best token of `logits` with its margin and the log-probabilities of the best five.
std::uint32_t add_step(const std::vector<float>& logits, GoldenPrompt& prompt) {
  std::vector<std::uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0U);
  const std::size_t count = std::min(top_count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
                    });
  const double best = logits[order[0]];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - best);
  auto& top = prompt.top.emplace_back();
  for (std::size_t i = 0; i < count; ++i) {
    top.emplace_back(order[i], logits[order[i]] - best - std::log(sum));
  }
  prompt.tokens.push_back(order[0]);
  prompt.margins.push_back(count > 1 ? best - logits[order[1]] : 0);
  return order[0];
}

/// One of the best five by their probabilities.
std::uint32_t choose(const std::vector<float>& logits, std::uint64_t drawn) {
  GoldenPrompt step;
  add_step(logits, step);
  double left = 0;
  for (const auto& [token, logprob] : step.top[0]) left += std::exp(logprob);
  left *= static_cast<double>(drawn >> 11U) * 0x1p-53;
  for (const auto& [token, logprob] : step.top[0]) {
    left -= std::exp(logprob);
    if (left < 0) return token;
  }
  return step.top[0][0].first;
}

/// A first token by chance, then what the model itself might say: a model is judged by text of its
/// own kind, since it says nothing certain about noise.
std::vector<std::uint32_t> make_prompt(Runner& reference, const Model& model, const BuildId& seed,
                                       std::uint32_t index) {
  std::vector<std::uint32_t> ids;
  ids.push_back(static_cast<std::uint32_t>(draw(seed, index, 0) % model.config.vocabulary));
  while (ids.size() < prompt_tokens) {
    const auto at = static_cast<std::uint32_t>(ids.size());
    ids.push_back(choose(reference.run({&ids.back(), 1}, at - 1), draw(seed, index, at)));
  }
  return ids;
}

/// Widens the rule by twos until the packed model's own arithmetic keeps half of it; the rest is
/// for other SIMD targets. By twos, so that every target writes the same rule.
Result<void> fit_rule(const Model& model, Runner& packed, Golden& golden, const Step& step) {
  GoldenVerdict verdict;
  double margin = 0;   // the largest at which the best token is another
  for (std::uint32_t i = 0; i < golden.prompts.size(); ++i) {
    step("golden check", i, golden.prompts.size());
    const GoldenPrompt& prompt = golden.prompts[i];
    ++verdict.prompts;
    for (std::uint32_t at = 0; at < prompt.tokens.size(); ++at) {
      const std::size_t before = verdict.disagreements;
      const auto& logits = at == 0
                               ? packed.run(prompt.prompt_ids, 0)
                               : packed.run({&prompt.tokens[at - 1], 1}, prompt_tokens + at - 1);
      judge_step(verdict, golden, i, at, logits);
      if (verdict.disagreements > before) margin = std::max(margin, prompt.margins[at]);
    }
  }
  const auto widen = [](double& bound, double measured) {
    for (int i = 0; i < widenings_max && bound < 2 * measured; ++i) bound *= 2;
    return bound >= 2 * measured;
  };
  GoldenRule& rule = golden.rule;
  double top = 0;
  for (const GoldenPrompt& prompt : golden.prompts) {
    top = std::max(top, *std::max_element(prompt.margins.begin(), prompt.margins.end()));
  }
  // A model that is never that sure (with untrained weights) is judged where it is surest.
  if (top < rule.margin_min) rule.margin_min = top / 2;
  const bool fits = widen(rule.margin_min, margin) &&
                    widen(rule.logprob_mean_max, verdict.error_mean()) &&
                    widen(rule.logprob_p99_max, verdict.error_p99()) && rule.margin_min <= top;
  if (fits) return {};
  return failure("model ", in_quotes(model.name),
                 ": W8A8 changes its answers too much to be judged by a golden: ", verdict.text());
}

}   // namespace

Result<Golden> compute_golden(const Model& model, const std::vector<Program>& prefill,
                              const std::vector<Program>& decode,
                              std::span<const std::byte> parameters, const BuildId& seed,
                              const Step& step) {
  auto reference = Runner::create(model, prefill, decode, parameters, Arithmetic::f32);
  if (reference.has_error()) return reference.error();
  auto packed = Runner::create(model, prefill, decode, parameters, Arithmetic::w8a8);
  if (packed.has_error()) return packed.error();
  Golden golden;
  golden.model = model.name;
  golden.source = "q8_0";   // the packed weights, whatever the file had
  for (std::uint32_t i = 0; i < prompts; ++i) {
    step("golden", i, prompts);
    GoldenPrompt prompt;
    prompt.prompt_ids = make_prompt(*reference, model, seed, i);
    std::uint32_t token = add_step(reference->run(prompt.prompt_ids, 0), prompt);
    for (std::uint32_t at = 1; at < answer_tokens; ++at) {
      token = add_step(reference->run({&token, 1}, prompt_tokens + at - 1), prompt);
    }
    if (!std::all_of(prompt.margins.begin(), prompt.margins.end(),
                     [](double margin) { return std::isfinite(margin); })) {
      return failure("model ", in_quotes(model.name),
                     ": the reference computes values that are not ",
                     "finite; the weights make no model");
    }
    golden.prompts.push_back(std::move(prompt));
  }
  const auto fitted = fit_rule(model, *packed, golden, step);
  if (fitted.has_error()) return fitted.error();
  return golden;
}

}   // namespace duet::device::detail
