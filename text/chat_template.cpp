// chat_template.cpp: a model's chat template: messages to the text that the model was trained on.
#include "text/chat_template.hpp"

#include "text/jinja_ast.hpp"
#include "text/jinja_renderer.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace duet::text {
namespace {

constexpr std::array<std::string_view, 6> roles = {"system",    "developer", "user",
                                                   "assistant", "tool",      "function"};

Error unusable(std::string_view what) {
  return {errc::template_limit,
          std::string{what} + " are nested too deeply or hold text that is not UTF-8"};
}

/// A message as the template sees it. The role is from a closed list, so it may be markup.
std::optional<JinjaValue> message_value(const boost::json::value& message) {
  auto value = jinja_from_json(message);
  if (!value || value->dict() == nullptr) return value;
  const JinjaValue* role = value->dict()->find("role");
  if (role == nullptr || role->text() == nullptr) return value;
  const std::string name = role->text()->text();
  if (std::find(roles.begin(), roles.end(), name) == roles.end()) return value;
  JinjaDict dict = *value->dict();
  dict.set(TemplatedText{"role", Origin::markup}, JinjaValue{TemplatedText{name, Origin::markup}});
  return JinjaValue{std::move(dict)};
}

JinjaValue markup(std::string_view text) {
  return JinjaValue{TemplatedText{text, Origin::markup}};
}

}   // namespace

struct ChatTemplate::State {
  JinjaAst ast;
  std::string bos_token;
  std::string eos_token;
};

Result<ChatTemplate> ChatTemplate::create(std::string_view source, std::string_view bos_token,
                                          std::string_view eos_token) {
  auto ast = jinja_parse(source, JinjaOptions{});
  if (!ast) return std::move(ast).error();
  return ChatTemplate{std::make_shared<const State>(
      State{std::move(*ast), std::string{bos_token}, std::string{eos_token}})};
}

Result<ChatTemplate> ChatTemplate::create(const Tokenizer& tokenizer) {
  if (!tokenizer.chat_template()) {
    return Error{
        errc::template_invalid,
        "the model has no chat template; use plain completion, or build the package with one"};
  }
  const auto spelling = [&tokenizer](std::optional<TokenId> id) {
    return id ? tokenizer.vocabulary().spelling(*id) : std::string_view{};
  };
  return create(*tokenizer.chat_template(), spelling(tokenizer.bos()), spelling(tokenizer.eos()));
}

Result<TemplatedText> ChatTemplate::render(const ChatInput& input) const {
  if (input.messages == nullptr) return Error{errc::template_failed, "there are no messages"};
  JinjaVariables variables;
  // First what the client chose, so that it cannot hide what follows.
  if (input.extra != nullptr) {
    for (const auto& member : *input.extra) {
      auto value = jinja_from_json(member.value());
      if (!value) return unusable("template variables");
      variables.emplace_back(std::string{member.key().data(), member.key().size()},
                             std::move(*value));
    }
  }
  JinjaList messages;
  messages.reserve(input.messages->size());
  for (const auto& message : *input.messages) {
    auto value = message_value(message);
    if (!value) return unusable("messages");
    messages.push_back(std::move(*value));
  }
  variables.emplace_back("messages", JinjaValue{std::move(messages)});
  if (input.tools != nullptr) {
    auto tools = jinja_from_json(*input.tools);
    if (!tools) return unusable("tools");
    variables.emplace_back("tools", std::move(*tools));
  }
  variables.emplace_back("add_generation_prompt", JinjaValue{input.add_generation_prompt});
  variables.emplace_back("bos_token", markup(state_->bos_token));
  variables.emplace_back("eos_token", markup(state_->eos_token));
  return jinja_render(state_->ast, std::move(variables));
}

Result<TemplatedText> ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                           bool add_generation_prompt) const {
  boost::json::array array;
  for (const auto& message : messages) {
    array.push_back(boost::json::object{{"role", message.role}, {"content", message.content}});
  }
  ChatInput input;
  input.messages = &array;
  input.add_generation_prompt = add_generation_prompt;
  return render(input);
}

}   // namespace duet::text
