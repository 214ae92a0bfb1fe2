// jinja_expression_parser.cpp: the expressions of chat templates, loosest binding first.
#include "text/jinja_expression_parser.hpp"

#include "text/jinja_builtins.hpp"

#include <array>
#include <charconv>

namespace duet::text {
namespace {

using Kind = JinjaNodeKind;
using Token = JinjaTokenKind;

}   // namespace

/// An expression, or several with commas between: a tuple.
JinjaNodeId JinjaExpressionParser::parse_tuple(bool conditional) {
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
  return add(Kind::tuple, offset, items);
}

JinjaNodeId JinjaExpressionParser::parse_expression(bool conditional) {
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

JinjaNodeId JinjaExpressionParser::parse_or() {
  const std::uint32_t offset = peek().offset;
  JinjaNodeId left = parse_and();
  while (take_name("or")) left = add(Kind::disjunction, offset, {left, parse_and()});
  return left;
}

JinjaNodeId JinjaExpressionParser::parse_and() {
  const std::uint32_t offset = peek().offset;
  JinjaNodeId left = parse_not();
  while (take_name("and")) left = add(Kind::conjunction, offset, {left, parse_not()});
  return left;
}

JinjaNodeId JinjaExpressionParser::parse_not() {
  const Level level{depth_};
  if (too_deep()) return no_jinja_node;
  const std::uint32_t offset = peek().offset;
  if (!take_name("not")) return parse_comparison();
  return add(Kind::negation, offset, {parse_not()});
}

JinjaNodeId JinjaExpressionParser::parse_comparison() {
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

JinjaNodeId JinjaExpressionParser::parse_sum() {
  JinjaNodeId left = parse_concat();
  while (!failed() && (is_operation("+") || is_operation("-"))) {
    JinjaToken operation = take();
    left =
        add(Kind::arithmetic, operation.offset, {left, parse_concat()}, std::move(operation.text));
  }
  return left;
}

JinjaNodeId JinjaExpressionParser::parse_concat() {
  const std::uint32_t offset = peek().offset;
  std::vector<JinjaNodeId> parts{parse_product()};
  while (take_operation("~")) parts.push_back(parse_product());
  return parts.size() == 1 ? parts[0] : add(Kind::concat, offset, parts);
}

JinjaNodeId JinjaExpressionParser::parse_product() {
  JinjaNodeId left = parse_power();
  while (!failed() &&
         (is_operation("*") || is_operation("/") || is_operation("//") || is_operation("%"))) {
    JinjaToken operation = take();
    left =
        add(Kind::arithmetic, operation.offset, {left, parse_power()}, std::move(operation.text));
  }
  return left;
}

JinjaNodeId JinjaExpressionParser::parse_power() {
  JinjaNodeId left = parse_unary(true);
  while (!failed() && is_operation("**")) {
    JinjaToken operation = take();
    left = add(Kind::arithmetic, operation.offset, {left, parse_unary(true)},
               std::move(operation.text));
  }
  return left;
}

JinjaNodeId JinjaExpressionParser::parse_unary(bool filters) {
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

JinjaNodeId JinjaExpressionParser::parse_primary() {
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
    if (take_operation(")")) return add(Kind::tuple, token.offset, {});
    const JinjaNodeId value = parse_tuple();
    expect_operation(")");
    return value;
  }
  if (take_operation("[")) return parse_list(token.offset);
  if (take_operation("{")) return parse_dict(token.offset);
  return fail_here("a value");
}

JinjaNodeId JinjaExpressionParser::parse_name() {
  JinjaToken token = take();
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    return add_constant(Kind::constant, token.offset, JinjaValue{name == "true" || name == "True"});
  }
  if (name == "none" || name == "None") {
    return add_constant(Kind::constant, token.offset, JinjaValue{JinjaValue::None{}});
  }
  return add(Kind::name, token.offset, {}, std::move(token.text));
}

/// Adjacent texts are one, as in Python.
JinjaNodeId JinjaExpressionParser::parse_strings() {
  const std::uint32_t offset = peek().offset;
  std::string value;
  while (peek().kind == Token::string) value += take().text;
  return add_constant(Kind::constant, offset, JinjaValue{TemplatedText{value, Origin::markup}});
}

JinjaNodeId JinjaExpressionParser::parse_integer() {
  const JinjaToken token = take();
  std::int64_t value = 0;
  const auto* end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec != std::errc{}) {
    return fail(token.offset, "this number is too large");
  }
  return add_constant(Kind::constant, token.offset, JinjaValue{value});
}

JinjaNodeId JinjaExpressionParser::parse_floating() {
  const JinjaToken token = take();
  double value = 0;
  const auto* end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec != std::errc{}) {
    return fail(token.offset, "this number is out of range");
  }
  return add_constant(Kind::constant, token.offset, JinjaValue{value});
}

JinjaNodeId JinjaExpressionParser::parse_list(std::uint32_t offset) {
  std::vector<JinjaNodeId> items;
  while (!failed() && !is_operation("]")) {
    items.push_back(parse_expression());
    if (!take_operation(",")) break;
  }
  expect_operation("]");
  return add(Kind::list, offset, items);
}

JinjaNodeId JinjaExpressionParser::parse_dict(std::uint32_t offset) {
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

JinjaNodeId JinjaExpressionParser::parse_postfix(JinjaNodeId value) {
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

JinjaNodeId JinjaExpressionParser::parse_subscript(std::uint32_t offset, JinjaNodeId object) {
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
JinjaNodeId JinjaExpressionParser::parse_call(JinjaNodeKind kind, std::uint32_t offset,
                                              JinjaNodeId front, std::string text) {
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

JinjaNodeId JinjaExpressionParser::parse_filters_and_tests(JinjaNodeId value) {
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
JinjaNodeId JinjaExpressionParser::parse_filters(JinjaNodeId value, bool started) {
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

JinjaNodeId JinjaExpressionParser::parse_test(JinjaNodeId value) {
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
bool JinjaExpressionParser::test_argument_follows() const {
  const JinjaToken& token = peek();
  switch (token.kind) {
    case Token::name:
      return token.text != "else" && token.text != "or" && token.text != "and" &&
             token.text != "is" && token.text != "if" && token.text != "not" && token.text != "in";
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

}   // namespace duet::text
