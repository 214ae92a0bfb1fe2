// jinja_filters.cpp: the filters of chat templates.
// A little long, because the table at its end names them all.
#include "text/jinja_builtins.hpp"
#include "text/jinja_text.hpp"
#include "text/limits.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace duet::text {
namespace {

JinjaFailure fail(std::string message) {
  return {errc::template_failed, std::move(message)};
}

using Filter = JinjaOutcome (*)(const JinjaValue&, const JinjaArguments&, JinjaBudget&);

/// The items of what is filtered.
#define DUET_ITEMS(name)                         \
  auto iterated_ = jinja_iterate(input, budget); \
  if (!iterated_) return iterated_.error();      \
  const JinjaList& name = **iterated_

template <LetterCase letter_case>
JinjaOutcome change_case(const JinjaValue& input, const JinjaArguments&, JinjaBudget& budget) {
  return JinjaValue{with_case(jinja_text(input, budget), letter_case)};
}

JinjaOutcome trim(const JinjaValue& input, const JinjaArguments& arguments, JinjaBudget& budget) {
  const auto* set = arguments.find(0, "chars");
  if (set != nullptr && set->text() == nullptr && !set->is_none()) {
    return fail("the argument of trim must be a text");
  }
  return JinjaValue{
      strip(jinja_text(input, budget), set == nullptr ? nullptr : set->text(), true, true)};
}

JinjaOutcome length(const JinjaValue& input, const JinjaArguments&, JinjaBudget& budget) {
  std::size_t size = 0;
  if (const auto* text = input.text()) {
    if (budget.spend_bytes(text->size())) size = character_count(text->text());
  } else if (const auto* list = input.list()) {
    size = list->size();
  } else if (const auto* dict = input.dict()) {
    size = dict->entries.size();
  } else if (const auto* loop = input.get<JinjaValue::LoopRef>()) {
    size = (*loop)->items->size();
  } else if (!input.is_undefined()) {
    return fail(std::string{input.type_name()} + " has no length");
  }
  return JinjaValue{static_cast<std::int64_t>(size)};
}

JinjaOutcome to_json(const JinjaValue& input, const JinjaArguments& arguments,
                     JinjaBudget& budget) {
  const auto* indent = arguments.find(0, "indent");
  std::optional<std::int64_t> blanks;
  if (indent != nullptr && !indent->is_none()) {
    blanks = indent->integer();
    if (!blanks || *blanks < 0 || *blanks > 16) return fail("the indent of tojson must be 0 to 16");
  }
  std::string out;
  if (!jinja_to_json(input, blanks, budget, out)) {
    return fail("tojson cannot express this value");
  }
  if (!budget.spend_bytes(out.size())) return JinjaValue{};
  return JinjaValue{TemplatedText{out, Origin::content}};
}

JinjaOutcome default_value(const JinjaValue& input, const JinjaArguments& arguments, JinjaBudget&) {
  const auto* other = arguments.find(0, "default_value");
  const auto* falsy_too = arguments.find(1, "boolean");
  const bool missing = input.is_undefined() ||
                       (falsy_too != nullptr && jinja_true(*falsy_too) && !jinja_true(input));
  if (!missing) return input;
  return other == nullptr ? JinjaValue{TemplatedText{}} : *other;
}

JinjaOutcome join(const JinjaValue& input, const JinjaArguments& arguments, JinjaBudget& budget) {
  DUET_ITEMS(items);
  TemplatedText separator;
  if (const auto* given = arguments.find(0, "d")) separator = jinja_text(*given, budget);
  const auto* attribute = arguments.find(1, "attribute");
  TemplatedText out;
  for (std::size_t i = 0; i < items.size() && budget.spend_bytes(separator.size()); ++i) {
    if (i > 0) out.append(separator);
    if (attribute == nullptr) {
      jinja_print(items[i], budget, out);
      continue;
    }
    auto value = jinja_item(items[i], *attribute, budget);
    if (!value) return value;
    jinja_print(*value, budget, out);
  }
  return JinjaValue{std::move(out)};
}

template <bool first>
JinjaOutcome end_item(const JinjaValue& input, const JinjaArguments&, JinjaBudget& budget) {
  DUET_ITEMS(items);
  if (items.empty()) return JinjaValue::undefined(first ? "first item" : "last item");
  return first ? items.front() : items.back();
}

JinjaOutcome to_list(const JinjaValue& input, const JinjaArguments&, JinjaBudget& budget) {
  DUET_ITEMS(items);
  return JinjaValue{JinjaList{items}};
}

JinjaOutcome to_string(const JinjaValue& input, const JinjaArguments&, JinjaBudget& budget) {
  return JinjaValue{jinja_text(input, budget)};
}

JinjaOutcome same(const JinjaValue& input, const JinjaArguments&, JinjaBudget&) {
  return input;
}

JinjaOutcome reverse(const JinjaValue& input, const JinjaArguments&, JinjaBudget& budget) {
  const bool text = input.text() != nullptr;
  DUET_ITEMS(items);
  if (!budget.spend(items.size())) return JinjaValue{};
  JinjaList reversed{items.rbegin(), items.rend()};
  if (!text) return JinjaValue{std::move(reversed)};
  TemplatedText out;
  for (const auto& item : reversed) jinja_print(item, budget, out);
  return JinjaValue{std::move(out)};
}

JinjaOutcome dict_items(const JinjaValue& input, const JinjaArguments&, JinjaBudget& budget) {
  if (input.is_undefined()) return JinjaValue{JinjaList{}};
  if (input.dict() == nullptr) return fail("only a dict has items");
  return jinja_method(input, "items", {}, budget);
}

JinjaOutcome replace_filter(const JinjaValue& input, const JinjaArguments& arguments,
                            JinjaBudget& budget) {
  const auto* from = arguments.find(0, "old");
  const auto* to = arguments.find(1, "new");
  const auto* count = arguments.find(2, "count");
  if (from == nullptr || to == nullptr) return fail("replace needs two texts");
  const std::int64_t count_max = count == nullptr ? -1 : count->integer().value_or(-1);
  return JinjaValue{replace(jinja_text(input, budget), jinja_text(*from, budget),
                            jinja_text(*to, budget), count_max, budget)};
}

JinjaOutcome to_integer(const JinjaValue& input, const JinjaArguments& arguments,
                        JinjaBudget& budget) {
  if (const auto whole = input.integer()) return JinjaValue{*whole};
  const auto* missing = arguments.find(0, "default");
  const JinjaValue other = missing == nullptr ? JinjaValue{std::int64_t{0}} : *missing;
  double value = 0;
  if (const auto* floating = input.get<double>()) {
    value = *floating;
  } else if (input.text() != nullptr) {
    const TemplatedText stripped = strip(jinja_text(input, budget), nullptr, true, true);
    std::string_view digits = stripped.text();
    if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
    std::int64_t whole = 0;
    const auto* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, whole);
    if (read.ec == std::errc{} && read.ptr == end) return JinjaValue{whole};
    const auto real = std::from_chars(digits.data(), end, value);
    if (real.ec != std::errc{} || real.ptr != end) return other;
  } else {
    return other;
  }
  if (!(std::abs(value) < 9.2e18)) return other;
  return JinjaValue{static_cast<std::int64_t>(value)};
}

