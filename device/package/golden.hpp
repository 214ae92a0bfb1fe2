// golden.hpp: the golden file of a model: prompts, the tokens that follow, and how sure the
// reference was.
#pragma once

#include "device/package/manifest.hpp"
#include "device/program/message.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace duet::device {

namespace golden_limits {
inline constexpr std::uint64_t bytes_max = 64U << 20;
inline constexpr std::uint64_t prompts_max = 4096;
inline constexpr std::uint64_t tokens_max = 1U << 16;   // of one prompt with its answer
inline constexpr std::uint64_t top_max = 64;            // log-probabilities a step; five are usual
}   // namespace golden_limits

/// One prompt. Step i asks: after prompt_ids and tokens[0..i), is tokens[i] the best token?
struct GoldenPrompt {
  std::vector<std::uint32_t> prompt_ids;   ///< at least one.
  std::vector<std::uint32_t>
      tokens;   ///< the reference's greedy answer; the stop token too if it stopped.
  std::optional<std::uint32_t> stop_id;   ///< set: tokens.back() is this stop token.
  std::vector<double> margins;            ///< one a token: best logit minus the second.
  /// For the first steps (often not all): token and log-probability (natural log), the best first.
  std::vector<std::vector<std::pair<std::uint32_t, double>>> top;
};

struct Golden {
  std::string model;
  std::string source;   ///< of which weights: "q8_0", "f16", "bf16" or "f32".
  GoldenRule rule;
  std::vector<GoldenPrompt> prompts;
};

/// The same golden gives the same bytes.
[[nodiscard]] std::string write_golden(const Golden& golden);
/// Strict. `file` begins every error.
[[nodiscard]] Result<Golden> read_golden(std::string_view text, const std::string& file);

/// Ids below `vocabulary`, prompt and answer within `context`, margins and log-probabilities sound.
[[nodiscard]] Result<void> check_golden(const Golden& golden, std::uint64_t vocabulary,
                                        std::uint64_t context, const std::string& file);

/// Converts a golden file of the training scripts (tools/demo_models/training/golden.py): the entry
/// `source` of each prompt.
[[nodiscard]] Result<Golden> import_golden(std::string_view text, const std::string& source,
                                           const std::string& file);

}   // namespace duet::device
