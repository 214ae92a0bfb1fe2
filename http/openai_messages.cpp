// openai_messages.cpp: roles, content parts, tool calls; prompts of text and of token ids.
#include "http/openai_messages.hpp"

#include "actors/limits.hpp"
#include "http/json_fields.hpp"
#include "http/json_text.hpp"
#include "http/limits.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace duet::http {

namespace json = boost::json;

namespace {

using Error = std::optional<actors::ServiceError>;

constexpr std::array<std::string_view, 6> roles = {"system",    "developer", "user",
                                                   "assistant", "tool",      "function"};

std::string at(std::string_view name, std::size_t index) {
  std::string path(name);
  path += '[';
  path += std::to_string(index);
  path += ']';
  return path;
}

void must_be(Error& error, const std::string& path, std::string_view wanted,
             const json::value* value) {
  std::string what = "must be ";
  what += wanted;
  if (value == nullptr) {
    what = "is missing; it must be ";
    what += wanted;
  } else {
    what += ", not ";
    what += type_name(*value);
  }
  error = bad_field(path, what);
}

/// Null and `error` unless the field is there and a string.
const json::string* need_string(const json::object& object, std::string_view name,
                                const std::string& path, Error& error) {
  const json::value* const value = object.if_contains(name);
  if (value != nullptr && value->is_string()) return &value->get_string();
  std::string full = path;
  full += '.';
  full += name;
  must_be(error, full, "a string", value);
  return nullptr;
}

/// One text of a list of parts; `refusal` is what an assistant's earlier answer may hold.
void join_parts(json::value& content, const std::string& path, Error& error) {
  std::string text;
  const json::array& parts = content.get_array();
  if (parts.empty()) error = bad_field(path, "must not be an empty list");
  for (std::size_t i = 0; i < parts.size() && !error; ++i) {
    const std::string part_path = at(path, i);
    if (!parts[i].is_object()) return must_be(error, part_path, "an object", &parts[i]);
    const json::object& part = parts[i].get_object();
    const json::string* const type = need_string(part, "type", part_path, error);
    if (type == nullptr) return;
    const bool refusal = *type == "refusal";
    if (!refusal && *type != "text") {
      error = bad_field(part_path + ".type", "must be \"text\"; parts of type \"" +
                                                 bounded_echo(*type) + "\" are not served");
      return;
    }
    const json::string* const words =
        need_string(part, refusal ? "refusal" : "text", part_path, error);
    if (words == nullptr) return;
    if (i > 0) text += '\n';
    text += std::string_view(*words);
  }
  if (!error) content.emplace_string() = text;
}

void check_tool_call(const json::value& value, const std::string& path, Error& error) {
  if (!value.is_object()) return must_be(error, path, "an object", &value);
  const json::object& call = value.get_object();
  if (need_string(call, "id", path, error) == nullptr) return;
  const json::value* const type = call.if_contains("type");
  if (type != nullptr && (!type->is_string() || type->get_string() != "function")) {
    error = bad_field(path + ".type", "must be \"function\"");
    return;
  }
  const json::value* const function = call.if_contains("function");
  if (function == nullptr || !function->is_object())
    return must_be(error, path + ".function", "an object", function);
  const std::string function_path = path + ".function";
  if (need_string(function->get_object(), "name", function_path, error) == nullptr) return;
  (void)need_string(function->get_object(), "arguments", function_path, error);
}

/// True: the message has tool calls, so that its content may be null.
bool check_tool_calls(const json::object& message, const std::string& path, Error& error) {
  const json::value* const calls = message.if_contains("tool_calls");
  if (calls == nullptr || calls->is_null()) return false;
  const std::string calls_path = path + ".tool_calls";
  if (!calls->is_array()) {
    must_be(error, calls_path, "an array", calls);
    return false;
  }
  const json::array& list = calls->get_array();
  if (list.size() > limits::tool_calls_max) {
    error = bad_field(calls_path,
                      "has more than " + std::to_string(limits::tool_calls_max) + " entries");
    return false;
  }
  for (std::size_t i = 0; i < list.size() && !error; ++i)
    check_tool_call(list[i], at(calls_path, i), error);
  return !list.empty();
}

void check_content(json::object& message, bool nullable, const std::string& path, Error& error) {
  json::value* const content = message.if_contains("content");
  const std::string content_path = path + ".content";
  if (content == nullptr || content->is_null()) {
    if (!nullable) {
      must_be(error, content_path, "a string or a list of text parts", content);
    } else if (content == nullptr) {
      message["content"] = nullptr;   // templates read it
    }
    return;
  }
  if (content->is_string()) return;
  if (content->is_array()) return join_parts(*content, content_path, error);
  must_be(error, content_path, "a string or a list of text parts", content);
}

void check_message(json::value& value, const std::string& path, Error& error) {
  if (!value.is_object()) return must_be(error, path, "an object", &value);
  json::object& message = value.get_object();
  const json::string* const role = need_string(message, "role", path, error);
  if (role == nullptr) return;
  const std::string_view role_name = *role;
  if (std::find(roles.begin(), roles.end(), role_name) == roles.end()) {
    error = bad_field(path + ".role", "must be system, developer, user, assistant or tool, not \"" +
                                          bounded_echo(role_name) + "\"");
    return;
  }
  const bool assistant = role_name == "assistant";
  const bool developer = role_name == "developer";
  if (role_name == "tool" && need_string(message, "tool_call_id", path, error) == nullptr) return;
  const json::value* const name = message.if_contains("name");
  if (name != nullptr && !name->is_null() && !name->is_string())
    return must_be(error, path + ".name", "a string", name);
  const bool calls = check_tool_calls(message, path, error);
  if (error) return;
  const json::value* const old_call = message.if_contains("function_call");
  const bool old_calls = old_call != nullptr && old_call->is_object();
  // It may add a field, which moves the others: `role_name` is not to be used after it.
  check_content(message, assistant && (calls || old_calls), path, error);
  if (!error && developer) message["role"] = "system";
}

std::vector<text::TokenId> read_ids(const json::array& list, std::string_view path, Error& error) {
  std::vector<text::TokenId> ids;
  ids.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::optional<std::int64_t> id = as_integer(list[i]);
    if (!id || *id < 0 || *id > std::numeric_limits<text::TokenId>::max()) {
      error = bad_field(at(path, i), "must be a token id, an integer that is not negative");
      return {};
    }
    ids.push_back(static_cast<text::TokenId>(*id));
  }
  return ids;
}

