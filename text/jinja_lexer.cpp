// jinja_lexer.cpp: cuts a chat template into tokens.
#include "text/jinja_lexer.hpp"

#include "text/jinja_value.hpp"
#include "text/utf8.hpp"

#include <array>
#include <optional>
#include <utility>

namespace duet::text {
namespace {

// Longer operators first, so that the first match is the longest.
constexpr std::array<std::string_view, 27> operators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]",
    "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", "!"};

bool is_blank(char c) noexcept {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::optional<unsigned> hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

class Lexer {
 public:
  Lexer(const JinjaSource& source, const JinjaOptions& options)
      : source_(source), text_(source.text()), options_(options) {}

  Result<std::vector<JinjaToken>> run() {
    while (at_ < text_.size() && !error_) lex_data();
    if (error_) return std::move(*error_);
    emit(JinjaTokenKind::end, text_.size(), {});
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] bool at_front(std::string_view expected) const {
    return text_.substr(at_).starts_with(expected);
  }

  void emit(JinjaTokenKind kind, std::size_t offset, std::string text) {
    tokens_.push_back({kind, static_cast<std::uint32_t>(offset), std::move(text)});
  }

  void fail(std::size_t offset, std::string_view message) {
    if (!error_) {
      error_ = source_.error(errc::template_invalid, static_cast<std::uint32_t>(offset), message);
    }
  }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  /// Text up to the next tag, and the tag.
  void lex_data() {
    std::size_t next = text_.find('{', at_);
    while (next != text_.npos && (next + 1 == text_.size() ||
                                  std::string_view{"{%#"}.find(text_[next + 1]) == text_.npos)) {
      next = text_.find('{', next + 1);
    }
    if (next == text_.npos) {
      emit(JinjaTokenKind::data, at_, std::string{text_.substr(at_)});
      at_ = text_.size();
      return;
    }
    const std::size_t begin = at_;
    const char kind = text_[next + 1];
    at_ = next + 2;
    emit_data(begin, next, take_sign(), kind != '{');
    switch (kind) {
      case '{':
        return lex_tag(next, "}}", JinjaTokenKind::variable_begin);
      case '#':
        return skip_comment(next);
      default:
        if (!lex_raw(next)) lex_tag(next, "%}", JinjaTokenKind::block_begin);
    }
  }

  char take_sign() {
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) return text_[at_++];
    return '\0';
  }

  void emit_data(std::size_t begin, std::size_t end, char sign, bool block) {
    std::string_view data = text_.substr(begin, end - begin);
    if (sign == '-') {
      data = data.substr(0, strip_offsets(data, false, true).second);
    } else if (sign != '+' && block && options_.lstrip_blocks) {
      const std::size_t newline = data.rfind('\n');
      const std::size_t line = newline == data.npos ? 0 : newline + 1;
      if (line > 0 || line_starting_) {
        if (strip_offsets(data.substr(line), true, false).first == data.size() - line) {
          data = data.substr(0, line);
        }
      }
    }
    if (!data.empty()) emit(JinjaTokenKind::data, begin, std::string{data});
  }

  /// Goes past the blanks that a tag's end takes with it: `sign` is what stood before the end.
  void finish_tag(char sign, bool block) {
    if (sign == '-') {
      at_ += strip_offsets(text_.substr(at_), true, false).first;
    } else if (sign != '+' && block && options_.trim_blocks && at_front("\n")) {
      ++at_;
    }
    line_starting_ = text_[at_ - 1] == '\n';
  }

  void skip_comment(std::size_t begin) {
    const std::size_t end = text_.find("#}", at_);
    if (end == text_.npos) {
      at_ = text_.size();
      return fail(begin, "this comment has no end");
    }
    const char last = end > at_ ? text_[end - 1] : '\0';
    at_ = end + 2;
    finish_tag(last, true);
  }

  /// `{% raw %}`: everything up to `{% endraw %}` is text. False when this tag is another one.
  bool lex_raw(std::size_t begin) {
    const std::size_t start = at_;
    const auto word = [this](std::string_view expected) {
      skip_blanks();
      if (!at_front(expected)) return false;
      at_ += expected.size();
      skip_blanks();
      return true;
    };
    const auto tag_end = [this](bool plus_too) {
      const bool sign = at_front("-%}") || (plus_too && at_front("+%}"));
      const char found = sign ? text_[at_] : '\0';
      if (!sign && !at_front("%}")) return false;
      at_ += sign ? 3 : 2;
      finish_tag(found, plus_too);
      return true;
    };
    if (!word("raw") || !tag_end(false)) {
      at_ = start;
      return false;
    }
    const std::size_t data = at_;
    for (std::size_t end = text_.find("{%", at_); end != text_.npos; end = text_.find("{%", at_)) {
      at_ = end + 2;
      const char sign = take_sign();
      const bool line_started = std::exchange(line_starting_, false);
      if (word("endraw") && tag_end(true)) {
        const bool line_starting = std::exchange(line_starting_, line_started);
        emit_data(data, end, sign, true);
        line_starting_ = line_starting;
        return true;
      }
      line_starting_ = line_started;
      at_ = end + 2;
    }
    at_ = text_.size();
    fail(begin, "this raw block has no end");
    return true;
  }

  void lex_tag(std::size_t begin, std::string_view end, JinjaTokenKind kind) {
    const bool block = kind == JinjaTokenKind::block_begin;
    emit(kind, begin, {});
    std::string brackets;   // those that are open; within them `}}` is no end of the tag
    while (!error_) {
      skip_blanks();
      if (at_ == text_.size()) return fail(begin, "this tag has no end");
      if (brackets.empty()) {
        const bool minus = text_[at_] == '-' && text_.substr(at_ + 1).starts_with(end);
        const bool plus = block && text_[at_] == '+' && text_.substr(at_ + 1).starts_with(end);
        if (minus || plus || at_front(end)) {
          const char sign = minus || plus ? text_[at_] : '\0';
          emit(block ? JinjaTokenKind::block_end : JinjaTokenKind::variable_end, at_, {});
          at_ += end.size() + (sign == '\0' ? 0 : 1);
          return finish_tag(sign, block);
        }
      }
      lex_inside(brackets);
    }
  }

  void lex_inside(std::string& brackets) {
    const char c = text_[at_];
    if (is_name_start(c)) return lex_name();
    if (is_digit(c)) return lex_number();
    if (c == '\'' || c == '"') return lex_string();
    for (const auto operation : operators) {
      if (!at_front(operation) || operation == "!") continue;
      if (c == '(' || c == '[' || c == '{')
        brackets.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty() || brackets.back() != c) {
          return fail(at_, "this bracket closes nothing");
        }
        brackets.pop_back();
      }
      emit(JinjaTokenKind::operation, at_, std::string{operation});
      at_ += operation.size();
      return;
    }
    fail(at_, "this character has no meaning here");
  }

  void lex_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
    emit(JinjaTokenKind::name, begin, std::string{text_.substr(begin, at_ - begin)});
  }

  void lex_number() {
    const std::size_t begin = at_;
    std::string digits;
    bool floating = false;
    const auto take_digits = [&] {
      while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '_')) {
        if (text_[at_] != '_') digits.push_back(text_[at_]);
        ++at_;
      }
    };
    take_digits();
    if (at_ + 1 < text_.size() && text_[at_] == '.' && is_digit(text_[at_ + 1])) {
      floating = true;
      digits.push_back(text_[at_++]);
      take_digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      std::size_t exponent = at_ + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        floating = true;
        digits.append("e").append(text_.substr(at_ + 1, exponent - at_ - 1));
        at_ = exponent;
        take_digits();
      }
    }
    emit(floating ? JinjaTokenKind::floating : JinjaTokenKind::integer, begin, std::move(digits));
  }

  void lex_string() {
    const std::size_t begin = at_;
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        value.push_back(text_[at_++]);
      } else if (!lex_escape(value)) {
        return fail(at_, "this escape is not valid");
      }
    }
    if (at_ == text_.size()) return fail(begin, "this text has no closing quote");
    ++at_;
    emit(JinjaTokenKind::string, begin, std::move(value));
  }

  /// Python's escapes. An unknown one stays as it is, with its backslash.
  bool lex_escape(std::string& value) {
    if (at_ + 1 == text_.size()) return false;
    const char c = text_[at_ + 1];
    constexpr std::string_view letters = "abfnrtv\\'\"";
    constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"";
    if (const auto found = letters.find(c); found != letters.npos) {
      value.push_back(meanings[found]);
      at_ += 2;
    } else if (c == '\n') {
      at_ += 2;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      return lex_hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8, value);
    } else if (c >= '0' && c <= '7') {
      char32_t code = 0;
      ++at_;
      for (int i = 0; i < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i) {
        code = code * 8 + static_cast<char32_t>(text_[at_++] - '0');
      }
      utf8_append(value, code);
    } else {
      value.append(text_.substr(at_, 1));
      ++at_;
    }
    return true;
  }

  bool lex_hexadecimal(std::size_t digits, std::string& value) {
    if (text_.size() - at_ < digits + 2) return false;
    char32_t code = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const auto digit = hex_value(text_[at_ + 2 + i]);
      if (!digit) return false;
      code = code * 16 + *digit;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    utf8_append(value, code);
    at_ += digits + 2;
    return true;
  }

  const JinjaSource& source_;
  std::string_view text_;
  JinjaOptions options_;
  std::size_t at_ = 0;
  bool line_starting_ = true;   // whether what was consumed last ended a line
  std::vector<JinjaToken> tokens_;
  std::optional<Error> error_;
};

}   // namespace

JinjaSource::JinjaSource(std::string_view source) {
  text_.reserve(source.size());
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '\r') {
      text_.push_back(source[at]);
      continue;
    }
    text_.push_back('\n');
    if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
  }
  if (!text_.empty() && text_.back() == '\n') text_.pop_back();
}

Error JinjaSource::error(errc code, std::uint32_t offset, std::string_view message) const {
  const auto before = std::string_view{text_}.substr(0, offset);
  std::uint32_t line = 1;
  for (const char c : before) line += c == '\n' ? 1 : 0;
  const std::size_t newline = before.rfind('\n');
  const auto column =
      static_cast<std::uint32_t>(before.size() - (newline == before.npos ? 0 : newline + 1) + 1);
  std::string text = "chat template, line " + std::to_string(line) + ", column " +
                     std::to_string(column) + ": " + std::string{message};
  return {code, std::move(text), line, column};
}

Result<std::vector<JinjaToken>> jinja_lex(const JinjaSource& source, const JinjaOptions& options) {
  return Lexer{source, options}.run();
}

}   // namespace duet::text
