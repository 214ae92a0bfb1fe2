// pack_golden.cpp: goldens by the F32 reference.
#include "device/package/detail/pack_model.hpp"
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

/// Runs prefill and decode of one sequence by the F32 reference.
class Reference {
 public:
  static Result<Reference> create(const Model& model, const std::vector<Program>& prefill,
                                  const std::vector<Program>& decode,
                                  std::span<const std::byte> parameters) {
    const KvLayout layout = kv_layout_of(model.config, prompt_tokens + answer_tokens);
    const auto views = tensor_views(model, parameters);
    Reference out;
    for (const auto* programs : {&prefill, &decode}) {
      auto executable = Executable::create(*programs, views, layout, Arithmetic::f32);
      if (executable.has_error())
        return failure("model ", in_quotes(model.name), ": ", executable.error());
      out.graphs_.push_back({*executable, (*executable)->make_workspace(prompt_tokens)});
    }
    out.kv_.resize(layout.bytes(Arithmetic::f32));
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

/// Numbers below `bound` from a hash of seed and place: the same everywhere, without a random
/// source.
std::uint32_t pick(const BuildId& seed, std::uint32_t prompt, std::uint32_t position,
                   std::uint32_t bound) {
  Sha256 hash;
  hash.update(seed);
  hash.update(std::as_bytes(std::span(&prompt, 1)));
  hash.update(std::as_bytes(std::span(&position, 1)));
  const Digest digest = hash.finish();
  return static_cast<std::uint32_t>(load_le<std::uint64_t>(digest) % bound);
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

}   // namespace

Result<Golden> compute_golden(const Model& model, const std::vector<Program>& prefill,
                              const std::vector<Program>& decode,
                              std::span<const std::byte> parameters, const BuildId& seed,
                              const Step& step) {
  auto reference = Reference::create(model, prefill, decode, parameters);
  if (reference.has_error()) return reference.error();
  Golden golden;
  golden.model = model.name;
  golden.source = "q8_0";   // the packed weights, whatever the file had
  for (std::uint32_t i = 0; i < prompts; ++i) {
    step("golden", i, prompts);
    GoldenPrompt prompt;
    for (std::uint32_t at = 0; at < prompt_tokens; ++at) {
      prompt.prompt_ids.push_back(pick(seed, i, at, model.config.vocabulary));
    }
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
  return golden;
}

}   // namespace duet::device::detail
