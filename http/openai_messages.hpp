// openai_messages.hpp: `messages` and `prompt` of OpenAI's API, checked and put in order.
#pragma once

#include "actors/error.hpp"
#include "actors/generate_request.hpp"

#include <boost/json/value.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace duet::http {

/// Checks roles, contents, parts and tool calls, and changes `messages` as parse_openai_request
/// says. Null: `error` is set.
[[nodiscard]] std::shared_ptr<const boost::json::array> take_messages(
    boost::json::value& messages, std::optional<actors::ServiceError>& error);

/// A string, a list of strings, a list of token ids or a list of those. Empty: `error` is set. An
/// id at or above the size of a vocabulary is the service's to refuse.
[[nodiscard]] std::vector<actors::Prompt> read_prompts(const boost::json::value& prompt,
                                                       std::optional<actors::ServiceError>& error);

}   // namespace duet::http
