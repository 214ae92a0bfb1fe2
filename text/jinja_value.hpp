// jinja_value.hpp: the values that a chat template works with, and what can be done to all of them.
//
// The semantics are those of Python's jinja2 3.1 with its default `Undefined`.
#pragma once

#include "text/templated_text.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace duet::text {

class JinjaValue;

using JinjaList = std::vector<JinjaValue>;

/// Ordered as inserted, like Python's. Lookup is linear; callers charge it to the budget.
struct JinjaDict {
  std::vector<std::pair<TemplatedText, JinjaValue>> entries;
  [[nodiscard]] const JinjaValue* find(std::string_view key) const noexcept;
  void set(TemplatedText key, JinjaValue value);
};

/// What is left of limits::template_work_max. Everything that loops or copies spends from it, so a
/// template can neither run nor grow without end.
class JinjaBudget {
 public:
  explicit JinjaBudget(std::uint64_t units) noexcept : left_(units) {}
  /// False once the budget is used up; it stays so.
  [[nodiscard]] bool spend(std::uint64_t units) noexcept;
  [[nodiscard]] bool spend_bytes(std::size_t bytes) noexcept { return spend(1 + bytes / 16); }
  [[nodiscard]] bool used_up() const noexcept { return used_up_; }

 private:
  std::uint64_t left_;
  bool used_up_ = false;
};

enum class JinjaFunction : std::uint8_t { raise_exception, make_namespace, range, dict };

/// The state of a running `for`, seen by the template as `loop`.
struct JinjaLoop {
  std::shared_ptr<const JinjaList> items;
  std::size_t index0 = 0;
};

/// Cheap to copy: texts and containers are shared and immutable, but for namespaces, which lists,
/// dicts and namespaces may not hold, so that there are no cycles.
class JinjaValue {
 public:
  struct Undefined {
    std::string name;   // for the error message
  };
  struct None {};
  struct Namespace {
    JinjaDict attributes;
  };
  struct Macro {
    std::uint32_t node;
  };
  using Text = std::shared_ptr<const TemplatedText>;
  using List = std::shared_ptr<const JinjaList>;
  using Dict = std::shared_ptr<const JinjaDict>;
  using NamespaceRef = std::shared_ptr<Namespace>;
  using LoopRef = std::shared_ptr<JinjaLoop>;
  using Data = std::variant<Undefined, None, bool, std::int64_t, double, Text, List, Dict,
                            NamespaceRef, LoopRef, JinjaFunction, Macro>;

  JinjaValue() : data_(Undefined{}) {}
  explicit JinjaValue(None none) : data_(none) {}
  explicit JinjaValue(bool value) : data_(value) {}
  explicit JinjaValue(std::int64_t value) : data_(value) {}
  explicit JinjaValue(double value) : data_(value) {}
  explicit JinjaValue(TemplatedText text)
      : data_(std::make_shared<const TemplatedText>(std::move(text))) {}
  explicit JinjaValue(JinjaList list);
  explicit JinjaValue(JinjaDict dict);
  explicit JinjaValue(NamespaceRef space) : data_(std::move(space)) {}
  explicit JinjaValue(LoopRef loop) : data_(std::move(loop)) {}
  explicit JinjaValue(JinjaFunction function) : data_(function) {}
  explicit JinjaValue(Macro macro) : data_(macro) {}
  static JinjaValue undefined(std::string_view name);
  /// A list that prints as Python's tuple and is equal to tuples alone.
  static JinjaValue tuple(JinjaList items);

  template <typename T>
  [[nodiscard]] const T* get() const noexcept {
    return std::get_if<T>(&data_);
  }
  /// Null when the value is of another type.
  [[nodiscard]] const TemplatedText* text() const noexcept;
  [[nodiscard]] const JinjaList* list() const noexcept;
  [[nodiscard]] const JinjaDict* dict() const noexcept;
  [[nodiscard]] bool is_undefined() const noexcept { return get<Undefined>() != nullptr; }
  [[nodiscard]] bool is_none() const noexcept { return get<None>() != nullptr; }
  /// An integer, or a bool as Python counts it.
  [[nodiscard]] std::optional<std::int64_t> integer() const noexcept;
  /// Integer, bool or float.
  [[nodiscard]] std::optional<double> number() const noexcept;
  [[nodiscard]] bool is_tuple() const noexcept { return tuple_; }
  /// Levels of lists and dicts below: 0 for a scalar.
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }
  /// Whether it may be stored in a list, dict or namespace.
  [[nodiscard]] bool storable() const noexcept;
  /// Python's name of the type, for messages.
  [[nodiscard]] std::string_view type_name() const noexcept;

 private:
  Data data_;
  std::uint32_t depth_ = 0;
  bool tuple_ = false;
};

[[nodiscard]] bool jinja_true(const JinjaValue& value) noexcept;
[[nodiscard]] bool jinja_equal(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget);
/// Below zero, zero or above; nothing when Python cannot order the two.
[[nodiscard]] std::optional<int> jinja_compare(const JinjaValue& a, const JinjaValue& b,
                                               JinjaBudget& budget);
/// Appends str(value). Numbers, booleans and containers count as content: they may come from there.
void jinja_print(const JinjaValue& value, JinjaBudget& budget, TemplatedText& out);
/// Appends json.dumps(value, ensure_ascii=False, indent=indent), as chat templates expect of
/// `tojson`. False when the value has no JSON form.
[[nodiscard]] bool jinja_to_json(const JinjaValue& value, std::optional<std::int64_t> indent,
                                 JinjaBudget& budget, std::string& out);
/// A JSON value of a client: all texts are content. Nothing when it is nested too deeply or holds
/// text that is not UTF-8; the functions here rely on both.
[[nodiscard]] std::optional<JinjaValue> jinja_from_json(const boost::json::value& value);

/// The characters that Python's str.strip() takes away.
[[nodiscard]] bool is_python_blank(char32_t code_point) noexcept;
/// The part of `text` without blanks at its ends, as offsets.
[[nodiscard]] std::pair<std::size_t, std::size_t> strip_offsets(std::string_view text, bool left,
                                                                bool right) noexcept;

}   // namespace duet::text
