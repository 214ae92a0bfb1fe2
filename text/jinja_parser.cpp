// jinja_parser.cpp: a recursive-descent parser for chat templates; the precedences are jinja2's.
// One file of 500 lines, because a grammar is read from top to bottom.
#include "text/jinja_ast.hpp"
#include "text/jinja_builtins.hpp"
#include "text/limits.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <utility>

namespace duet::text {
namespace {

using Kind = JinjaNodeKind;
using Token = JinjaTokenKind;

class Parser {
 public:
  Parser(JinjaAst& ast, std::vector<JinjaToken> tokens) : ast_(ast), tokens_(std::move(tokens)) {}

  std::optional<Error> run() {
    ast_.root = parse_body({});
    if (!failed()) expect(Token::end, "the end of the template");
    return std::move(error_);
  }

 private:
  [[nodiscard]] bool failed() const { return error_.has_value(); }
  [[nodiscard]] const JinjaToken& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  [[nodiscard]] bool is_operation(std::string_view text) const {
    return peek().kind == Token::operation && peek().text == text;
  }
  [[nodiscard]] bool is_name(std::string_view text) const {
    return peek().kind == Token::name && peek().text == text;
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
    if (token.kind == Token::end) message += ", but the template ends";
    if (!token.text.empty()) message += ", but found '" + token.text.substr(0, 32) + "'";
    return fail(token.offset, message);
  }
  void expect(Token kind, std::string_view wanted) {
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
    if (!failed() && peek().kind == Token::name) return take().text;
    fail_here("a name");
    return {};
  }

