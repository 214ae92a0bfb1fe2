// openai_response.cpp: chunks, bodies and log-probabilities.
#include "http/openai_response.hpp"

#include "http/json_text.hpp"
#include "runtime/assert.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace duet::http {

namespace {

constexpr std::string_view event_start = "data: ";
constexpr std::string_view event_end = "\n\n";

// OpenAI's own stand-in for "less likely than anything"; JSON has no infinity.
constexpr double logprob_min = -9999.0;

double finite_logprob(double logprob) noexcept {
  return std::isfinite(logprob) ? std::max(logprob, logprob_min) : logprob_min;
}

std::string_view object_name(ApiKind kind, bool stream) noexcept {
  if (kind == ApiKind::completions) return "text_completion";
  return stream ? "chat.completion.chunk" : "chat.completion";
}

void append_identity(std::string& out, const AnswerShape& shape) {
  out += R"({"id":)";
  append_json_repaired(out, shape.id);
  out += R"(,"object":")";
  out += object_name(shape.kind, shape.stream);
  out += R"(","created":)";
  out += std::to_string(shape.created);
  out += R"(,"model":)";
  append_json_repaired(out, shape.model);
  out += R"(,"choices":[)";
}

void append_usage(std::string& out, const actors::Usage& usage) {
  out += R"({"prompt_tokens":)";
  append_number(out, std::uint64_t{usage.prompt_tokens});
  out += R"(,"completion_tokens":)";
  append_number(out, std::uint64_t{usage.completion_tokens});
  out += R"(,"total_tokens":)";
  append_number(out, std::uint64_t{usage.prompt_tokens} + usage.completion_tokens);
  out += '}';
}

bool is_lead_byte(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

/// The token as a JSON string; bytes that are no characters as \xNN, after `prefix`.
void append_token_text(std::string& out, std::string_view bytes, std::string_view prefix) {
  constexpr std::string_view hex = "0123456789abcdef";
  if (text::utf8_valid_prefix(bytes) == bytes.size()) return append_json_string(out, bytes);
  out += '"';
  out += prefix;
  for (const char c : bytes) {
    out += R"(\\x)";
    out += hex[static_cast<unsigned char>(c) >> 4U];
    out += hex[static_cast<unsigned char>(c) & 15U];
  }
  out += '"';
}

void append_chat_logprob(std::string& out, const actors::OutputLogprob& token) {
  out += R"({"token":)";
  append_token_text(out, token.bytes, "");
  out += R"(,"logprob":)";
  append_number(out, finite_logprob(token.logprob));
  out += R"(,"bytes":[)";
  for (std::size_t i = 0; i < token.bytes.size(); ++i) {
    if (i > 0) out += ',';
    append_number(out, std::uint64_t{static_cast<unsigned char>(token.bytes[i])});
  }
  out += ']';
}

void append_legacy_top(std::string& out, const actors::OutputLogprob& token) {
  append_token_text(out, token.bytes, "bytes:");
  out += ':';
  append_number(out, finite_logprob(token.logprob));
}

}   // namespace

const char* to_string(actors::FinishReason reason) noexcept {
  switch (reason) {
    case actors::FinishReason::stop:
      return "stop";
    case actors::FinishReason::length:
      return "length";
  }
  DUET_UNREACHABLE();
}

void TextOffset::add_text(std::string_view text) noexcept {
  characters_ += static_cast<std::uint64_t>(std::count_if(text.begin(), text.end(), is_lead_byte));
}

std::uint64_t TextOffset::add_token(std::string_view bytes) noexcept {
  any_token_ = true;
  const bool inside = !bytes.empty() && !is_lead_byte(bytes.front()) && characters_ > 0;
  const std::uint64_t offset = inside ? characters_ - 1 : characters_;
  add_text(bytes);
  return offset;
}

void append_chat_logprobs(std::string& out, std::span<const actors::OutputToken> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    append_chat_logprob(out, tokens[i].chosen);
    out += R"(,"top_logprobs":[)";
    for (std::size_t k = 0; k < tokens[i].top.size(); ++k) {
      if (k > 0) out += ',';
      append_chat_logprob(out, tokens[i].top[k]);
      out += '}';
    }
    out += "]}";
  }
}

void LegacyLogprobs::add(std::span<const actors::OutputToken> list, TextOffset& offset) {
  for (const actors::OutputToken& token : list) {
    if (!tokens.empty()) {
      tokens += ',';
      token_logprobs += ',';
      top_logprobs += ',';
      text_offset += ',';
    }
    append_token_text(tokens, token.chosen.bytes, "bytes:");
    append_number(token_logprobs, finite_logprob(token.chosen.logprob));
    append_number(text_offset, offset.add_token(token.chosen.bytes));
    // The chosen token comes first and once: an object with a repeated key says one of them only.
    top_logprobs += '{';
    append_legacy_top(top_logprobs, token.chosen);
    for (std::size_t k = 0; k < token.top.size(); ++k) {
      const actors::OutputLogprob& other = token.top[k];
      const auto same = [&](const actors::OutputLogprob& earlier) {
        return earlier.bytes == other.bytes;
      };
      if (same(token.chosen) || std::any_of(token.top.begin(), token.top.begin() + k, same))
        continue;
      top_logprobs += ',';
      append_legacy_top(top_logprobs, other);
    }
    top_logprobs += '}';
  }
}

void LegacyLogprobs::append_object(std::string& out) const {
  out += R"({"tokens":[)";
  out += tokens;
  out += R"(],"token_logprobs":[)";
  out += token_logprobs;
  out += R"(],"top_logprobs":[)";
  out += top_logprobs;
  out += R"(],"text_offset":[)";
  out += text_offset;
  out += "]}";
}