void read_prompt_list(const json::array& list, std::vector<actors::Prompt>& prompts, Error& error) {
  if (list.size() > actors::limits::prompts_max) {
    error = bad_field("prompt",
                      "has more than " + std::to_string(actors::limits::prompts_max) + " prompts");
    return;
  }
  const bool texts = list.front().is_string();
  for (std::size_t i = 0; i < list.size() && !error; ++i) {
    const std::string path = at("prompt", i);
    if (texts) {
      if (!list[i].is_string()) return must_be(error, path, "a string like the first", &list[i]);
      prompts.emplace_back(std::string(list[i].get_string()));
      continue;
    }
    if (!list[i].is_array())
      return must_be(error, path, "a list of token ids like the first", &list[i]);
    if (list[i].get_array().empty()) {
      error = bad_field(path, "must not be empty");
      return;
    }
    prompts.emplace_back(read_ids(list[i].get_array(), path, error));
  }
}

}   // namespace

std::shared_ptr<const json::array> take_messages(json::value& messages, Error& error) {
  if (!messages.is_array()) {
    must_be(error, "messages", "an array", messages.is_null() ? nullptr : &messages);
    return nullptr;
  }
  json::array& list = messages.get_array();
  if (list.empty()) error = bad_field("messages", "must not be empty");
  if (list.size() > limits::messages_max) {
    error =
        bad_field("messages", "has more than " + std::to_string(limits::messages_max) + " entries");
  }
  for (std::size_t i = 0; i < list.size() && !error; ++i)
    check_message(list[i], at("messages", i), error);
  if (error) return nullptr;
  return std::make_shared<const json::array>(std::move(list));
}

std::vector<actors::Prompt> read_prompts(const json::value& prompt, Error& error) {
  std::vector<actors::Prompt> prompts;
  if (prompt.is_string()) {
    prompts.emplace_back(std::string(prompt.get_string()));
  } else if (!prompt.is_array()) {
    must_be(error, "prompt", "a string, a list of strings or of token ids, or a list of such lists",
            prompt.is_null() ? nullptr : &prompt);
  } else if (const json::array& list = prompt.get_array(); list.empty()) {
    error = bad_field("prompt", "must not be empty");
  } else if (list.front().is_string() || list.front().is_array()) {
    read_prompt_list(list, prompts, error);
  } else {
    prompts.emplace_back(read_ids(list, "prompt", error));
  }
  if (error) prompts.clear();
  return prompts;
}

}   // namespace duet::http
