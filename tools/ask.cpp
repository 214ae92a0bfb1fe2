// ask.cpp: the loop from logits to text.
#include "tools/ask.hpp"

#include "text/sampler.hpp"

#include <algorithm>
#include <utility>

namespace duet::tools {

boost::system::result<Question, std::string> Question::create(const device::Model& model,
                                                              std::string_view tokenizer_document,
                                                              const std::string& message) {
  auto tokenizer = text::Tokenizer::from_json(tokenizer_document);
  if (!tokenizer) return model.alias + ": " + tokenizer.error().message;
  if (tokenizer->vocabulary().size() != model.config.vocabulary) {
    return model.alias + ": the tokenizer has " + std::to_string(tokenizer->vocabulary().size()) +
           " tokens, the model " + std::to_string(model.config.vocabulary);
  }
  const auto chat = text::ChatTemplate::create(*tokenizer);
  if (!chat) return model.alias + ": " + chat.error().message;
  const auto rendered = chat->render({{"user", message}}, true);
  if (!rendered) return model.alias + ": " + rendered.error().message;
  std::vector<text::TokenId> prompt;
  if (auto encoded = tokenizer->encode(*rendered, text::AddSpecial::yes, prompt); !encoded) {
    return model.alias + ": " + encoded.error().message;
  }
  if (prompt.size() > model.kv.tokens_per_slot) {
    return model.alias + ": the question has " + std::to_string(prompt.size()) +
           " tokens, the context " + std::to_string(model.kv.tokens_per_slot) +
           "; ask a shorter one";
  }
  return Question(std::move(*tokenizer), std::move(prompt));
}

device::result<Answer> ask(ModelClient& model, const Question& question, std::uint32_t tokens_max,
                           const std::function<void(const std::string&)>& on_text) {
  text::SamplingOptions greedy;
  greedy.temperature = 0;
  const auto sampler =
      text::Sampler::create(greedy, question.tokenizer().vocabulary().size(), question.prompt());
  if (!sampler) return device::Failure(device::errc::bad_argument, sampler.error().message);
  text::SamplerScratch scratch;
  text::TokenDecoder decoder(question.tokenizer(), text::DecodeFrom::continuation);
  const std::uint32_t context = model.model().kv.tokens_per_slot;

  Answer answer;
  answer.finish = "length";
  auto logits = model.begin(question.prompt());
  for (;;) {
    if (!logits) return logits.error();
    const auto token = sampler->choose(*logits, answer.tokens, scratch);
    if (!token) return device::Failure(device::errc::bad_output, token.error().message);
    if (question.tokenizer().is_stop_token(*token)) {
      answer.finish = "stop";
      break;
    }
    ++answer.tokens;
    std::string piece;
    if (auto decoded = decoder.push(*token, piece); !decoded) {
      return device::Failure(device::errc::bad_output, decoded.error().message);
    }
    answer.text += piece;
    if (!piece.empty()) on_text(piece);
    if (answer.tokens >= tokens_max || model.length() >= context) break;
    logits = model.next(*token);
  }
  std::string rest;
  decoder.flush(rest);
  answer.text += rest;
  if (!rest.empty()) on_text(rest);
  if (auto ended = model.end(); !ended) return ended.error();
  return answer;
}

}   // namespace duet::tools
