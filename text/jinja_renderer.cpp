// jinja_renderer.cpp: runs a parsed chat template: a walk over its tree.
// One file of nearly 500 lines, because all kinds of nodes call each other.
#include "text/jinja_renderer.hpp"

#include "runtime/assert.hpp"
#include "text/jinja_builtins.hpp"
#include "text/jinja_text.hpp"
#include "text/limits.hpp"

#include <algorithm>
#include <optional>
#include <span>

namespace duet::text {
namespace {

using Kind = JinjaNodeKind;

enum class Flow : std::uint8_t { normal, broke, continued };

class Renderer {
 public:
  Renderer(const JinjaAst& ast, JinjaVariables variables)
      : ast_(ast), budget_(limits::template_work_max), variables_(std::move(variables)) {
    // So that every frame but the top level begins above zero.
    variables_.emplace_back(std::string{}, JinjaValue{});
    top_level_end_ = variables_.size();
  }

  Result<TemplatedText> run() {
    execute(ast_.root);
    if (budget_.used_up()) fail_budget(ast_.nodes[ast_.root]);
    if (error_) return std::move(*error_);
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool failed() const noexcept { return error_.has_value(); }

  void fail(const JinjaNode& node, std::string_view message, errc code = errc::template_failed) {
    if (!error_) error_ = ast_.source.error(code, node.offset, message);
  }

  void fail_budget(const JinjaNode& node) {
    fail(node, "rendering takes more work than is allowed", errc::template_limit);
  }

  /// The value of an outcome; its failure becomes the rendering's.
  JinjaValue take(const JinjaNode& node, JinjaOutcome outcome) {
    // A function that ran out of budget stopped half way.
    if (budget_.used_up()) fail_budget(node);
    if (outcome) return std::move(*outcome);
    fail(node, outcome.error().message, outcome.error().code);
    return {};
  }

  /// To be called on entering a node. False when the rendering must end.
  bool enter(const JinjaNode& node) {
    if (failed()) return false;
    if (!budget_.spend(1)) {
      fail_budget(node);
    } else if (depth_ >= limits::template_call_depth_max) {
      fail(node, "macros call each other too deeply", errc::template_limit);
    }
    return !failed();
  }

  class Level {
   public:
    explicit Level(std::uint32_t& depth) noexcept : depth_(depth) { ++depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --depth_; }

   private:
    std::uint32_t& depth_;
  };

  // --- Variables: one stack; a frame is what a loop body or macro has added ---

  JinjaValue lookup(std::string_view name) {
    std::size_t steps = 0;
    const auto search = [&](std::size_t begin, std::size_t end) -> const JinjaValue* {
      for (std::size_t at = end; at > begin; --at, ++steps) {
        if (variables_[at - 1].first == name) return &variables_[at - 1].second;
      }
      return nullptr;
    };
    // A macro sees its own variables and those of the top level, not those of its caller.
    const JinjaValue* found = search(visible_begin_, variables_.size());
    if (found == nullptr) found = search(0, std::min(visible_begin_, top_level_end_));
    static_cast<void>(budget_.spend(steps / 8));
    if (found != nullptr) return *found;
    if (name == "namespace") return JinjaValue{JinjaFunction::make_namespace};
    if (name == "raise_exception") return JinjaValue{JinjaFunction::raise_exception};
    if (name == "range") return JinjaValue{JinjaFunction::range};
    if (name == "dict") return JinjaValue{JinjaFunction::dict};
    return JinjaValue::undefined(name);
  }

  void assign(std::string_view name, JinjaValue value) {
    for (std::size_t at = variables_.size(); at > frame_begin_; --at) {
      if (variables_[at - 1].first != name) continue;
      variables_[at - 1].second = std::move(value);
      return;
    }
    static_cast<void>(budget_.spend(4));
    variables_.emplace_back(std::string{name}, std::move(value));
    if (frame_begin_ == 0) top_level_end_ = variables_.size();
  }

  /// Assigns one value to one name, or the items of a list to several.
  void assign_targets(const JinjaNode& node, std::span<const JinjaNodeId> targets,
                      const JinjaValue& value) {
    if (targets.size() == 1) return assign(ast_.nodes[targets[0]].text, value);
    auto items = jinja_iterate(value, budget_);
    if (!items) return fail(node, items.error().message);
    if ((*items)->size() != targets.size()) {
      return fail(node, std::to_string(targets.size()) + " names for " +
                            std::to_string((*items)->size()) + " values");
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      assign(ast_.nodes[targets[i]].text, (**items)[i]);
    }
  }

  // --- Statements ---

  Flow execute(JinjaNodeId id) {
    const JinjaNode& node = ast_.nodes[id];
    if (!enter(node)) return Flow::normal;
    const Level level{depth_};
    const auto children = ast_.children(node);
    switch (node.kind) {
      case Kind::sequence:
        for (const JinjaNodeId child : children) {
          const Flow flow = execute(child);
          if (flow != Flow::normal || failed()) return flow;
        }
        return Flow::normal;
      case Kind::data:
        write(node, ast_.constants[node.value]);
        return Flow::normal;
      case Kind::output:
        write(node, evaluate(children[0]));
        return Flow::normal;
      case Kind::if_block:
        return execute_if(children);
      case Kind::for_block:
        execute_for(node, children);
        return Flow::normal;
      case Kind::set:
        if (JinjaValue value = evaluate(children[0]); !failed()) {
          assign_targets(node, children.subspan(1), value);
        }
        return Flow::normal;
      case Kind::set_attribute:
        set_attribute(node, evaluate(children[0]));
        return Flow::normal;
      case Kind::set_block:
      case Kind::filter_block:
        execute_capture(node, children);
        return Flow::normal;
      case Kind::macro:
        assign(node.text, JinjaValue{JinjaValue::Macro{id}});
        return Flow::normal;
      case Kind::break_loop:
        return Flow::broke;
      case Kind::continue_loop:
        return Flow::continued;
      default:
        DUET_UNREACHABLE();
    }
  }

  void write(const JinjaNode& node, const JinjaValue& value) {
    if (failed()) return;
    jinja_print(value, budget_, out_);
    if (budget_.used_up()) fail_budget(node);
    if (out_.size() > limits::template_output_max) {
      fail(node,
           "the rendered text is longer than " + std::to_string(limits::template_output_max) +
               " bytes",
           errc::template_limit);
    }
  }

  Flow execute_if(std::span<const JinjaNodeId> children) {
    const bool condition = jinja_true(evaluate(children[0]));
    if (failed()) return Flow::normal;
    if (condition) return execute(children[1]);
    return children[2] == no_jinja_node ? Flow::normal : execute(children[2]);
  }

  void execute_for(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    const JinjaValue iterable = evaluate(children[0]);
    if (failed()) return;
    auto items = jinja_iterate(iterable, budget_);
    if (!items) return fail(node, items.error().message);
    const auto targets = children.subspan(4);
    const std::size_t outer_frame = frame_begin_;
    const std::size_t base = variables_.size();
    auto loop = std::make_shared<JinjaLoop>();
    loop->items = *items;
    if (children[1] != no_jinja_node) {
      JinjaList chosen;
      for (const auto& item : **items) {
        frame_begin_ = base;
        assign_targets(node, targets, item);
        if (jinja_true(evaluate(children[1])) && !failed()) chosen.push_back(item);
        variables_.resize(base);
        if (failed()) break;
      }
      loop->items = std::make_shared<const JinjaList>(std::move(chosen));
    }
    bool ended = false;
    for (; loop->index0 < loop->items->size() && !failed() && !ended; ++loop->index0) {
      // Each round has a frame of its own: what it sets is gone in the next.
      frame_begin_ = base;
      variables_.emplace_back("loop", JinjaValue{loop});
      assign_targets(node, targets, (*loop->items)[loop->index0]);
      if (!failed()) ended = execute(children[2]) == Flow::broke;
      variables_.resize(base);
    }
    frame_begin_ = outer_frame;
    if (loop->items->empty() && children[3] != no_jinja_node && !failed()) execute(children[3]);
  }

  void set_attribute(const JinjaNode& node, JinjaValue value) {
    if (failed()) return;
    const auto dot = node.text.find('.');
    const JinjaValue object = lookup(std::string_view{node.text}.substr(0, dot));
    const auto* space = object.get<JinjaValue::NamespaceRef>();
    if (space == nullptr) return fail(node, "only a namespace has attributes to set");
    if (!storable(node, value)) return;
    JinjaDict& attributes = (*space)->attributes;
    static_cast<void>(budget_.spend(1 + attributes.entries.size() / 4));
    attributes.set(TemplatedText{std::string_view{node.text}.substr(dot + 1), Origin::markup},
                   std::move(value));
  }

  /// Renders a body into a text of its own.
  TemplatedText capture(JinjaNodeId body) {
    TemplatedText outer = std::exchange(out_, TemplatedText{});
    execute(body);
    return std::exchange(out_, std::move(outer));
  }

  void execute_capture(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    // As in a loop, what the body sets stays in it.
    const std::size_t base = variables_.size();
    const std::size_t outer_frame = std::exchange(frame_begin_, base);
    const std::size_t outer_top = top_level_end_;
    JinjaValue text{capture(children[0])};
    frame_begin_ = outer_frame;
    top_level_end_ = outer_top;
    variables_.resize(base);
    if (failed()) return;
    if (children[1] != no_jinja_node) {
      filter_input_ = std::move(text);
      text = evaluate(children[1]);
    }
    if (failed()) return;
    if (node.kind == Kind::filter_block) return write(node, text);
    assign(node.text, std::move(text));
  }

  // --- Expressions ---

  JinjaValue evaluate(JinjaNodeId id) {
    const JinjaNode& node = ast_.nodes[id];
    if (!enter(node)) return {};
    const Level level{depth_};
    const auto children = ast_.children(node);
    switch (node.kind) {
      case Kind::constant:
        return ast_.constants[node.value];
      case Kind::name:
        return lookup(node.text);
      case Kind::list:
      case Kind::tuple:
        return evaluate_list(node, children);
      case Kind::dict:
        return evaluate_dict(node, children);
      case Kind::attribute: {
        const JinjaValue object = evaluate(children[0]);
        return failed() ? JinjaValue{} : take(node, jinja_attribute(object, node.text, budget_));
      }
      case Kind::item: {
        const JinjaValue object = evaluate(children[0]);
        const JinjaValue key = evaluate(children[1]);
        return failed() ? JinjaValue{} : take(node, jinja_item(object, key, budget_));
      }
      case Kind::slice:
        return evaluate_slice(node, children);
      case Kind::call:
        return evaluate_call(node, children);
      case Kind::filter:
      case Kind::test:
        return evaluate_filter(node, children);
      case Kind::negation:
        return JinjaValue{!jinja_true(evaluate(children[0]))};
      case Kind::minus:
      case Kind::plus: {
        const JinjaValue value = evaluate(children[0]);
        return failed() ? JinjaValue{} : take(node, jinja_sign(node.kind == Kind::minus, value));
      }
      case Kind::arithmetic:
        return evaluate_arithmetic(node, children);
      case Kind::concat:
        return evaluate_concat(node, children);
      case Kind::comparison:
        return evaluate_comparison(children);
      case Kind::conjunction:
      case Kind::disjunction: {
        JinjaValue left = evaluate(children[0]);
        if (failed() || jinja_true(left) == (node.kind == Kind::disjunction)) return left;
        return evaluate(children[1]);
      }
      case Kind::conditional: {
        const bool condition = jinja_true(evaluate(children[1]));
        if (failed()) return {};
        if (condition) return evaluate(children[0]);
        if (children[2] != no_jinja_node) return evaluate(children[2]);
        return JinjaValue::undefined("value of an 'if' without 'else'");
      }
      default:
        DUET_UNREACHABLE();
    }
  }

  bool storable(const JinjaNode& node, const JinjaValue& value) {
    if (!value.storable()) {
      fail(node, "a namespace or loop cannot be stored in another value");
    } else if (value.depth() >= limits::template_depth_max) {
      fail(node, "this value is nested too deeply", errc::template_limit);
    }
    return !failed();
  }

  JinjaValue evaluate_list(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    JinjaList items;
    items.reserve(children.size());
    for (const JinjaNodeId child : children) {
      items.push_back(evaluate(child));
      if (failed() || !storable(node, items.back())) return {};
    }
    return node.kind == Kind::tuple ? JinjaValue::tuple(std::move(items))
                                    : JinjaValue{std::move(items)};
  }

  JinjaValue evaluate_dict(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    JinjaDict dict;
    for (std::size_t i = 0; i + 1 < children.size(); i += 2) {
      const JinjaValue key = evaluate(children[i]);
      JinjaValue value = evaluate(children[i + 1]);
      if (failed() || !storable(node, value)) return {};
      if (key.text() == nullptr) {
        fail(node, "the keys of a dict must be texts here");
        return {};
      }
      if (!budget_.spend(1 + dict.entries.size() / 4)) return {};
      dict.set(*key.text(), std::move(value));
    }
    return JinjaValue{std::move(dict)};
  }

  JinjaValue evaluate_slice(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    std::array<JinjaValue, 4> parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] =
          children[i] == no_jinja_node ? JinjaValue{JinjaValue::None{}} : evaluate(children[i]);
    }
    if (failed()) return {};
    return take(node, jinja_slice(parts[0], parts[1], parts[2], parts[3], budget_));
  }

