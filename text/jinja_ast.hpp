// jinja_ast.hpp: a parsed chat template.
#pragma once

#include "text/jinja_lexer.hpp"
#include "text/jinja_value.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

using JinjaNodeId = std::uint32_t;
inline constexpr JinjaNodeId no_jinja_node = std::numeric_limits<JinjaNodeId>::max();

/// What the children of a node are is said at its kind; `?` may be no_jinja_node; `text` is the
/// node's text.
enum class JinjaNodeKind : std::uint8_t {
  // Expressions
  constant,          // value: index into constants
  name,              // text
  list,              // items
  tuple,             // items
  dict,              // key, value, key, value, ...
  attribute,         // object; text
  item,              // object, key
  slice,             // object, start?, stop?, step?
  call,              // callee, arguments...
  keyword,           // value; text: only as an argument
  filter,            // input, arguments...; text
  test,              // input, arguments...; text
  negation,          // operand: `not`
  minus,             // operand
  plus,              // operand
  arithmetic,        // left, right; text: the operator
  concat,            // operands: `~`
  comparison,        // first, then comparison_part...
  comparison_part,   // operand; text: the operator
  conjunction,       // left, right: `and`
  disjunction,       // left, right: `or`
  conditional,       // value, condition, other?
  // Statements
  sequence,        // statements
  data,            // value: index into constants
  output,          // expression
  if_block,        // condition, body, else?
  for_block,       // iterable, condition?, body, else?, targets...
  set,             // value, targets...
  set_attribute,   // value; text: "namespace.attribute"
  set_block,       // body, filter? ; text: target. The filter's input is no_jinja_node.
  filter_block,    // body, filter; as above
  macro,           // body, then parameter...; text
  parameter,       // default?; text
  break_loop,
  continue_loop,
};

struct JinjaNode {
  JinjaNodeKind kind = JinjaNodeKind::constant;
  std::uint32_t offset = 0;   ///< In the source, for messages.
  std::uint32_t depth = 1;    ///< Levels of nodes, itself included.
  std::uint32_t children_begin = 0;
  std::uint32_t children_count = 0;
  std::uint32_t value = 0;
  std::string text;
};

struct JinjaAst {
  explicit JinjaAst(std::string_view from) : source(from) {}

  JinjaSource source;
  std::vector<JinjaNode> nodes;
  std::vector<JinjaNodeId> child_ids;
  std::vector<JinjaValue> constants;
  JinjaNodeId root = no_jinja_node;

  [[nodiscard]] std::span<const JinjaNodeId> children(const JinjaNode& node) const {
    return std::span{child_ids}.subspan(node.children_begin, node.children_count);
  }
};

/// Errors: template_invalid (with line and column), template_limit.
[[nodiscard]] Result<JinjaAst> jinja_parse(std::string_view source, const JinjaOptions& options);

}   // namespace duet::text
