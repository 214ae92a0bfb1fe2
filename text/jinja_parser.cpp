// jinja_parser.cpp: the statements of chat templates.
#include "text/jinja_ast.hpp"

#include "runtime/assert.hpp"
#include "text/jinja_expression_parser.hpp"
#include "text/limits.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

namespace duet::text {
namespace {

using Kind = JinjaNodeKind;
using Token = JinjaTokenKind;

class Parser : private JinjaExpressionParser {
 public:
  Parser(JinjaAst& ast, std::vector<JinjaToken> tokens)
      : JinjaExpressionParser(ast, std::move(tokens)) {}

  std::optional<Error> run() {
    ast_.root = parse_body({});
    if (!failed()) expect(Token::end, "the end of the template");
    return std::move(error_);
  }

 private:
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

  std::uint32_t loops_ = 0;   // those around the current statement
};

}   // namespace

Result<JinjaAst> jinja_parse(std::string_view source, const JinjaOptions& options) {
  JinjaAst ast{source};
  if (source.size() > limits::template_bytes_max) {
    return ast.source.error(errc::template_limit, 0, "the template is too large");
  }
  if (const auto valid = utf8_valid_prefix(ast.source.text()); valid != ast.source.text().size()) {
    return ast.source.error(errc::template_invalid, static_cast<std::uint32_t>(valid),
                            "this is not UTF-8");
  }
  auto tokens = jinja_lex(ast.source, options);
  if (!tokens) return std::move(tokens).error();
  if (auto error = Parser{ast, std::move(*tokens)}.run()) return std::move(*error);
  return ast;
}

}   // namespace duet::text
