// jinja_builtins.cpp: access to values, and the tests and functions of chat templates.
#include "text/jinja_builtins.hpp"

#include "text/jinja_text.hpp"
#include "text/limits.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace duet::text {
namespace {

JinjaFailure fail(std::string message) {
  return {errc::template_failed, std::move(message)};
}

JinjaValue flag(bool value) {
  return JinjaValue{value};
}

constexpr std::array<std::string_view, 27> tests = {
    "boolean",  "defined", "divisibleby", "eq",        "equalto", "even",     "false",
    "float",    "ge",      "gt",          "in",        "integer", "iterable", "le",
    "lower",    "lt",      "mapping",     "ne",        "none",    "number",   "odd",
    "sequence", "string",  "true",        "undefined", "upper",   "sameas"};

/// `loop.name`, or nothing when a loop has no such attribute.
std::optional<JinjaValue> loop_attribute(const JinjaLoop& loop, std::string_view name) {
  const auto number = [](std::size_t value) {
    return JinjaValue{static_cast<std::int64_t>(value)};
  };
  const std::size_t size = loop.items->size();
  if (name == "index") return number(loop.index0 + 1);
  if (name == "index0") return number(loop.index0);
  if (name == "revindex") return number(size - loop.index0);
  if (name == "revindex0") return number(size - loop.index0 - 1);
  if (name == "first") return flag(loop.index0 == 0);
  if (name == "last") return flag(loop.index0 + 1 == size);
  if (name == "length") return number(size);
  if (name == "previtem" && loop.index0 > 0) return (*loop.items)[loop.index0 - 1];
  if (name == "nextitem" && loop.index0 + 1 < size) return (*loop.items)[loop.index0 + 1];
  return std::nullopt;
}

/// Python's slice.indices(): the first index and how many.
struct SliceRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::size_t count = 0;
};

std::optional<SliceRange> slice_range(std::int64_t size, const JinjaValue& start,
                                      const JinjaValue& stop, const JinjaValue& step) {
  SliceRange range;
  const auto whole = [](const JinjaValue& value) { return value.is_none() || value.integer(); };
  if (!whole(start) || !whole(stop) || !whole(step)) return std::nullopt;
  range.step = step.integer().value_or(1);
  if (range.step == 0) return std::nullopt;
  range.step = std::clamp<std::int64_t>(range.step, -(size + 1), size + 1);
  const std::int64_t low = range.step > 0 ? 0 : -1;
  const std::int64_t high = range.step > 0 ? size : size - 1;
  const auto bound = [&](const JinjaValue& value, std::int64_t missing) {
    if (value.is_none()) return missing;
    const std::int64_t index = *value.integer();
    return std::clamp(index < 0 ? std::max(index, -size - 1) + size : index, low, high);
  };
  range.start = bound(start, range.step > 0 ? low : high);
  const std::int64_t end = bound(stop, range.step > 0 ? high : low);
  const std::int64_t distance = range.step > 0 ? end - range.start : range.start - end;
  const std::int64_t step_size = range.step > 0 ? range.step : -range.step;
  if (distance > 0) range.count = static_cast<std::size_t>((distance - 1) / step_size + 1);
  return range;
}

JinjaOutcome make_range(const JinjaArguments& arguments, JinjaBudget& budget) {
  std::array<std::int64_t, 3> parts{0, 0, 1};
  const std::size_t count = arguments.positional.size();
  if (count < 1 || count > 3) return fail("range() takes one to three numbers");
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = arguments.positional[i].integer();
    if (!number) return fail("range() takes integers");
    parts[count == 1 ? 1 : i] = *number;
  }
  const auto [start, stop, step] = parts;
  if (step == 0) return fail("the step of range() is 0");
  JinjaList list;
  for (std::int64_t value = start; step > 0 ? value < stop : value > stop;) {
    if (list.size() >= limits::template_list_max) {
      return JinjaFailure{errc::template_limit, "range() is too long"};
    }
    if (!budget.spend(4)) break;
    list.emplace_back(value);
    if (__builtin_add_overflow(value, step, &value)) break;
  }
  return JinjaValue{std::move(list)};
}

JinjaOutcome named_values(const JinjaArguments& arguments, JinjaDict& into) {
  if (!arguments.positional.empty()) return fail("only named arguments are supported here");
  for (const auto& [name, value] : arguments.named) {
    if (!value.storable()) return fail("a namespace or loop cannot be stored in another value");
    into.set(TemplatedText{name, Origin::markup}, value);
  }
  return JinjaValue{};
}

