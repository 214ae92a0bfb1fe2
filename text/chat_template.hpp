// chat_template.hpp: a model's chat template: messages to the text that the model was trained on.
#pragma once

#include "text/error.hpp"
#include "text/templated_text.hpp"
#include "text/tokenizer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

struct ChatMessage {
  std::string role;
  std::string content;
};

/// What a template is given. The arrays are borrowed for the call.
struct ChatInput {
  const boost::json::array* messages = nullptr;   ///< As in OpenAI's API; must be there.
  const boost::json::array* tools = nullptr;
  const boost::json::object* extra = nullptr;   ///< Further variables, like `enable_thinking`.
  bool add_generation_prompt = true;
};

/// A Jinja subset (jinja_builtins.hpp lists it) with trim_blocks and lstrip_blocks, as chat
/// templates expect. Immutable after creation: any thread. A copy shares the parsed template.
class ChatTemplate {
 public:
  /// Parses `source`; `bos_token` and `eos_token` are what the template sees under these names.
  /// Errors: template_invalid with line and column, template_limit.
  [[nodiscard]] static Result<ChatTemplate> create(std::string_view source,
                                                   std::string_view bos_token,
                                                   std::string_view eos_token);
  /// The tokenizer's own template. Errors: also template_invalid when it has none.
  [[nodiscard]] static Result<ChatTemplate> create(const Tokenizer& tokenizer);

  /// The rendered text knows for each byte whether the template wrote it (markup) or it came from
  /// `input` (content), so that Tokenizer::encode finds special tokens in the former alone. Roles
  /// of the OpenAI API count as markup: templates build markers of them. Never throws but for lack
  /// of memory. Errors: template_failed, template_limit, template_raised.
  [[nodiscard]] Result<TemplatedText> render(const ChatInput& input) const;
  [[nodiscard]] Result<TemplatedText> render(const std::vector<ChatMessage>& messages,
                                             bool add_generation_prompt = true) const;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}   // namespace duet::text
