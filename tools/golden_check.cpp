// golden_check.cpp: feeds a golden to a model on its chip.
#include "tools/golden_check.hpp"

#include <algorithm>

namespace duet::tools {

device::result<device::GoldenVerdict> check_golden_on(ModelClient& model,
                                                      const device::Golden& golden,
                                                      std::size_t first, std::size_t last) {
  device::GoldenVerdict verdict;
  for (std::size_t i = first; i < std::min(last, golden.prompts.size()); ++i) {
    const device::GoldenPrompt& prompt = golden.prompts[i];
    ++verdict.prompts;
    auto logits = model.begin(prompt.prompt_ids);
    if (!logits) return logits.error();
    for (std::size_t step = 0; step < prompt.tokens.size(); ++step) {
      device::judge_step(verdict, golden, i, step, *logits);
      if (step + 1 == prompt.tokens.size()) break;
      logits = model.next(prompt.tokens[step]);
      if (!logits) return logits.error();
    }
  }
  if (auto ended = model.end(); !ended) return ended.error();
  return verdict;
}

}   // namespace duet::tools
