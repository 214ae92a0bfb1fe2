// prompt_tokens.cpp: templates, tokenizers and the context's edge.
#include "actors/prompt_tokens.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace duet::actors {

namespace {

using IdList = std::vector<text::TokenId>;

ServiceError bad(std::string message, std::string param) {
  return {errc::bad_request, std::move(message), std::move(param)};
}

ServiceResult<IdList> chat_ids(const ChatPrompt& chat, const ModelProfile& profile) {
  if (!profile.chat.has_value()) {
    return bad("the model " + profile.alias + " has no chat template; use /v1/completions",
               "messages");
  }
  text::ChatInput input;
  input.messages = chat.messages.get();
  const auto rendered = profile.chat->render(input);
  if (!rendered) {
    return bad("the chat template cannot use these messages: " + rendered.error().message,
               "messages");
  }
  IdList ids;
  if (auto encoded = profile.tokenizer.encode(*rendered, text::AddSpecial::yes, ids); !encoded) {
    return bad(encoded.error().message, "messages");
  }
  return ids;
}

ServiceResult<IdList> ids_of(const Prompt& prompt, const ModelProfile& profile) {
  if (const auto* chat = std::get_if<ChatPrompt>(&prompt)) return chat_ids(*chat, profile);
  if (const auto* given = std::get_if<IdList>(&prompt)) {
    const std::size_t vocabulary = profile.tokenizer.vocabulary().size();
    for (std::size_t i = 0; i < given->size(); ++i) {
      if ((*given)[i] < vocabulary) continue;
      return bad("token " + std::to_string((*given)[i]) + " at position " + std::to_string(i) +
                     " is not in the vocabulary of " + std::to_string(vocabulary),
                 "prompt");
    }
    return *given;
  }
  IdList ids;
  auto encoded =
      profile.tokenizer.encode(std::get<std::string>(prompt), text::AddSpecial::yes, ids);
  if (!encoded) return bad(encoded.error().message, "prompt");
  return ids;
}

}   // namespace

ServiceResult<PreparedPrompts> prepare_prompts(const GenerateRequest& request,
                                               const ModelProfile& profile) {
  PreparedPrompts prepared;
  std::size_t longest = 0;
  for (const Prompt& prompt : request.prompts) {
    const char* const param = std::holds_alternative<ChatPrompt>(prompt) ? "messages" : "prompt";
    auto ids = ids_of(prompt, profile);
    if (!ids) return ids.error();
    if (ids->empty()) return bad("the prompt is empty", param);
    if (ids->size() >= profile.context) {
      return bad("the prompt has " + std::to_string(ids->size()) + " tokens; the context of " +
                     std::to_string(profile.context) +
                     " tokens must hold it and at least one token of the answer",
                 param);
    }
    longest = std::max(longest, ids->size());
    prepared.tokens += static_cast<std::uint32_t>(ids->size());
    prepared.prompts.push_back(std::make_shared<const IdList>(std::move(*ids)));
  }
  const std::size_t room = profile.context - longest;
  const std::size_t wanted = request.tokens_max.value_or(static_cast<std::uint32_t>(room));
  if (wanted > room) {
    return bad("the prompt has " + std::to_string(longest) + " tokens and max_tokens is " +
                   std::to_string(wanted) + "; together they exceed the context of " +
                   std::to_string(profile.context),
               "max_tokens");
  }
  prepared.answer_max = static_cast<std::uint32_t>(wanted);
  return prepared;
}

std::size_t prompt_bytes(const GenerateRequest& request) {
  std::size_t bytes = 0;
  for (const Prompt& prompt : request.prompts) {
    if (const auto* plain = std::get_if<std::string>(&prompt)) bytes += plain->size();
    const auto* chat = std::get_if<ChatPrompt>(&prompt);
    if (chat == nullptr) continue;
    for (const auto& message : *chat->messages) {
      const auto* object = message.if_object();
      const auto* content = object == nullptr ? nullptr : object->if_contains("content");
      if (content == nullptr) continue;
      if (const auto* string = content->if_string()) bytes += string->size();
      if (const auto* parts = content->if_array()) bytes += 64 * parts->size();
    }
  }
  return bytes;
}

}   // namespace duet::actors
