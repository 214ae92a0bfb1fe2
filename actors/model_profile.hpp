// model_profile.hpp: what never changes about a served model; shared by its worker and its
// requests.
#pragma once

#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace duet::actors {

struct ModelProfile {
  std::string alias;
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat;   ///< null: the model takes plain prompts only.
  std::uint32_t context = 0;                ///< tokens of prompt and answer together.
};

}   // namespace duet::actors
