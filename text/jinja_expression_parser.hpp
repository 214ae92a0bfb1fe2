// jinja_expression_parser.hpp: the expressions of chat templates, and the cursor over the tokens.
// Internal to jinja_parser.cpp. The precedences are jinja2's.
#pragma once

#include "text/jinja_ast.hpp"
#include "text/limits.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

namespace duet::text {

/// Recursive descent; keeps the first error and does nothing afterwards.
class JinjaExpressionParser {
 protected:
  JinjaExpressionParser(JinjaAst& ast, std::vector<JinjaToken> tokens)
      : ast_(ast), tokens_(std::move(tokens)) {}
  ~JinjaExpressionParser() = default;

  /// An expression, or several with commas between: a tuple.
  JinjaNodeId parse_tuple(bool conditional = true);
  JinjaNodeId parse_expression(bool conditional = true);
  /// One filter and those that follow it; `started` when the bar before the first is not there.
  JinjaNodeId parse_filters(JinjaNodeId value, bool started = false);

  [[nodiscard]] bool failed() const { return error_.has_value(); }
  [[nodiscard]] const JinjaToken& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  [[nodiscard]] bool is_operation(std::string_view text) const {
    return peek().kind == JinjaTokenKind::operation && peek().text == text;
  }
  [[nodiscard]] bool is_name(std::string_view text) const {
    return peek().kind == JinjaTokenKind::name && peek().text == text;
  }
  JinjaToken take() {
    JinjaToken token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool take_operation(std::string_view text) {
    if (failed() || !is_operation(text)) return false;
    take();
    return true;
  }
  bool take_name(std::string_view text) {
    if (failed() || !is_name(text)) return false;
    take();
    return true;
  }

  JinjaNodeId fail(std::uint32_t offset, std::string_view message,
                   errc code = errc::template_invalid) {
    if (!error_) error_ = ast_.source.error(code, offset, message);
    return no_jinja_node;
  }
  JinjaNodeId fail_here(std::string_view wanted) {
    const JinjaToken& token = peek();
    std::string message = "expected " + std::string{wanted};
    if (token.kind == JinjaTokenKind::end) message += ", but the template ends";
    if (!token.text.empty()) message += ", but found '" + token.text.substr(0, 32) + "'";
    return fail(token.offset, message);
  }
  void expect(JinjaTokenKind kind, std::string_view wanted) {
    if (failed()) return;
    if (peek().kind != kind) {
      fail_here(wanted);
      return;
    }
    take();
  }
  void expect_operation(std::string_view text) {
    if (!failed() && !take_operation(text)) fail_here("'" + std::string{text} + "'");
  }
  std::string expect_name() {
    if (!failed() && peek().kind == JinjaTokenKind::name) return take().text;
    fail_here("a name");
    return {};
  }

  JinjaNodeId add(JinjaNodeKind kind, std::uint32_t offset, std::span<const JinjaNodeId> children,
                  std::string text = {}, std::uint32_t value = 0) {
    if (failed()) return no_jinja_node;
    JinjaNode node;
    node.kind = kind;
    node.offset = offset;
    node.value = value;
    node.text = std::move(text);
    for (const JinjaNodeId child : children) {
      if (child != no_jinja_node) node.depth = std::max(node.depth, ast_.nodes[child].depth + 1);
    }
    if (node.depth > limits::template_depth_max) {
      return fail(
          offset,
          "this is nested more than " + std::to_string(limits::template_depth_max) + " levels deep",
          errc::template_limit);
    }
    if (ast_.nodes.size() >= limits::template_nodes_max) {
      return fail(offset, "the template is too large", errc::template_limit);
    }
    node.children_begin = static_cast<std::uint32_t>(ast_.child_ids.size());
    node.children_count = static_cast<std::uint32_t>(children.size());
    ast_.child_ids.insert(ast_.child_ids.end(), children.begin(), children.end());
    ast_.nodes.push_back(std::move(node));
    return static_cast<JinjaNodeId>(ast_.nodes.size() - 1);
  }
  JinjaNodeId add(JinjaNodeKind kind, std::uint32_t offset,
                  std::initializer_list<JinjaNodeId> children, std::string text = {}) {
    return add(kind, offset, std::span{children.begin(), children.size()}, std::move(text));
  }
  JinjaNodeId add_constant(JinjaNodeKind kind, std::uint32_t offset, JinjaValue value) {
    ast_.constants.push_back(std::move(value));
    return add(kind, offset, {}, {}, static_cast<std::uint32_t>(ast_.constants.size() - 1));
  }

  // A level of the parser's own recursion; every cycle of the grammar counts one.
  class Level {
   public:
    explicit Level(std::uint32_t& depth) : depth_(depth) { ++depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --depth_; }

   private:
    std::uint32_t& depth_;
  };
  bool too_deep() {
    if (depth_ <= limits::template_depth_max) return false;
    fail(peek().offset,
         "this is nested more than " + std::to_string(limits::template_depth_max) + " levels deep",
         errc::template_limit);
    return true;
  }

  JinjaAst& ast_;
  std::vector<JinjaToken> tokens_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
  std::optional<Error> error_;

 private:
  JinjaNodeId parse_or();
  JinjaNodeId parse_and();
  JinjaNodeId parse_not();
  JinjaNodeId parse_comparison();
  JinjaNodeId parse_sum();
  JinjaNodeId parse_concat();
  JinjaNodeId parse_product();
  JinjaNodeId parse_power();
  JinjaNodeId parse_unary(bool filters);
  JinjaNodeId parse_primary();
  JinjaNodeId parse_name();
  JinjaNodeId parse_strings();
  JinjaNodeId parse_integer();
  JinjaNodeId parse_floating();
  JinjaNodeId parse_list(std::uint32_t offset);
  JinjaNodeId parse_dict(std::uint32_t offset);
  JinjaNodeId parse_postfix(JinjaNodeId value);
  JinjaNodeId parse_subscript(std::uint32_t offset, JinjaNodeId object);
  JinjaNodeId parse_call(JinjaNodeKind kind, std::uint32_t offset, JinjaNodeId front,
                         std::string text);
  JinjaNodeId parse_filters_and_tests(JinjaNodeId value);
  JinjaNodeId parse_test(JinjaNodeId value);
  [[nodiscard]] bool test_argument_follows() const;
};

}   // namespace duet::text