JinjaOutcome to_float(const JinjaValue& input, const JinjaArguments& arguments,
                      JinjaBudget& budget) {
  if (const auto number = input.number()) return JinjaValue{*number};
  const auto* missing = arguments.find(0, "default");
  const JinjaValue other = missing == nullptr ? JinjaValue{0.0} : *missing;
  if (input.text() == nullptr) return other;
  const TemplatedText stripped = strip(jinja_text(input, budget), nullptr, true, true);
  double value = 0;
  const auto* end = stripped.text().data() + stripped.size();
  const auto read = std::from_chars(stripped.text().data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end) return other;
  return JinjaValue{value};
}

JinjaOutcome absolute(const JinjaValue& input, const JinjaArguments&, JinjaBudget&) {
  if (const auto whole = input.integer(); whole && *whole != INT64_MIN) {
    return JinjaValue{*whole < 0 ? -*whole : *whole};
  }
  if (const auto number = input.number()) return JinjaValue{std::abs(*number)};
  return fail("abs needs a number");
}

/// What sort, min, max and unique compare: the item or its attribute, texts without letter case.
JinjaOutcome sort_key(const JinjaValue& item, const JinjaValue* attribute, bool case_sensitive,
                      JinjaBudget& budget) {
  JinjaValue key = item;
  if (attribute != nullptr && !attribute->is_none()) {
    auto found = jinja_item(item, *attribute, budget);
    if (!found) return found;
    key = std::move(*found);
  }
  if (case_sensitive || key.text() == nullptr) return key;
  if (!budget.spend_bytes(key.text()->size())) return JinjaValue{};
  return JinjaValue{with_case(*key.text(), LetterCase::lower)};
}