std::optional<bool> test_type(std::string_view name, const JinjaValue& input) {
  const bool text = input.text() != nullptr;
  const bool integer = input.get<std::int64_t>() != nullptr;
  const bool floating = input.get<double>() != nullptr;
  const bool boolean = input.get<bool>() != nullptr;
  const bool list = input.list() != nullptr;
  const bool dict = input.dict() != nullptr;
  if (name == "defined") return !input.is_undefined();
  if (name == "undefined") return input.is_undefined();
  if (name == "none") return input.is_none();
  if (name == "boolean") return boolean;
  if (name == "true") return boolean && jinja_true(input);
  if (name == "false") return boolean && !jinja_true(input);
  if (name == "integer") return integer;
  if (name == "float") return floating;
  if (name == "number") return integer || floating || boolean;
  if (name == "string") return text;
  if (name == "mapping") return dict;
  // Python's Undefined and loop can be iterated; a loop has no length and so is no sequence here.
  if (name == "sequence") return text || list || dict || input.is_undefined();
  if (name == "iterable") {
    return text || list || dict || input.is_undefined() ||
           input.get<JinjaValue::LoopRef>() != nullptr;
  }
  return std::nullopt;
}

}   // namespace

const JinjaValue* JinjaArguments::find(std::size_t position, std::string_view name) const noexcept {
  if (position < positional.size()) return &positional[position];
  for (const auto& argument : named) {
    if (argument.first == name) return &argument.second;
  }
  return nullptr;
}

bool jinja_has_test(std::string_view name) noexcept {
  return std::find(tests.begin(), tests.end(), name) != tests.end();
}

JinjaOutcome jinja_test(std::string_view name, const JinjaValue& input,
                        const JinjaArguments& arguments, JinjaBudget& budget) {
  if (const auto answer = test_type(name, input)) return flag(*answer);
  if (name == "even" || name == "odd") {
    const auto number = input.integer();
    if (!number) return fail("the test '" + std::string{name} + "' needs an integer");
    return flag((*number % 2 == 0) == (name == "even"));
  }
  if (name == "lower" || name == "upper") {
    const TemplatedText text = jinja_text(input, budget);
    const auto wanted = name == "lower" ? LetterCase::lower : LetterCase::upper;
    const auto other = name == "lower" ? LetterCase::upper : LetterCase::lower;
    return flag(with_case(text, wanted).text() == text.text() &&
                with_case(text, other).text() != text.text());
  }
  const JinjaValue* argument = arguments.find(0, "other");
  if (argument == nullptr) return fail("the test '" + std::string{name} + "' needs an argument");
  if (name == "eq" || name == "equalto") return flag(jinja_equal(input, *argument, budget));
  if (name == "ne") return flag(!jinja_equal(input, *argument, budget));
  if (name == "in") return jinja_contains(*argument, input, budget);
  if (name == "sameas") {
    return flag(input.type_name() == argument->type_name() &&
                jinja_equal(input, *argument, budget));
  }
  if (name == "divisibleby") {
    const auto number = input.integer();
    const auto divisor = argument->integer();
    if (!number || !divisor || *divisor == 0) return fail("divisibleby needs two integers");
    return flag(*divisor == -1 || *number % *divisor == 0);
  }
  const auto order = jinja_compare(input, *argument, budget);
  if (!order) {
    return fail("cannot compare " + std::string{input.type_name()} + " with " +
                std::string{argument->type_name()});
  }
  if (name == "lt") return flag(*order < 0);
  if (name == "le") return flag(*order <= 0);
  if (name == "gt") return flag(*order > 0);
  return flag(*order >= 0);
}

JinjaOutcome jinja_function(JinjaFunction function, const JinjaArguments& arguments,
                            JinjaBudget& budget) {
  switch (function) {
    case JinjaFunction::raise_exception: {
      const JinjaValue* message = arguments.find(0, "message");
      TemplatedText text;
      if (message != nullptr) jinja_print(*message, budget, text);
      return JinjaFailure{errc::template_raised, text.text().substr(0, 1024)};
    }
    case JinjaFunction::range:
      return make_range(arguments, budget);
    case JinjaFunction::make_namespace: {
      auto made = std::make_shared<JinjaValue::Namespace>();
      if (auto stored = named_values(arguments, made->attributes); !stored) return stored;
      return JinjaValue{std::move(made)};
    }
    case JinjaFunction::dict: {
      JinjaDict made;
      if (auto stored = named_values(arguments, made); !stored) return stored;
      return JinjaValue{std::move(made)};
    }
  }
  return fail("this function is not known");
}

JinjaOutcome jinja_attribute(const JinjaValue& object, std::string_view name, JinjaBudget& budget) {
  const JinjaDict* dict = object.dict();
  if (const auto* space = object.get<JinjaValue::NamespaceRef>()) dict = &(*space)->attributes;
  if (dict != nullptr) {
    static_cast<void>(budget.spend(1 + dict->entries.size() / 4));
    if (const auto* value = dict->find(name)) return *value;
  } else if (const auto* loop = object.get<JinjaValue::LoopRef>()) {
    if (auto value = loop_attribute(**loop, name)) return std::move(*value);
  } else if (const auto* missing = object.get<JinjaValue::Undefined>()) {
    return fail("'" + missing->name.substr(0, 64) + "' is undefined");
  }
  return JinjaValue::undefined(name);
}

