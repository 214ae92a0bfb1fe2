// golden_verdict.hpp: judges logits by a golden file and its rule. Pure.
#pragma once

#include "device/package/golden.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

/// The golden's tokens are fed in, so that one difference does not make all later ones.
/// docs/package.md has the rule.
struct GoldenVerdict {
  std::size_t prompts = 0;
  std::size_t steps = 0;                ///< compared best tokens.
  std::size_t steps_judged = 0;         ///< of them, those whose margin the rule covers.
  std::size_t disagreements = 0;        ///< best token is another, anywhere.
  std::size_t violations = 0;           ///< the same where the rule covers the margin.
  std::vector<double> logprob_errors;   ///< |difference| of the golden token's log-probability
                                        ///< (natural), where the golden has it.
  std::string first_violation;

  [[nodiscard]] double error_mean() const;
  [[nodiscard]] double error_p99() const;   ///< nearest rank.
  [[nodiscard]] bool passed(const GoldenRule& rule) const;
  [[nodiscard]] std::string text() const;
};

/// Adds the step behind tokens[0..step) of a prompt. `logits` has the vocabulary's size.
void judge_step(GoldenVerdict& verdict, const Golden& golden, std::size_t prompt, std::size_t step,
                std::span<const float> logits);

}   // namespace duet::device