  JinjaArguments evaluate_arguments(std::span<const JinjaNodeId> children) {
    JinjaArguments arguments;
    for (const JinjaNodeId child : children) {
      const JinjaNode& node = ast_.nodes[child];
      if (node.kind == Kind::keyword) {
        arguments.named.emplace_back(node.text, evaluate(ast_.children(node)[0]));
      } else {
        arguments.positional.push_back(evaluate(child));
      }
      if (failed()) break;
    }
    return arguments;
  }

  JinjaValue evaluate_filter(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    // The first filter of a block has the block's text as its input.
    const JinjaValue input = children[0] == no_jinja_node
                                 ? std::exchange(filter_input_, JinjaValue{})
                                 : evaluate(children[0]);
    if (failed()) return {};
    const JinjaArguments arguments = evaluate_arguments(children.subspan(1));
    if (failed()) return {};
    return take(node, node.kind == Kind::filter ? jinja_filter(node.text, input, arguments, budget_)
                                                : jinja_test(node.text, input, arguments, budget_));
  }

  JinjaValue evaluate_call(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    const JinjaNode& callee = ast_.nodes[children[0]];
    if (callee.kind == Kind::attribute) {
      const JinjaValue object = evaluate(ast_.children(callee)[0]);
      if (failed()) return {};
      const JinjaArguments arguments = evaluate_arguments(children.subspan(1));
      if (failed()) return {};
      return take(callee, jinja_method(object, callee.text, arguments, budget_));
    }
    const JinjaValue function = evaluate(children[0]);
    if (failed()) return {};
    const JinjaArguments arguments = evaluate_arguments(children.subspan(1));
    if (failed()) return {};
    if (const auto* builtin = function.get<JinjaFunction>()) {
      return take(node, jinja_function(*builtin, arguments, budget_));
    }
    if (const auto* macro = function.get<JinjaValue::Macro>()) {
      return call_macro(node, ast_.nodes[macro->node], arguments);
    }
    const auto* missing = function.get<JinjaValue::Undefined>();
    fail(node, missing != nullptr ? "'" + missing->name.substr(0, 64) + "' is undefined"
                                  : std::string{function.type_name()} + " cannot be called");
    return {};
  }

