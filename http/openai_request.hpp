// openai_request.hpp: the JSON body of a completions request, checked strictly, as a
// GenerateRequest. Source of the fields: OpenAI's API reference, chat and legacy completions;
// top_k, min_p and repetition_penalty as in vLLM.
#pragma once

#include "actors/error.hpp"
#include "actors/generate_request.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace duet::http {

enum class ApiKind : std::uint8_t { chat, completions };

struct OpenAiRequest {
  actors::GenerateRequest generate;   ///< without id and key, which are not in the body.
  ApiKind kind = ApiKind::chat;
  bool stream = false;
  bool include_usage = false;
};

template <typename T>
using RequestResult = boost::system::result<T, actors::ServiceError>;

/// Pure; any thread. `aliases`: the configured models, ready or not. Nothing is coerced: a wrong
/// type or range is `bad_request` with the field as `param` ("messages[2].content"); unknown fields
/// are ignored, known ones that are not served (tools, suffix, response_format, audio) refused. A
/// `null` is an absent field. The body nests at most `depth_max` levels.
///
/// Beyond OpenAI's text:
///  - `model` may be absent if there is one alias only.
///  - `max_tokens` is 1 to limits::answer_tokens_max: 0 is refused, as by other servers; together
///    with `max_completion_tokens` it is refused, as OpenAI does.
///  - a number without fraction is an integer, however it is written (`16.0`).
///  - the content parts of a message become one string, joined by line feeds; content that may be
///    null (beside tool calls) stays null; role `developer` becomes `system`.
///  - `top_p` 0 keeps the likeliest token; `top_k` 0 and -1 keep all.
[[nodiscard]] RequestResult<OpenAiRequest> parse_openai_request(
    ApiKind kind, std::string_view body, std::span<const std::string> aliases,
    std::uint32_t depth_max);

}   // namespace duet::http