JinjaOutcome jinja_item(const JinjaValue& object, const JinjaValue& key, JinjaBudget& budget) {
  if (const auto* missing = object.get<JinjaValue::Undefined>()) {
    return fail("'" + missing->name.substr(0, 64) + "' is undefined");
  }
  if (key.text() != nullptr) return jinja_attribute(object, key.text()->text(), budget);
  const auto index = key.integer();
  const auto at = [&](std::size_t size) -> std::optional<std::size_t> {
    const auto wanted = *index < 0 ? *index + static_cast<std::int64_t>(size) : *index;
    if (wanted < 0 || wanted >= static_cast<std::int64_t>(size)) return std::nullopt;
    return static_cast<std::size_t>(wanted);
  };
  if (index && object.list() != nullptr) {
    if (const auto found = at(object.list()->size())) return (*object.list())[*found];
  } else if (index && object.text() != nullptr) {
    const TemplatedText& text = *object.text();
    if (!budget.spend_bytes(text.size())) return JinjaValue{};
    const auto offsets = character_offsets(text.text());
    if (const auto found = at(offsets.size() - 1)) {
      return JinjaValue{text.slice(offsets[*found], offsets[*found + 1])};
    }
  }
  return JinjaValue::undefined("element");
}

JinjaOutcome jinja_slice(const JinjaValue& object, const JinjaValue& start, const JinjaValue& stop,
                         const JinjaValue& step, JinjaBudget& budget) {
  const TemplatedText* text = object.text();
  const JinjaList* list = object.list();
  if (text == nullptr && list == nullptr) {
    return fail("cannot take a slice of " + std::string{object.type_name()});
  }
  if (text != nullptr && !budget.spend_bytes(text->size())) return JinjaValue{};
  const auto offsets = text != nullptr ? character_offsets(text->text()) : std::vector<size_t>{};
  const std::size_t size = text != nullptr ? offsets.size() - 1 : list->size();
  const auto range = slice_range(static_cast<std::int64_t>(size), start, stop, step);
  if (!range) return fail("a slice needs integers, and a step other than 0");
  if (!budget.spend(range->count)) return JinjaValue{};
  if (text != nullptr && range->step == 1) {
    const auto first = static_cast<std::size_t>(range->start);
    return JinjaValue{text->slice(offsets[first], offsets[first + range->count])};
  }
  TemplatedText characters;
  JinjaList items;
  for (std::size_t i = 0; i < range->count; ++i) {
    const auto at =
        static_cast<std::size_t>(range->start + static_cast<std::int64_t>(i) * range->step);
    if (text != nullptr) {
      characters.append(*text, offsets[at], offsets[at + 1]);
    } else {
      items.push_back((*list)[at]);
    }
  }
  return text != nullptr ? JinjaValue{std::move(characters)} : JinjaValue{std::move(items)};
}

boost::system::result<JinjaValue::List, JinjaFailure> jinja_iterate(const JinjaValue& value,
                                                                    JinjaBudget& budget) {
  if (const auto* list = value.get<JinjaValue::List>()) return *list;
  JinjaList items;
  if (const auto* dict = value.dict()) {
    for (const auto& [key, member] : dict->entries) {
      if (!budget.spend_bytes(key.size() + 64)) break;
      items.emplace_back(key);
    }
  } else if (const auto* text = value.text()) {
    const auto offsets = character_offsets(text->text());
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      if (!budget.spend(8)) break;   // each character is an object of its own
      items.emplace_back(text->slice(offsets[i], offsets[i + 1]));
    }
  } else if (!value.is_undefined()) {
    return fail(std::string{value.type_name()} + " cannot be iterated");
  }
  return std::make_shared<const JinjaList>(std::move(items));
}

JinjaOutcome jinja_contains(const JinjaValue& haystack, const JinjaValue& needle,
                            JinjaBudget& budget) {
  if (const auto* text = haystack.text()) {
    if (needle.text() == nullptr) {
      return fail("'in' a text needs a text, not " + std::string{needle.type_name()});
    }
    if (!budget.spend_bytes(text->size())) return JinjaValue{};
    return flag(find_text(text->text(), needle.text()->text()) != std::string::npos);
  }
  if (const auto* list = haystack.list()) {
    return flag(std::any_of(list->begin(), list->end(), [&](const JinjaValue& item) {
      return jinja_equal(item, needle, budget);
    }));
  }
  if (const auto* dict = haystack.dict()) {
    if (!budget.spend(dict->entries.size())) return JinjaValue{};
    return flag(needle.text() != nullptr && dict->find(needle.text()->text()) != nullptr);
  }
  if (haystack.is_undefined()) return flag(false);
  return fail("'in' does not work on " + std::string{haystack.type_name()});
}

}   // namespace duet::text
