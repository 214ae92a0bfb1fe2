// prompt_tokens.hpp: prompts of a request to token ids, with every refusal that needs no device.
#pragma once

#include "actors/error.hpp"
#include "actors/generate_request.hpp"
#include "actors/messages.hpp"
#include "actors/model_profile.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <vector>

namespace duet::actors {

struct PreparedPrompts {
  std::vector<Tokens> prompts;
  std::uint32_t tokens = 0;       ///< of all prompts together.
  std::uint32_t answer_max = 0;   ///< tokens of each answer; at least 1.
};

template <typename T>
using ServiceResult = boost::system::result<T, ServiceError>;

/// Renders, tokenizes and checks against the context: prompt and answer together must fit, and a
/// prompt that leaves no room for a token is refused with both counts. Pure; may take milliseconds
/// a 100 KiB. Errors: bad_request, internal.
[[nodiscard]] ServiceResult<PreparedPrompts> prepare_prompts(const GenerateRequest& request,
                                                             const ModelProfile& profile);

/// Bytes that prepare_prompts would have to look at.
[[nodiscard]] std::size_t prompt_bytes(const GenerateRequest& request);

}   // namespace duet::actors
