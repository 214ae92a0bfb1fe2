// golden_verdict.cpp: the teacher-forced comparison.
#include "device/package/golden_verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>

namespace duet::device {

namespace {

std::uint32_t best_of(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) -
                                    logits.begin());
}

double logprob_of(std::span<const float> logits, std::uint32_t token) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return static_cast<double>(logits[token]) - top - std::log(sum);
}

std::optional<double> golden_logprob(const GoldenPrompt& prompt, std::size_t step) {
  if (step >= prompt.top.size()) return std::nullopt;
  for (const auto& [token, logprob] : prompt.top[step]) {
    if (token == prompt.tokens[step]) return logprob;
  }
  return std::nullopt;
}

}   // namespace

void judge_step(GoldenVerdict& verdict, const Golden& golden, std::size_t prompt_index,
                std::size_t step, std::span<const float> logits) {
  const GoldenPrompt& prompt = golden.prompts[prompt_index];
  const std::uint32_t expected = prompt.tokens[step];
  const std::uint32_t best = best_of(logits);
  const bool judged = prompt.margins[step] >= golden.rule.margin_min;
  ++verdict.steps;
  verdict.steps_judged += judged ? 1 : 0;
  if (best != expected) {
    ++verdict.disagreements;
    verdict.violations += judged ? 1 : 0;
    if (judged && verdict.first_violation.empty()) {
      verdict.first_violation = "prompt " + std::to_string(prompt_index) + ", step " +
                                std::to_string(step) + ": best token " + std::to_string(best) +
                                ", the golden's is " + std::to_string(expected);
    }
  }
  if (const auto logprob = golden_logprob(prompt, step)) {
    verdict.logprob_errors.push_back(std::abs(logprob_of(logits, expected) - *logprob));
  }
}

double GoldenVerdict::error_mean() const {
  if (logprob_errors.empty()) return 0;
  return std::accumulate(logprob_errors.begin(), logprob_errors.end(), 0.0) /
         static_cast<double>(logprob_errors.size());
}

double GoldenVerdict::error_p99() const {
  if (logprob_errors.empty()) return 0;
  std::vector<double> sorted = logprob_errors;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

bool GoldenVerdict::passed(const GoldenRule& rule) const {
  // A golden that judges nothing proves nothing.
  return steps_judged > 0 && violations == 0 && error_mean() <= rule.logprob_mean_max &&
         error_p99() <= rule.logprob_p99_max;
}

std::string GoldenVerdict::text() const {
  char line[256];
  std::snprintf(line, sizeof line,
                "%zu prompts, %zu steps, %zu disagreements (%zu where the margin counts), "
                "log-probability error mean %.5f p99 %.5f",
                prompts, steps, disagreements, violations, error_mean(), error_p99());
  return first_violation.empty() ? line : line + ("; " + first_violation);
}

}   // namespace duet::device