  JinjaValue call_macro(const JinjaNode& node, const JinjaNode& macro,
                        const JinjaArguments& arguments) {
    const auto children = ast_.children(macro);
    const auto parameters = children.subspan(1);
    if (arguments.positional.size() > parameters.size()) {
      fail(node, "too many arguments for the macro '" + macro.text.substr(0, 64) + "'");
      return {};
    }
    for (const auto& argument : arguments.named) {
      const bool known = std::any_of(parameters.begin(), parameters.end(), [&](JinjaNodeId id) {
        return ast_.nodes[id].text == argument.first;
      });
      if (!known) {
        fail(node, "the macro '" + macro.text.substr(0, 64) + "' has no parameter '" +
                       std::string{argument.first.substr(0, 64)} + "'");
        return {};
      }
    }
    const std::size_t base = variables_.size();
    const std::size_t outer_frame = std::exchange(frame_begin_, base);
    const std::size_t outer_visible = std::exchange(visible_begin_, base);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const JinjaNode& parameter = ast_.nodes[parameters[i]];
      const JinjaNodeId missing = ast_.children(parameter)[0];
      const auto* given = arguments.find(i, parameter.text);
      JinjaValue value = given != nullptr           ? *given
                         : missing == no_jinja_node ? JinjaValue::undefined(parameter.text)
                                                    : evaluate(missing);
      variables_.emplace_back(parameter.text, std::move(value));
    }
    JinjaValue text{capture(children[0])};
    variables_.resize(base);
    visible_begin_ = outer_visible;
    frame_begin_ = outer_frame;
    return text;
  }

