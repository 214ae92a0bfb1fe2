// generate_request.hpp: one client request as the application sees it: parsed and checked, without
// HTTP.
#pragma once

#include "runtime/time.hpp"
#include "text/sampler.hpp"
#include "text/tokenizer_json.hpp"

#include <boost/json/array.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace duet::actors {

/// `messages` as in OpenAI's API, checked for types (roles, contents, parts), not for what a
/// template may want of them.
struct ChatPrompt {
  explicit ChatPrompt(std::shared_ptr<const boost::json::array> list) : messages(std::move(list)) {}
  std::shared_ptr<const boost::json::array> messages;
};

using Prompt = std::variant<ChatPrompt, std::string, std::vector<text::TokenId>>;

struct GenerateRequest {
  GenerateRequest() = default;   // makes it no aggregate: it is passed through coroutines

  std::string
      id;   ///< unique among the running requests of its key; at most limits::request_id_bytes_max.
  std::string key;               ///< who asks: the name of the API key, "" without one.
  std::string model;             ///< alias.
  std::vector<Prompt> prompts;   ///< one or more; choice index = prompt * choices + choice.
  std::uint32_t choices = 1;     ///< n
  std::optional<std::uint32_t>
      tokens_max;   ///< of each answer; null: as many as the context holds.
  std::vector<std::string> stop;
  text::SamplingOptions sampling;   ///< seed only if `seed_given`.
  bool seed_given = false;
  bool logprobs = false;
  std::uint32_t logprobs_top = 0;   ///< alternatives a token.
  runtime::TimePoint deadline = runtime::TimePoint::max();
};

}   // namespace duet::actors
