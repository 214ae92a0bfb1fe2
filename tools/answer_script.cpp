// answer_script.cpp: binds scripted answers to the models of a package.
#include "tools/answer_script.hpp"

#include "config/cross_check.hpp"
#include "device/emulator/scripted_answers.hpp"
#include "text/tokenizer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace duet::tools {

std::unique_ptr<device::emulator::FaultHook> answer_script(const config::Config& config,
                                                           const device::Package& package) {
  std::vector<device::emulator::ScriptedAnswer> answers;
  for (const config::AnswerScript& script : config.device.answers) {
    const auto& models = config.service.models;
    const auto options = std::find_if(models.begin(), models.end(), [&](const auto& model) {
      return model.alias == script.alias;
    });
    const device::Model* const model =
        options == models.end() ? nullptr : config::bound_model(*options, package.manifest());
    if (model == nullptr) continue;   // cross_check has said so
    device::emulator::ScriptedAnswer answer;
    answer.model = model->name;
    answer.prompt = script.prompt_tokens;
    answer.answer = script.answer_tokens;
    if (script.ends) {
      const auto tokenizer = text::Tokenizer::from_json(package.tokenizer(model->name));
      if (tokenizer) answer.end = tokenizer->eos();
    }
    answers.push_back(std::move(answer));
  }
  if (answers.empty()) return nullptr;
  return std::make_unique<device::emulator::ScriptedAnswers>(answers);
}

}   // namespace duet::tools
