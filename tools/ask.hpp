// ask.hpp: one question to one model: template, tokens, greedy answer.
#pragma once

#include "text/chat_template.hpp"
#include "text/token_decoder.hpp"
#include "text/tokenizer.hpp"
#include "tools/model_client.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace duet::tools {

/// A question that is ready to be asked; made before a device is opened, so that what cannot be
/// asked costs nothing.
class Question {
 public:
  /// `tokenizer_document` is the package's; the message is that of one user. Errors: a sentence.
  static boost::system::result<Question, std::string> create(const device::Model& model,
                                                             std::string_view tokenizer_document,
                                                             const std::string& message);

  [[nodiscard]] const std::vector<text::TokenId>& prompt() const { return prompt_; }
  [[nodiscard]] const text::Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  Question(text::Tokenizer tokenizer, std::vector<text::TokenId> prompt)
      : tokenizer_(std::move(tokenizer)), prompt_(std::move(prompt)) {}
  text::Tokenizer tokenizer_;
  std::vector<text::TokenId> prompt_;
};

struct Answer {
  std::string text;
  std::uint32_t tokens = 0;
  std::string finish;   ///< "stop" or "length".
};

/// Asks, greedily, until a stop token, `tokens_max` or the context. `on_text` gets each piece as it
/// comes.
device::result<Answer> ask(ModelClient& model, const Question& question, std::uint32_t tokens_max,
                           const std::function<void(const std::string&)>& on_text);

}   // namespace duet::tools
