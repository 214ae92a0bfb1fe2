// jinja_builtins.hpp: the filters, tests, methods and functions of chat templates.
//
// Filters: abs capitalize count d default dictsort first float int items join last length list
//   lower map max min reject rejectattr replace reverse safe select selectattr sort string title
//   tojson trim unique upper
// Tests: boolean defined divisibleby eq equalto even false float ge gt in integer iterable le lower
//   lt mapping ne none number odd sequence string true undefined upper
// Methods of a text: capitalize count endswith find join lower lstrip replace rfind rsplit
//   rstrip split splitlines startswith strip title upper
// Methods of a dict: get items keys values
// Functions: dict namespace raise_exception range
// Letter case is that of ASCII: other letters stay as they are.
#pragma once

#include "text/error.hpp"
#include "text/jinja_value.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace duet::text {

struct JinjaArguments {
  std::vector<JinjaValue> positional;
  std::vector<std::pair<std::string_view, JinjaValue>> named;
  /// Null when it was not given.
  [[nodiscard]] const JinjaValue* find(std::size_t position, std::string_view name) const noexcept;
};

struct JinjaFailure {
  errc code = errc::template_failed;
  std::string message;
};
using JinjaOutcome = boost::system::result<JinjaValue, JinjaFailure>;

[[nodiscard]] bool jinja_has_filter(std::string_view name) noexcept;
[[nodiscard]] bool jinja_has_test(std::string_view name) noexcept;

/// Once the budget is used up the outcome does not matter; the caller looks at the budget.
[[nodiscard]] JinjaOutcome jinja_filter(std::string_view name, const JinjaValue& input,
                                        const JinjaArguments& arguments, JinjaBudget& budget);
[[nodiscard]] JinjaOutcome jinja_test(std::string_view name, const JinjaValue& input,
                                      const JinjaArguments& arguments, JinjaBudget& budget);
[[nodiscard]] JinjaOutcome jinja_method(const JinjaValue& object, std::string_view name,
                                        const JinjaArguments& arguments, JinjaBudget& budget);
[[nodiscard]] JinjaOutcome jinja_function(JinjaFunction function, const JinjaArguments& arguments,
                                          JinjaBudget& budget);

/// `object.name` and `object[key]`, undefined when it is not there.
[[nodiscard]] JinjaOutcome jinja_attribute(const JinjaValue& object, std::string_view name,
                                           JinjaBudget& budget);
[[nodiscard]] JinjaOutcome jinja_item(const JinjaValue& object, const JinjaValue& key,
                                      JinjaBudget& budget);
/// `object[start:stop:step]`, missing parts none.
[[nodiscard]] JinjaOutcome jinja_slice(const JinjaValue& object, const JinjaValue& start,
                                       const JinjaValue& stop, const JinjaValue& step,
                                       JinjaBudget& budget);
/// `left operation right` for + - * / // % **.
[[nodiscard]] JinjaOutcome jinja_arithmetic(std::string_view operation, const JinjaValue& left,
                                            const JinjaValue& right, JinjaBudget& budget);
/// `-value` or `+value`.
[[nodiscard]] JinjaOutcome jinja_sign(bool minus, const JinjaValue& value);
/// What a loop goes over: the items, a dict's keys, a text's characters.
[[nodiscard]] boost::system::result<JinjaValue::List, JinjaFailure> jinja_iterate(
    const JinjaValue& value, JinjaBudget& budget);
/// `needle in haystack`.
[[nodiscard]] JinjaOutcome jinja_contains(const JinjaValue& haystack, const JinjaValue& needle,
                                          JinjaBudget& budget);

}   // namespace duet::text