/// Pairs of key and item, sorted by key.
JinjaOutcome sorted(const JinjaList& items, const JinjaValue* attribute, bool case_sensitive,
                    bool reversed, JinjaBudget& budget) {
  std::vector<std::pair<JinjaValue, JinjaValue>> keyed;
  for (const auto& item : items) {
    auto key = sort_key(item, attribute, case_sensitive, budget);
    if (!key) return key;
    keyed.emplace_back(std::move(*key), item);
  }
  // A pass over neighbours finds every type that cannot be ordered with the first one's; after it
  // the order is total, which std::stable_sort relies on.
  for (std::size_t i = 1; i < keyed.size(); ++i) {
    const auto& first = keyed[0].first;
    const auto& other = keyed[i].first;
    const bool scalar = first.text() != nullptr || first.number();
    if (!scalar || !jinja_compare(first, other, budget)) {
      return fail("cannot sort " + std::string{other.type_name()} + " with " +
                  std::string{first.type_name()});
    }
    if (other.get<double>() != nullptr && std::isnan(*other.get<double>())) {
      return fail("cannot sort a number that is not one");
    }
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    const int order = jinja_compare(a.first, b.first, budget).value_or(0);
    return reversed ? order > 0 : order < 0;
  });
  JinjaList out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return JinjaValue{std::move(out)};
}

JinjaOutcome sort_filter(const JinjaValue& input, const JinjaArguments& arguments,
                         JinjaBudget& budget) {
  DUET_ITEMS(items);
  const auto* reversed = arguments.find(0, "reverse");
  const auto* case_sensitive = arguments.find(1, "case_sensitive");
  return sorted(items, arguments.find(2, "attribute"),
                case_sensitive != nullptr && jinja_true(*case_sensitive),
                reversed != nullptr && jinja_true(*reversed), budget);
}

JinjaOutcome dict_sort(const JinjaValue& input, const JinjaArguments&, JinjaBudget& budget) {
  auto items = dict_items(input, {}, budget);
  if (!items) return items;
  const JinjaValue first{std::int64_t{0}};
  return sorted(*items->list(), &first, false, false, budget);
}

template <bool largest>
JinjaOutcome extreme(const JinjaValue& input, const JinjaArguments& arguments,
                     JinjaBudget& budget) {
  DUET_ITEMS(items);
  if (items.empty()) return JinjaValue::undefined("item of an empty list");
  auto ordered = sorted(items, arguments.find(1, "attribute"), false, largest, budget);
  if (!ordered) return ordered;
  return JinjaValue{ordered->list()->front()};
}

JinjaOutcome unique(const JinjaValue& input, const JinjaArguments& arguments, JinjaBudget& budget) {
  DUET_ITEMS(items);
  JinjaList keys;
  JinjaList out;
  for (const auto& item : items) {
    auto key = sort_key(item, arguments.find(1, "attribute"), false, budget);
    if (!key) return key;
    const bool seen = std::any_of(keys.begin(), keys.end(), [&](const JinjaValue& other) {
      return jinja_equal(other, *key, budget);
    });
    if (budget.used_up()) break;
    if (seen) continue;
    keys.push_back(std::move(*key));
    out.push_back(item);
  }
  return JinjaValue{std::move(out)};
}

JinjaArguments arguments_behind(const JinjaArguments& arguments, std::size_t count) {
  JinjaArguments rest;
  const auto& given = arguments.positional;
  if (given.size() > count) {
    rest.positional.assign(given.begin() + static_cast<std::ptrdiff_t>(count), given.end());
  }
  rest.named = arguments.named;
  return rest;
}

