// jinja_lexer.hpp: cuts a chat template into tokens. Whitespace control is settled here.
#pragma once

#include "text/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

enum class JinjaTokenKind : std::uint8_t {
  data,             ///< Text outside of tags, in `text`.
  variable_begin,   ///< {{
  variable_end,
  block_begin,   ///< {%
  block_end,
  name,
  string,   ///< In `text`, escapes resolved.
  integer,
  floating,
  operation,   ///< An operator or bracket, in `text`.
  end,
};

struct JinjaToken {
  JinjaTokenKind kind = JinjaTokenKind::end;
  std::uint32_t offset = 0;   ///< In JinjaSource::text.
  std::string text;
};

/// The options of jinja2's Environment that chat templates are written for.
struct JinjaOptions {
  bool trim_blocks = true;     ///< The newline behind a block tag is dropped.
  bool lstrip_blocks = true;   ///< Blanks between the line's start and a block tag are dropped.
};

/// A template's text with all line ends as \n and without the last one; gives places their line.
class JinjaSource {
 public:
  explicit JinjaSource(std::string_view source);
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] Error error(errc code, std::uint32_t offset, std::string_view message) const;

 private:
  std::string text_;
};

/// The last token is `end`. Errors: template_invalid, with line and column.
[[nodiscard]] Result<std::vector<JinjaToken>> jinja_lex(const JinjaSource& source,
                                                        const JinjaOptions& options);

}   // namespace duet::text
