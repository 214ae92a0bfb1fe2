// openai_request.cpp: the fields of chat and legacy completions, one after the other.
#include "http/openai_request.hpp"

#include "actors/limits.hpp"
#include "http/json_fields.hpp"
#include "http/json_text.hpp"
#include "http/limits.hpp"
#include "http/openai_messages.hpp"
#include "text/limits.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace duet::http {

namespace json = boost::json;
using actors::errc;
using actors::ServiceError;

namespace {

using Error = std::optional<ServiceError>;

ServiceError json_error(const boost::system::error_code& code, std::uint32_t depth_max) {
  if (code == json::error::too_deep) {
    return {errc::bad_request,
            "the body nests more than " + std::to_string(depth_max) + " levels deep"};
  }
  return {errc::bad_request, "the body is not JSON: " + code.message()};
}

// C15: the model's name is matched byte by byte; what is repeated of it is bounded.
void read_model(const JsonFields& fields, std::span<const std::string> aliases, std::string& model,
                Error& error) {
  std::optional<std::string> name;
  fields.string("model", name);
  if (error) return;
  if (!name) {
    if (aliases.size() == 1) {
      model = aliases.front();
    } else {
      fields.fail("model", "is missing; it must name one of the models");
    }
    return;
  }
  if (std::find(aliases.begin(), aliases.end(), *name) == aliases.end()) {
    error = ServiceError{errc::model_not_found,
                         "the model '" + bounded_echo(*name) + "' does not exist", "model"};
    return;
  }
  model = std::move(*name);
}

void read_tokens_max(const JsonFields& fields, ApiKind kind, std::optional<std::uint32_t>& target) {
  std::optional<std::int64_t> tokens;
  const IntegerRange range{1, limits::answer_tokens_max};
  fields.integer("max_tokens", range, tokens);
  if (kind == ApiKind::chat) {
    if (tokens && fields.find("max_completion_tokens") != nullptr)
      fields.fail("max_tokens", "must not be given together with 'max_completion_tokens'");
    fields.integer("max_completion_tokens", range, tokens);
  }
  if (tokens) target = static_cast<std::uint32_t>(*tokens);
}

void read_stop(const JsonFields& fields, std::vector<std::string>& stops) {
  const json::value* const stop = fields.find("stop");
  if (stop == nullptr) return;
  const json::array one{*stop};
  const json::array* const list = stop->is_array() ? &stop->get_array() : &one;
  if (list->size() > actors::limits::stops_max) {
    return fields.fail("stop",
                       "has more than " + std::to_string(actors::limits::stops_max) + " entries");
  }
  for (const json::value& value : *list) {
    if (!value.is_string()) return fields.fail("stop", "must be a string or a list of strings");
    if (value.get_string().empty()) return fields.fail("stop", "must not hold an empty string");
    if (value.get_string().size() > text::limits::stop_bytes_max) {
      return fields.fail("stop", "holds a string of more than " +
                                     std::to_string(text::limits::stop_bytes_max) + " bytes");
    }
    stops.emplace_back(value.get_string());
  }
}

void read_logit_bias(const JsonFields& fields, std::vector<std::pair<text::TokenId, float>>& out) {
  const json::value* const bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object()) return fields.fail("logit_bias", "must be an object");
  const json::object& object = bias->get_object();
  if (object.size() > text::limits::logit_bias_max) {
    return fields.fail(
        "logit_bias", "has more than " + std::to_string(text::limits::logit_bias_max) + " entries");
  }
  for (const auto& [key, value] : object) {
    text::TokenId id = 0;
    const char* const end = key.data() + key.size();
    const auto read = std::from_chars(key.data(), end, id);
    const bool canonical = key.size() == 1 || (!key.empty() && key.front() != '0');
    if (read.ec != std::errc() || read.ptr != end || !canonical)
      return fields.fail("logit_bias", "must have token ids as keys");
    if (!value.is_number()) return fields.fail("logit_bias", "must have numbers as values");
    const auto number = value.to_number<double>();
    if (!(number >= -100 && number <= 100))
      return fields.fail("logit_bias", "must have values from -100 to 100");
    out.emplace_back(id, static_cast<float>(number));
  }
}

void read_float(const JsonFields& fields, std::string_view name, NumberRange range, float& target) {
  std::optional<double> number;
  fields.number(name, range, number);
  if (number) target = static_cast<float>(*number);
}

void read_sampling(const JsonFields& fields, actors::GenerateRequest& request) {
  text::SamplingOptions& sampling = request.sampling;
  read_float(fields, "temperature", {0, 2}, sampling.temperature);
  read_float(fields, "top_p", {0, 1}, sampling.top_p);
  // The smallest share keeps the likeliest token alone, which is what 0 means to its senders.
  sampling.top_p = std::max(sampling.top_p, std::numeric_limits<float>::min());
  read_float(fields, "min_p", {0, 1}, sampling.min_p);
  read_float(fields, "presence_penalty", {-2, 2}, sampling.presence_penalty);
  read_float(fields, "frequency_penalty", {-2, 2}, sampling.frequency_penalty);
  read_float(fields, "repetition_penalty", {0.01, 100}, sampling.repetition_penalty);
  std::optional<std::int64_t> top_k;
  fields.integer("top_k", {-1, std::numeric_limits<std::int32_t>::max()}, top_k);
  if (top_k) sampling.top_k = static_cast<std::uint32_t>(std::max<std::int64_t>(*top_k, 0));
  read_logit_bias(fields, sampling.logit_bias);

  const json::value* const seed = fields.find("seed");
  if (seed == nullptr) return;
  if (seed->is_uint64()) {
    sampling.seed = seed->get_uint64();
  } else if (const std::optional<std::int64_t> number = as_integer(*seed)) {
    sampling.seed = static_cast<std::uint64_t>(*number);
  } else {
    return fields.fail("seed", "must be an integer of 64 bits");
  }
  request.seed_given = true;
}

