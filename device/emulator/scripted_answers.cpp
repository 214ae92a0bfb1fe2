// scripted_answers.cpp: scripts as a table from a sequence to its next token.
#include "device/emulator/scripted_answers.hpp"

namespace duet::device::emulator {

ScriptedAnswers::ScriptedAnswers(const std::vector<ScriptedAnswer>& answers) {
  for (const ScriptedAnswer& script : answers) {
    SequenceHash sequence = empty_sequence(script.model);
    for (const std::uint32_t token : script.prompt) sequence = append_token(sequence, token);
    for (const std::uint32_t token : script.answer) {
      next_.emplace(sequence, token);
      sequence = append_token(sequence, token);
    }
    if (script.end) next_.emplace(sequence, *script.end);
  }
}

std::optional<std::uint32_t> ScriptedAnswers::next_token(SequenceHash sequence) noexcept {
  const auto found = next_.find(sequence);
  if (found == next_.end()) return std::nullopt;
  return found->second;
}

}   // namespace duet::device::emulator