  JinjaValue evaluate_concat(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    TemplatedText out;
    for (const JinjaNodeId child : children) {
      const JinjaValue value = evaluate(child);
      if (failed()) return {};
      jinja_print(value, budget_, out);
      if (!check_size(node, out.size())) return {};
    }
    return JinjaValue{std::move(out)};
  }

  bool check_size(const JinjaNode& node, std::size_t size) {
    if (size > limits::template_output_max) {
      fail(node, "a text is longer than " + std::to_string(limits::template_output_max) + " bytes",
           errc::template_limit);
    }
    return !failed();
  }

  JinjaValue evaluate_comparison(std::span<const JinjaNodeId> children) {
    JinjaValue left = evaluate(children[0]);
    for (const JinjaNodeId part : children.subspan(1)) {
      const JinjaNode& node = ast_.nodes[part];
      JinjaValue right = evaluate(ast_.children(node)[0]);
      if (failed()) return {};
      if (!compare(node, left, right)) return JinjaValue{false};
      left = std::move(right);
    }
    return JinjaValue{true};
  }

  bool compare(const JinjaNode& node, const JinjaValue& left, const JinjaValue& right) {
    const std::string_view operation = node.text;
    if (operation == "==") return jinja_equal(left, right, budget_);
    if (operation == "!=") return !jinja_equal(left, right, budget_);
    if (operation == "in" || operation == "not in") {
      return jinja_true(take(node, jinja_contains(right, left, budget_))) == (operation == "in");
    }
    const auto order = jinja_compare(left, right, budget_);
    if (!order) {
      fail(node, "cannot compare " + std::string{left.type_name()} + " with " +
                     std::string{right.type_name()});
      return false;
    }
    if (operation == "<") return *order < 0;
    if (operation == "<=") return *order <= 0;
    if (operation == ">") return *order > 0;
    return *order >= 0;
  }

  JinjaValue evaluate_arithmetic(const JinjaNode& node, std::span<const JinjaNodeId> children) {
    const JinjaValue left = evaluate(children[0]);
    const JinjaValue right = evaluate(children[1]);
    if (failed()) return {};
    return take(node, jinja_arithmetic(node.text, left, right, budget_));
  }

  const JinjaAst& ast_;
  JinjaBudget budget_;
  JinjaVariables variables_;
  std::size_t frame_begin_ = 0;     // names from here on are set in place, others are hidden
  std::size_t visible_begin_ = 0;   // of the macro that runs; 0 outside of one
  std::size_t top_level_end_ = 0;
  JinjaValue filter_input_;
  TemplatedText out_;
  std::uint32_t depth_ = 0;
  std::optional<Error> error_;
};

}   // namespace

Result<TemplatedText> jinja_render(const JinjaAst& ast, JinjaVariables variables) {
  return Renderer{ast, std::move(variables)}.run();
}

}   // namespace duet::text