  JinjaNodeId add(Kind kind, std::uint32_t offset, std::span<const JinjaNodeId> children,
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
  JinjaNodeId add(Kind kind, std::uint32_t offset, std::initializer_list<JinjaNodeId> children,
                  std::string text = {}) {
    return add(kind, offset, std::span{children.begin(), children.size()}, std::move(text));
  }
  JinjaNodeId add_constant(Kind kind, std::uint32_t offset, JinjaValue value) {
    ast_.constants.push_back(std::move(value));
    return add(kind, offset, {}, {}, static_cast<std::uint32_t>(ast_.constants.size() - 1));
  }

  // The parser's own recursion: every cycle of the grammar goes through enter().
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

  // --- Statements ---

  /// Statements up to a block tag named in `ends`, whose name is then the current token, or up to
  /// the end of the template when `ends` is empty.
  JinjaNodeId parse_body(std::initializer_list<std::string_view> ends) {
    const Level level{depth_};
    std::vector<JinjaNodeId> statements;
    const std::uint32_t offset = peek().offset;
    while (!failed() && !too_deep()) {
      const JinjaToken& token = peek();
      if (token.kind == Token::end) {
        if (ends.size() > 0) fail_here("'" + std::string{*(ends.end() - 1)} + "'");
        break;
      }
      if (token.kind == Token::block_begin && peek(1).kind == Token::name &&
          std::find(ends.begin(), ends.end(), peek(1).text) != ends.end()) {
        take();
        break;
      }
      const JinjaNodeId statement = parse_statement();
      if (statement != no_jinja_node) statements.push_back(statement);
    }
    return add(Kind::sequence, offset, statements);
  }

  JinjaNodeId parse_statement() {
    const JinjaToken token = take();
    if (token.kind == Token::data) {
      return add_constant(Kind::data, token.offset,
                          JinjaValue{TemplatedText{token.text, Origin::markup}});
    }
    if (token.kind == Token::variable_begin) {
      const JinjaNodeId value = parse_tuple();
      expect(Token::variable_end, "'}}'");
      return add(Kind::output, token.offset, {value});
    }
    DUET_ASSERT(token.kind == Token::block_begin, static_cast<unsigned>(token.kind));
    return parse_tag();
  }

  JinjaNodeId parse_tag() {
    const std::uint32_t offset = peek().offset;
    const std::string name = expect_name();
    if (failed()) return no_jinja_node;
    if (name == "if") return parse_if(offset);
    if (name == "for") return parse_for(offset);
    if (name == "set") return parse_set(offset);
    if (name == "macro") return parse_macro(offset);
    if (name == "filter") return parse_filter_block(offset);
    if (name == "generation") return parse_generation();
    if (name == "break" || name == "continue") {
      if (loops_ == 0) return fail(offset, "'" + name + "' stands outside of a loop");
      end_tag();
      return add(name == "break" ? Kind::break_loop : Kind::continue_loop, offset, {});
    }
    return fail(offset, "the tag '" + name.substr(0, 32) + "' is not supported here");
  }

  void end_tag() { expect(Token::block_end, "'%}'"); }

  JinjaNodeId parse_if(std::uint32_t offset) {
    const Level level{depth_};
    if (too_deep()) return no_jinja_node;
    const JinjaNodeId condition = parse_tuple();
    end_tag();
    const JinjaNodeId body = parse_body({"elif", "else", "endif"});
    JinjaNodeId other = no_jinja_node;
    const std::uint32_t other_offset = peek().offset;
    if (take_name("elif")) {
      other = parse_if(other_offset);   // it takes the endif
    } else {
      if (take_name("else")) {
        end_tag();
        other = parse_body({"endif"});
      }
      if (!failed()) take();
      end_tag();
    }
    return add(Kind::if_block, offset, {condition, body, other});
  }

  JinjaNodeId parse_target() {
    const std::uint32_t offset = peek().offset;
    std::string name = expect_name();
    return add(Kind::name, offset, {}, std::move(name));
  }

  JinjaNodeId parse_for(std::uint32_t offset) {
    std::vector<JinjaNodeId> children(4, no_jinja_node);
    const bool bracket = take_operation("(");
    do {
      children.push_back(parse_target());
    } while (!failed() && take_operation(",") && !is_name("in"));
    if (bracket) expect_operation(")");
    if (!failed() && !take_name("in")) return fail_here("'in'");
    children[0] = parse_tuple(false);
    if (take_name("if")) children[1] = parse_expression();
    if (is_name("recursive")) return fail_here("'%}': recursive loops are not supported");
    end_tag();
    ++loops_;
    children[2] = parse_body({"else", "endfor"});
    --loops_;
    if (take_name("else")) {
      end_tag();
      children[3] = parse_body({"endfor"});
    }
    if (!failed()) take();
    end_tag();
    return add(Kind::for_block, offset, children);
  }

  JinjaNodeId parse_set(std::uint32_t offset) {
    std::string name = expect_name();
    if (take_operation(".")) {
      const std::string attribute = expect_name();
      expect_operation("=");
      const JinjaNodeId value = parse_tuple();
      end_tag();
      return add(Kind::set_attribute, offset, {value}, name + "." + attribute);
    }
    if (peek().kind == Token::block_end || is_operation("|")) {
      const JinjaNodeId filter = is_operation("|") ? parse_filters(no_jinja_node) : no_jinja_node;
      end_tag();
      const JinjaNodeId body = parse_body({"endset"});
      if (!failed()) take();
      end_tag();
      return add(Kind::set_block, offset, {body, filter}, std::move(name));
    }
    std::vector<JinjaNodeId> children(1, no_jinja_node);
    children.push_back(add(Kind::name, offset, {}, std::move(name)));
    while (take_operation(",")) children.push_back(parse_target());
    expect_operation("=");
    children[0] = parse_tuple();
    end_tag();
    return add(Kind::set, offset, children);
  }

  JinjaNodeId parse_macro(std::uint32_t offset) {
    std::string name = expect_name();
    std::vector<JinjaNodeId> children(1, no_jinja_node);
    expect_operation("(");
    while (!failed() && !is_operation(")")) {
      const std::uint32_t at = peek().offset;
      std::string parameter = expect_name();
      const JinjaNodeId missing = take_operation("=") ? parse_expression() : no_jinja_node;
      children.push_back(add(Kind::parameter, at, {missing}, std::move(parameter)));
      if (!take_operation(",")) break;
    }
    expect_operation(")");
    end_tag();
    const std::uint32_t loops = std::exchange(loops_, 0);
    children[0] = parse_body({"endmacro"});
    loops_ = loops;
    if (!failed()) take();
    end_tag();
    return add(Kind::macro, offset, children, std::move(name));
  }

  JinjaNodeId parse_filter_block(std::uint32_t offset) {
    const JinjaNodeId filter = parse_filters(no_jinja_node, true);
    end_tag();
    const JinjaNodeId body = parse_body({"endfilter"});
    if (!failed()) take();
    end_tag();
    return add(Kind::filter_block, offset, {body, filter});
  }

  /// `{% generation %}` marks what training counts; when rendering it is its body.
  JinjaNodeId parse_generation() {
    end_tag();
    const JinjaNodeId body = parse_body({"endgeneration"});
    if (!failed()) take();
    end_tag();
    return body;
  }

  // --- Expressions, loosest first ---

  /// An expression, or several with commas between: a list.
  JinjaNodeId parse_tuple(bool conditional = true) {
    const std::uint32_t offset = peek().offset;
    const JinjaNodeId first = parse_expression(conditional);
    if (failed() || !is_operation(",")) return first;
    std::vector<JinjaNodeId> items{first};
    while (take_operation(",")) {
      const JinjaToken& next = peek();
      const bool closes =
          next.kind == Token::variable_end || next.kind == Token::block_end || is_operation(")");
      if (closes) break;
      items.push_back(parse_expression(conditional));
    }
    return add(Kind::list, offset, items);
  }

  JinjaNodeId parse_expression(bool conditional = true) {
    const Level level{depth_};
    if (too_deep()) return no_jinja_node;
    const std::uint32_t offset = peek().offset;
    JinjaNodeId value = parse_or();
    while (conditional && take_name("if")) {
      const JinjaNodeId condition = parse_or();
      const JinjaNodeId other = take_name("else") ? parse_expression() : no_jinja_node;
      value = add(Kind::conditional, offset, {value, condition, other});
    }
    return value;
  }

  JinjaNodeId parse_or() {
    const std::uint32_t offset = peek().offset;
    JinjaNodeId left = parse_and();
    while (take_name("or")) left = add(Kind::disjunction, offset, {left, parse_and()});
    return left;
  }

  JinjaNodeId parse_and() {
    const std::uint32_t offset = peek().offset;
    JinjaNodeId left = parse_not();
    while (take_name("and")) left = add(Kind::conjunction, offset, {left, parse_not()});
    return left;
  }

  JinjaNodeId parse_not() {
    const Level level{depth_};
    if (too_deep()) return no_jinja_node;
    const std::uint32_t offset = peek().offset;
    if (!take_name("not")) return parse_comparison();
    return add(Kind::negation, offset, {parse_not()});
  }

  JinjaNodeId parse_comparison() {
    constexpr std::array<std::string_view, 6> comparisons = {"==", "!=", "<", "<=", ">", ">="};
    const std::uint32_t offset = peek().offset;
    std::vector<JinjaNodeId> children{parse_sum()};
    while (!failed()) {
      const std::uint32_t at = peek().offset;
      std::string operation;
      if (peek().kind == Token::operation &&
          std::find(comparisons.begin(), comparisons.end(), peek().text) != comparisons.end()) {
        operation = take().text;
      } else if (take_name("in")) {
        operation = "in";
      } else if (is_name("not") && peek(1).kind == Token::name && peek(1).text == "in") {
        take();
        take();
        operation = "not in";
      } else {
        break;
      }
      children.push_back(add(Kind::comparison_part, at, {parse_sum()}, std::move(operation)));
    }
    return children.size() == 1 ? children[0] : add(Kind::comparison, offset, children);
  }

  JinjaNodeId parse_sum() {
    JinjaNodeId left = parse_concat();
    while (!failed() && (is_operation("+") || is_operation("-"))) {
      JinjaToken operation = take();
      left = add(Kind::arithmetic, operation.offset, {left, parse_concat()},
                 std::move(operation.text));
    }
    return left;
  }

  JinjaNodeId parse_concat() {
    const std::uint32_t offset = peek().offset;
    std::vector<JinjaNodeId> parts{parse_product()};
    while (take_operation("~")) parts.push_back(parse_product());
    return parts.size() == 1 ? parts[0] : add(Kind::concat, offset, parts);
  }

  JinjaNodeId parse_product() {
    JinjaNodeId left = parse_power();
    while (!failed() &&
           (is_operation("*") || is_operation("/") || is_operation("//") || is_operation("%"))) {
      JinjaToken operation = take();
      left =
          add(Kind::arithmetic, operation.offset, {left, parse_power()}, std::move(operation.text));
    }
    return left;
  }

  JinjaNodeId parse_power() {
    JinjaNodeId left = parse_unary(true);
    while (!failed() && is_operation("**")) {
      JinjaToken operation = take();
      left = add(Kind::arithmetic, operation.offset, {left, parse_unary(true)},
                 std::move(operation.text));
    }
    return left;
  }

  JinjaNodeId parse_unary(bool filters) {
    const Level level{depth_};
    if (too_deep()) return no_jinja_node;
    const std::uint32_t offset = peek().offset;
    JinjaNodeId value = no_jinja_node;
    if (take_operation("-")) {
      value = add(Kind::minus, offset, {parse_unary(false)});
    } else if (take_operation("+")) {
      value = add(Kind::plus, offset, {parse_unary(false)});
    } else {
      value = parse_primary();
    }
    value = parse_postfix(value);
    return filters ? parse_filters_and_tests(value) : value;
  }

  JinjaNodeId parse_primary() {
    if (failed()) return no_jinja_node;
    const JinjaToken token = peek();
    switch (token.kind) {
      case Token::name:
        return parse_name();
      case Token::string:
        return parse_strings();
      case Token::integer:
        return parse_integer();
      case Token::floating:
        return parse_floating();
      default:
        break;
    }
    if (take_operation("(")) {
      if (take_operation(")")) return add(Kind::list, token.offset, {});
      const JinjaNodeId value = parse_tuple();
      expect_operation(")");
      return value;
    }
    if (take_operation("[")) return parse_list(token.offset);
    if (take_operation("{")) return parse_dict(token.offset);
    return fail_here("a value");
  }

  JinjaNodeId parse_name() {
    JinjaToken token = take();
    const std::string& name = token.text;
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      return add_constant(Kind::constant, token.offset,
                          JinjaValue{name == "true" || name == "True"});
    }
    if (name == "none" || name == "None") {
      return add_constant(Kind::constant, token.offset, JinjaValue{JinjaValue::None{}});
    }
    return add(Kind::name, token.offset, {}, std::move(token.text));
  }

