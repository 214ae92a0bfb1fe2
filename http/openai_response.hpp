// openai_response.hpp: answers in OpenAI's shapes: events of a stream and whole bodies. What does
// not change within a request is rendered once; a token costs an escape of its text and appends.
#pragma once

#include "actors/output_stream.hpp"
#include "http/http_error.hpp"
#include "http/openai_request.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace duet::http {

/// What of a request shows in its answer.
struct AnswerShape {
  ApiKind kind = ApiKind::chat;
  std::string id;
  std::string model;
  std::int64_t created = 0;    ///< Unix seconds.
  std::uint32_t choices = 1;   ///< of all prompts.
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
};

[[nodiscard]] const char* to_string(actors::FinishReason reason) noexcept;

/// Places of tokens in a choice's text, in characters: what legacy `text_offset` tells.
class TextOffset {
 public:
  /// Before the first token: text that no token stands for (an echoed prompt).
  void add_text(std::string_view text) noexcept;
  /// The offset of a token; a token that begins inside a character has that character's.
  [[nodiscard]] std::uint64_t add_token(std::string_view bytes) noexcept;
  [[nodiscard]] bool any_token() const noexcept { return any_token_; }

 private:
  std::uint64_t characters_ = 0;   // begun so far
  bool any_token_ = false;
};

/// Appends the entries of chat's `logprobs.content`, comma between them, no brackets. A token whose
/// bytes are no whole characters is written as \xNN for each byte; `bytes` has them exactly.
void append_chat_logprobs(std::string& out, std::span<const actors::OutputToken> tokens);

/// The four parallel lists of legacy logprobs, without their brackets. `top_logprobs` always holds
/// the chosen token beside the alternatives, as OpenAI's.
struct LegacyLogprobs {
  std::string tokens;
  std::string token_logprobs;
  std::string top_logprobs;
  std::string text_offset;

  void add(std::span<const actors::OutputToken> list, TextOffset& offset);
  void append_object(std::string& out) const;
  void clear() noexcept;
};

/// Renders server-sent events, each with its `data: ` and empty line. One request, one thread at a
/// time.
class EventRenderer {
 public:
  explicit EventRenderer(const AnswerShape& shape);

  void role(std::string& out, std::uint32_t index) const;   ///< chat only.
  void delta(std::string& out, const actors::OutputDelta& delta);
  void choice_end(std::string& out, std::uint32_t index, actors::FinishReason reason) const;
  void usage(std::string& out, const actors::Usage& usage) const;   ///< `choices` is empty.
  static void error(std::string& out, const HttpError& error);
  static void done(std::string& out);   ///< data: [DONE]

 private:
  void append_delta_logprobs(std::string& out, const actors::OutputDelta& delta);

  ApiKind kind_;
  bool logprobs_;
  std::string head_;                  // of every event, up to the list of choices
  std::string tail_;                  // after it
  std::vector<TextOffset> offsets_;   // legacy log-probabilities only
  LegacyLogprobs legacy_;
};

/// Collects an answer that is sent at its end.
class BodyRenderer {
 public:
  explicit BodyRenderer(const AnswerShape& shape);

  void delta(const actors::OutputDelta& delta);
  void choice_end(std::uint32_t index, actors::FinishReason reason);
  [[nodiscard]] std::string finish(const actors::Usage& usage) const;

 private:
  struct Choice {
    std::string text;
    std::string chat_logprobs;
    LegacyLogprobs legacy;
    TextOffset offset;
    actors::FinishReason reason = actors::FinishReason::stop;
  };
  void append_choice(std::string& out, const Choice& choice, std::uint32_t index) const;

  AnswerShape shape_;
  std::vector<Choice> choices_;
};

}   // namespace duet::http
