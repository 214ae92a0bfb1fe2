// golden_check.hpp: judges a model on its chip by the package's golden file and rule.
#pragma once

#include "device/package/golden.hpp"
#include "tools/model_client.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duet::tools {

/// The golden's tokens are fed in, so that one difference does not make all later ones.
/// docs/package.md has the rule.
struct GoldenVerdict {
  std::size_t prompts = 0;
  std::size_t steps = 0;                ///< compared best tokens.
  std::size_t steps_judged = 0;         ///< of them, those whose margin the rule covers.
  std::size_t disagreements = 0;        ///< best token is another, anywhere.
  std::size_t violations = 0;           ///< the same where the rule covers the margin.
  std::vector<double> logprob_errors;   ///< |difference| of the golden token's log-probability,
                                        ///< where the golden has it.
  std::string first_violation;

  [[nodiscard]] double error_mean() const;
  [[nodiscard]] double error_p99() const;   ///< nearest rank.
  [[nodiscard]] bool passed(const device::GoldenRule& rule) const;
  [[nodiscard]] std::string text() const;
};

/// Runs prompts [first, last) of the golden. Errors: those of the device.
device::result<GoldenVerdict> check_golden_on(ModelClient& model, const device::Golden& golden,
                                              std::size_t first, std::size_t last);

/// Adds `more` to `verdict`.
void merge(GoldenVerdict& verdict, const GoldenVerdict& more);

}   // namespace duet::tools