JinjaOutcome map(const JinjaValue& input, const JinjaArguments& arguments, JinjaBudget& budget) {
  DUET_ITEMS(items);
  const bool by_filter = !arguments.positional.empty();
  const auto* attribute = arguments.find(SIZE_MAX, "attribute");
  const auto* missing = arguments.find(SIZE_MAX, "default");
  if (!by_filter && attribute == nullptr) return fail("map needs a filter or an attribute");
  const auto* filter = by_filter ? arguments.positional[0].text() : nullptr;
  if (by_filter &&
      (filter == nullptr || !jinja_has_filter(filter->text()) || filter->text() == "map")) {
    return fail("map needs the name of a filter other than map");
  }
  const JinjaArguments rest = arguments_behind(arguments, 1);
  JinjaList out;
  for (const auto& item : items) {
    auto value = by_filter ? jinja_filter(filter->text(), item, rest, budget)
                           : jinja_item(item, *attribute, budget);
    if (!value || budget.used_up()) return value;
    if (!value->storable()) return fail("a namespace or loop cannot be stored in a list");
    out.push_back(value->is_undefined() && missing != nullptr ? *missing : std::move(*value));
  }
  return JinjaValue{std::move(out)};
}

/// select, reject (by a test of the item) and selectattr, rejectattr (of its attribute).
template <bool keep, bool by_attribute>
JinjaOutcome choose(const JinjaValue& input, const JinjaArguments& arguments, JinjaBudget& budget) {
  DUET_ITEMS(items);
  const std::size_t front = by_attribute ? 1 : 0;
  const auto& given = arguments.positional;
  if (given.size() < front) return fail("this filter needs the name of an attribute");
  const auto* test = given.size() > front ? given[front].text() : nullptr;
  if (given.size() > front && (test == nullptr || !jinja_has_test(test->text()))) {
    return fail("this filter needs the name of a test");
  }
  const JinjaArguments rest = arguments_behind(arguments, front + 1);
  JinjaList out;
  for (const auto& item : items) {
    JinjaValue value = item;
    if (by_attribute) {
      auto found = jinja_item(item, given[0], budget);
      if (!found) return found;
      value = std::move(*found);
    }
    bool chosen = jinja_true(value);
    if (test != nullptr) {
      auto answer = jinja_test(test->text(), value, rest, budget);
      if (!answer) return answer;
      chosen = jinja_true(*answer);
    }
    if (!budget.spend(1)) break;
    if (chosen == keep) out.push_back(item);
  }
  return JinjaValue{std::move(out)};
}

#undef DUET_ITEMS

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

constexpr std::array<NamedFilter, 32> filters = {{
    {"abs", absolute},
    {"capitalize", change_case<LetterCase::capitalized>},
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", dict_sort},
    {"first", end_item<true>},
    {"float", to_float},
    {"int", to_integer},
    {"items", dict_items},
    {"join", join},
    {"last", end_item<false>},
    {"length", length},
    {"list", to_list},
    {"lower", change_case<LetterCase::lower>},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", choose<false, false>},
    {"rejectattr", choose<false, true>},
    {"replace", replace_filter},
    {"reverse", reverse},
    {"safe", same},
    {"select", choose<true, false>},
    {"selectattr", choose<true, true>},
    {"sort", sort_filter},
    {"string", to_string},
    {"title", change_case<LetterCase::title>},
    {"tojson", to_json},
    {"trim", trim},
    {"unique", unique},
    {"upper", change_case<LetterCase::upper>},
}};

const NamedFilter* find_filter(std::string_view name) noexcept {
  for (const auto& filter : filters) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

}   // namespace

bool jinja_has_filter(std::string_view name) noexcept {
  return find_filter(name) != nullptr;
}

JinjaOutcome jinja_filter(std::string_view name, const JinjaValue& input,
                          const JinjaArguments& arguments, JinjaBudget& budget) {
  const NamedFilter* filter = find_filter(name);
  if (filter == nullptr) return fail("this filter is not known");
  return filter->filter(input, arguments, budget);
}

}   // namespace duet::text