void LegacyLogprobs::clear() noexcept {
  tokens.clear();
  token_logprobs.clear();
  top_logprobs.clear();
  text_offset.clear();
}

EventRenderer::EventRenderer(const AnswerShape& shape)
    : kind_(shape.kind), logprobs_(shape.logprobs) {
  head_ = event_start;
  append_identity(head_, shape);
  // With include_usage every other chunk says that its usage is not known yet, as OpenAI's do.
  tail_ = shape.include_usage ? R"(],"usage":null})" : "]}";
  tail_ += event_end;
  if (kind_ == ApiKind::completions && logprobs_) offsets_.resize(shape.choices);
}

void EventRenderer::role(std::string& out, std::uint32_t index) const {
  DUET_ASSERT(kind_ == ApiKind::chat);
  out += head_;
  out += R"({"index":)";
  append_number(out, std::uint64_t{index});
  out += R"(,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})";
  out += tail_;
}

void EventRenderer::delta(std::string& out, const actors::OutputDelta& delta) {
  const bool has_logprobs = logprobs_ && !delta.logprobs.empty();
  if (delta.text.empty() && !has_logprobs) return;
  out += head_;
  out += R"({"index":)";
  append_number(out, std::uint64_t{delta.index});
  if (kind_ == ApiKind::chat) {
    out += R"(,"delta":{"content":")";
    append_json_escaped(out, delta.text);
    out += R"("},"logprobs":)";
  } else {
    out += R"(,"text":")";
    append_json_escaped(out, delta.text);
    out += R"(","logprobs":)";
  }
  if (logprobs_) {
    append_delta_logprobs(out, delta);
  } else {
    out += "null";
  }
  out += R"(,"finish_reason":null})";
  out += tail_;
}

void EventRenderer::append_delta_logprobs(std::string& out, const actors::OutputDelta& delta) {
  if (kind_ == ApiKind::chat) {
    out += R"({"content":[)";
    append_chat_logprobs(out, delta.logprobs);
    out += R"(],"refusal":null})";
    return;
  }
  DUET_ASSERT(delta.index < offsets_.size(), delta.index, offsets_.size());
  TextOffset& offset = offsets_[delta.index];
  if (delta.logprobs.empty() && !offset.any_token()) offset.add_text(delta.text);
  legacy_.clear();
  legacy_.add(delta.logprobs, offset);
  legacy_.append_object(out);
}

void EventRenderer::choice_end(std::string& out, std::uint32_t index,
                               actors::FinishReason reason) const {
  out += head_;
  out += R"({"index":)";
  append_number(out, std::uint64_t{index});
  out += kind_ == ApiKind::chat ? R"(,"delta":{})" : R"(,"text":"")";
  out += R"(,"logprobs":null,"finish_reason":")";
  out += to_string(reason);
  out += R"("})";
  out += tail_;
}

void EventRenderer::usage(std::string& out, const actors::Usage& usage) const {
  out += head_;
  out += R"(],"usage":)";
  append_usage(out, usage);
  out += '}';
  out += event_end;
}

void EventRenderer::error(std::string& out, const HttpError& error) {
  out += event_start;
  append_error_object(out, error);
  out += event_end;
}

void EventRenderer::done(std::string& out) {
  out += event_start;
  out += "[DONE]";
  out += event_end;
}

BodyRenderer::BodyRenderer(const AnswerShape& shape) : shape_(shape), choices_(shape.choices) {}

void BodyRenderer::delta(const actors::OutputDelta& delta) {
  DUET_ASSERT(delta.index < choices_.size(), delta.index, choices_.size());
  Choice& choice = choices_[delta.index];
  choice.text += delta.text;
  if (!shape_.logprobs) return;
  if (shape_.kind == ApiKind::completions) {
    if (delta.logprobs.empty() && !choice.offset.any_token()) choice.offset.add_text(delta.text);
    choice.legacy.add(delta.logprobs, choice.offset);
  } else if (!delta.logprobs.empty()) {
    if (!choice.chat_logprobs.empty()) choice.chat_logprobs += ',';
    append_chat_logprobs(choice.chat_logprobs, delta.logprobs);
  }
}

void BodyRenderer::choice_end(std::uint32_t index, actors::FinishReason reason) {
  DUET_ASSERT(index < choices_.size(), index, choices_.size());
  choices_[index].reason = reason;
}

std::string BodyRenderer::finish(const actors::Usage& usage) const {
  std::string out;
  append_identity(out, shape_);
  for (std::uint32_t index = 0; index < choices_.size(); ++index) {
    if (index > 0) out += ',';
    append_choice(out, choices_[index], index);
  }
  out += R"(],"usage":)";
  append_usage(out, usage);
  out += '}';
  return out;
}

void BodyRenderer::append_choice(std::string& out, const Choice& choice,
                                 std::uint32_t index) const {
  out += R"({"index":)";
  append_number(out, std::uint64_t{index});
  if (shape_.kind == ApiKind::chat) {
    out += R"(,"message":{"role":"assistant","content":)";
    append_json_string(out, choice.text);
    out += R"(,"refusal":null},"logprobs":)";
  } else {
    out += R"(,"text":)";
    append_json_string(out, choice.text);
    out += R"(,"logprobs":)";
  }
  if (!shape_.logprobs) {
    out += "null";
  } else if (shape_.kind == ApiKind::chat) {
    out += R"({"content":[)";
    out += choice.chat_logprobs;
    out += R"(],"refusal":null})";
  } else {
    choice.legacy.append_object(out);
  }
  out += R"(,"finish_reason":")";
  out += to_string(choice.reason);
  out += R"("})";
}

}   // namespace duet::http
