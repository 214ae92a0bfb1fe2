// scripted_answers.hpp: answers that a test has written, for timed and null boards.
#pragma once

#include "device/emulator/fault_hook.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace duet::device::emulator {

/// What a board answers to one prompt. A sequence that leaves the script (a sampler took another
/// token) is an ordinary made-up one from there on.
struct ScriptedAnswer {
  std::string model;   ///< its name in the manifest.
  std::vector<std::uint32_t> prompt;
  std::vector<std::uint32_t> answer;
  std::optional<std::uint32_t> end;   ///< the token after the answer; none: made-up ones follow.
};

/// Holds one entry a token of the scripts, by the hash of all that comes before it. Otherwise it
/// never interferes. Immutable; any thread.
class ScriptedAnswers final : public FaultHook {
 public:
  /// Of two scripts with the same prompt the first counts.
  explicit ScriptedAnswers(const std::vector<ScriptedAnswer>& answers);

  Fault consult(const FaultSite& /*site*/) noexcept override { return {}; }
  std::optional<std::uint32_t> next_token(SequenceHash sequence) noexcept override;

 private:
  std::unordered_map<SequenceHash, std::uint32_t> next_;   ///< looked up, never walked.
};

}   // namespace duet::device::emulator