void read_logprobs(const JsonFields& fields, ApiKind kind, actors::GenerateRequest& request) {
  std::optional<std::int64_t> top;
  if (kind == ApiKind::completions) {
    fields.integer("logprobs", {0, limits::legacy_logprobs_max}, top);
    request.logprobs = top.has_value();
  } else {
    fields.boolean("logprobs", request.logprobs);
    fields.integer("top_logprobs", {0, actors::limits::logprobs_top_max}, top);
    if (top && !request.logprobs) fields.fail("top_logprobs", "needs 'logprobs' to be true");
  }
  request.logprobs_top = static_cast<std::uint32_t>(top.value_or(0));
}

void read_stream(const JsonFields& fields, OpenAiRequest& request, Error& error) {
  fields.boolean("stream", request.stream);
  const json::value* const options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return fields.fail("stream_options", "must be an object");
  if (!request.stream) return fields.fail("stream_options", "needs 'stream' to be true");
  const JsonFields inner(options->get_object(), error, "stream_options.");
  inner.boolean("include_usage", request.include_usage);
}

void refuse_filled_list(const JsonFields& fields, std::string_view name) {
  const json::value* const value = fields.find(name);
  if (value == nullptr) return;
  if (!value->is_array()) return fields.fail(name, "must be an array");
  if (!value->get_array().empty()) fields.fail(name, "is not served");
}

// An answer that looks right but ignores what was asked for is worse than a refusal.
void refuse_what_is_not_served(const JsonFields& fields, ApiKind kind, std::uint32_t choices) {
  if (kind == ApiKind::completions) {
    std::optional<std::string> suffix;
    fields.string("suffix", suffix);
    if (suffix && !suffix->empty()) fields.fail("suffix", "is not served");
    std::optional<std::int64_t> best_of;
    fields.integer("best_of", {1, actors::limits::choices_max}, best_of);
    if (best_of && *best_of != choices)
      fields.fail("best_of", "is not served unless it equals 'n'");
    return;
  }
  const json::value* const choice = fields.find("tool_choice");
  const bool no_tools = choice != nullptr && choice->is_string() && choice->get_string() == "none";
  if (!no_tools) {
    refuse_filled_list(fields, "tools");
    refuse_filled_list(fields, "functions");
  }
  if (fields.find("audio") != nullptr) fields.fail("audio", "is not served");
  if (const json::value* const format = fields.find("response_format")) {
    const json::object* const object = format->if_object();
    const json::value* const type = object == nullptr ? nullptr : object->if_contains("type");
    if (type == nullptr || !type->is_string()) {
      fields.fail("response_format", "must be an object with a 'type'");
    } else if (type->get_string() != "text") {
      fields.fail("response_format", "is served with type \"text\" only");
    }
  }
}

void read_choices(const JsonFields& fields, actors::GenerateRequest& request) {
  std::optional<std::int64_t> choices;
  fields.integer("n", {1, actors::limits::choices_max}, choices);
  request.choices = static_cast<std::uint32_t>(choices.value_or(1));
  if (request.choices * request.prompts.size() > limits::choices_a_request_max) {
    fields.fail("n", "times the number of prompts is more than " +
                         std::to_string(limits::choices_a_request_max));
  }
}

void read_prompt(json::object& object, OpenAiRequest& request, Error& error) {
  static const json::value absent;
  if (request.kind == ApiKind::chat) {
    json::value missing;
    json::value* const messages = object.if_contains("messages");
    auto list = take_messages(messages == nullptr ? missing : *messages, error);
    if (list != nullptr) request.generate.prompts.emplace_back(actors::ChatPrompt(std::move(list)));
    return;
  }
  const json::value* const prompt = object.if_contains("prompt");
  request.generate.prompts = read_prompts(prompt == nullptr ? absent : *prompt, error);
}

}   // namespace

RequestResult<OpenAiRequest> parse_openai_request(ApiKind kind, std::string_view body,
                                                  std::span<const std::string> aliases,
                                                  std::uint32_t depth_max) {
  json::parse_options options;
  options.max_depth = depth_max;
  boost::system::error_code code;
  json::value root = json::parse(body, code, {}, options);
  if (code) return json_error(code, depth_max);
  if (!root.is_object()) {
    std::string message = "the body must be a JSON object, not ";
    message += type_name(root);
    return ServiceError{errc::bad_request, std::move(message)};
  }

  Error error;
  OpenAiRequest request;
  request.kind = kind;
  const JsonFields fields(root.get_object(), error);
  read_model(fields, aliases, request.generate.model, error);
  if (!error) read_prompt(root.get_object(), request, error);
  read_choices(fields, request.generate);
  read_tokens_max(fields, kind, request.generate.tokens_max);
  read_stop(fields, request.generate.stop);
  read_sampling(fields, request.generate);
  read_logprobs(fields, kind, request.generate);
  read_stream(fields, request, error);
  if (kind == ApiKind::completions) {
    bool echo = false;
    fields.boolean("echo", echo);
    if (echo) fields.fail("echo", "true is not served; leave it out");
  }
  refuse_what_is_not_served(fields, kind, request.generate.choices);
  if (error) return std::move(*error);
  return request;
}

}   // namespace duet::http