  /// Adjacent texts are one, as in Python.
  JinjaNodeId parse_strings() {
    const std::uint32_t offset = peek().offset;
    std::string value;
    while (peek().kind == Token::string) value += take().text;
    return add_constant(Kind::constant, offset, JinjaValue{TemplatedText{value, Origin::markup}});
  }

  JinjaNodeId parse_integer() {
    const JinjaToken token = take();
    std::int64_t value = 0;
    const auto* end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, value).ec != std::errc{}) {
      return fail(token.offset, "this number is too large");
    }
    return add_constant(Kind::constant, token.offset, JinjaValue{value});
  }

  JinjaNodeId parse_floating() {
    const JinjaToken token = take();
    double value = 0;
    const auto* end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, value).ec != std::errc{}) {
      return fail(token.offset, "this number is out of range");
    }
    return add_constant(Kind::constant, token.offset, JinjaValue{value});
  }

  JinjaNodeId parse_list(std::uint32_t offset) {
    std::vector<JinjaNodeId> items;
    while (!failed() && !is_operation("]")) {
      items.push_back(parse_expression());
      if (!take_operation(",")) break;
    }
    expect_operation("]");
    return add(Kind::list, offset, items);
  }

  JinjaNodeId parse_dict(std::uint32_t offset) {
    std::vector<JinjaNodeId> items;
    while (!failed() && !is_operation("}")) {
      items.push_back(parse_expression());
      expect_operation(":");
      items.push_back(parse_expression());
      if (!take_operation(",")) break;
    }
    expect_operation("}");
    return add(Kind::dict, offset, items);
  }

  JinjaNodeId parse_postfix(JinjaNodeId value) {
    while (!failed()) {
      const std::uint32_t offset = peek().offset;
      if (take_operation(".")) {
        if (peek().kind == Token::integer) {
          value = add(Kind::item, offset, {value, parse_integer()});
        } else {
          std::string name = expect_name();
          value = add(Kind::attribute, offset, {value}, std::move(name));
        }
      } else if (take_operation("[")) {
        value = parse_subscript(offset, value);
      } else if (take_operation("(")) {
        value = parse_call(Kind::call, offset, value, {});
      } else {
        break;
      }
    }
    return value;
  }

  JinjaNodeId parse_subscript(std::uint32_t offset, JinjaNodeId object) {
    std::array<JinjaNodeId, 3> parts{no_jinja_node, no_jinja_node, no_jinja_node};
    std::size_t part = 0;
    while (!failed() && !is_operation("]")) {
      if (take_operation(":")) {
        if (++part == parts.size()) return fail(offset, "a slice has three parts at most");
      } else if (parts[part] != no_jinja_node) {
        return fail_here("']'");
      } else {
        parts[part] = parse_expression();
      }
    }
    expect_operation("]");
    if (part > 0) return add(Kind::slice, offset, {object, parts[0], parts[1], parts[2]});
    if (parts[0] == no_jinja_node) return fail(offset, "this subscript is empty");
    return add(Kind::item, offset, {object, parts[0]});
  }

  /// The arguments of a call, filter or test, behind the opening bracket.
  JinjaNodeId parse_call(Kind kind, std::uint32_t offset, JinjaNodeId front, std::string text) {
    std::vector<JinjaNodeId> children{front};
    bool named = false;
    while (!failed() && !is_operation(")")) {
      const std::uint32_t at = peek().offset;
      if (peek().kind == Token::name && peek(1).kind == Token::operation && peek(1).text == "=") {
        std::string name = take().text;
        take();
        children.push_back(add(Kind::keyword, at, {parse_expression()}, std::move(name)));
        named = true;
      } else {
        if (named) return fail(at, "a plain argument behind a named one");
        children.push_back(parse_expression());
      }
      if (!take_operation(",")) break;
    }
    expect_operation(")");
    return add(kind, offset, children, std::move(text));
  }

  JinjaNodeId parse_filters_and_tests(JinjaNodeId value) {
    while (!failed()) {
      if (is_operation("|")) {
        value = parse_filters(value);
      } else if (is_name("is")) {
        value = parse_test(value);
      } else if (is_operation("(") || is_operation(".") || is_operation("[")) {
        value = parse_postfix(value);
      } else {
        break;
      }
    }
    return value;
  }

  /// One filter and those that follow it; `started` when the bar before the first is not there.
  JinjaNodeId parse_filters(JinjaNodeId value, bool started = false) {
    while (!failed() && (started || take_operation("|"))) {
      started = false;
      const std::uint32_t offset = peek().offset;
      std::string name = expect_name();
      if (!failed() && !jinja_has_filter(name)) {
        return fail(offset, "the filter '" + name.substr(0, 32) + "' is not supported here");
      }
      value = take_operation("(") ? parse_call(Kind::filter, offset, value, std::move(name))
                                  : add(Kind::filter, offset, {value}, std::move(name));
    }
    return value;
  }

  JinjaNodeId parse_test(JinjaNodeId value) {
    const std::uint32_t offset = take().offset;   // is
    const bool negated = take_name("not");
    std::string name = expect_name();
    if (!failed() && !jinja_has_test(name)) {
      return fail(offset, "the test '" + name.substr(0, 32) + "' is not supported here");
    }
    JinjaNodeId test = no_jinja_node;
    if (take_operation("(")) {
      test = parse_call(Kind::test, offset, value, std::move(name));
    } else if (test_argument_follows()) {
      const JinjaNodeId argument = parse_postfix(parse_primary());
      test = add(Kind::test, offset, {value, argument}, std::move(name));
    } else {
      test = add(Kind::test, offset, {value}, std::move(name));
    }
    return negated ? add(Kind::negation, offset, {test}) : test;
  }

  /// As in jinja2, an argument may stand without brackets: `x is divisibleby 3`.
  [[nodiscard]] bool test_argument_follows() const {
    const JinjaToken& token = peek();
    switch (token.kind) {
      case Token::name:
        return token.text != "else" && token.text != "or" && token.text != "and" &&
               token.text != "is" && token.text != "if" && token.text != "not" &&
               token.text != "in";
      case Token::string:
      case Token::integer:
      case Token::floating:
        return true;
      case Token::operation:
        return token.text == "[" || token.text == "{";
      default:
        return false;
    }
  }

  JinjaAst& ast_;
  std::vector<JinjaToken> tokens_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t loops_ = 0;
  std::optional<Error> error_;
};

}   // namespace

Result<JinjaAst> jinja_parse(std::string_view source, const JinjaOptions& options) {
  JinjaAst ast{source};
  if (source.size() > limits::template_bytes_max) {
    return ast.source.error(errc::template_limit, 0, "the template is too large");
  }
  auto tokens = jinja_lex(ast.source, options);
  if (!tokens) return std::move(tokens).error();
  if (auto error = Parser{ast, std::move(*tokens)}.run()) return std::move(*error);
  return ast;
}

}   // namespace duet::text
