// jinja_methods.cpp: the methods that chat templates call on texts, dicts and loops.
#include "text/jinja_builtins.hpp"
#include "text/jinja_text.hpp"

#include <algorithm>
#include <optional>

namespace duet::text {
namespace {

JinjaFailure fail(std::string message) {
  return {errc::template_failed, std::move(message)};
}

JinjaFailure no_method(const JinjaValue& object, std::string_view name) {
  return fail(std::string{object.type_name()} + " has no method '" +
              std::string{name.substr(0, 32)} + "' here");
}

/// An optional argument that must be a text; none means that it was not given.
boost::system::result<const TemplatedText*, JinjaFailure> text_argument(
    const JinjaArguments& arguments, std::size_t position, std::string_view name) {
  const auto* value = arguments.find(position, name);
  if (value == nullptr || value->is_none()) return nullptr;
  if (value->text() == nullptr) {
    return fail("argument '" + std::string{name} + "' must be a text, not " +
                std::string{value->type_name()});
  }
  return value->text();
}

JinjaOutcome starts_or_ends(const TemplatedText& text, bool starts, const JinjaArguments& arguments,
                            JinjaBudget& budget) {
  const auto* wanted = arguments.find(0, "prefix");
  if (wanted == nullptr) return fail("startswith and endswith need a text");
  JinjaList alone;
  if (wanted->text() != nullptr) alone.push_back(*wanted);
  const JinjaList& choices = wanted->is_tuple() ? *wanted->list() : alone;
  if (choices.empty() && !wanted->is_tuple()) {
    return fail("startswith and endswith need a text, not " + std::string{wanted->type_name()});
  }
  for (const auto& choice : choices) {
    if (choice.text() == nullptr) return fail("startswith and endswith need texts");
    const std::string& affix = choice.text()->text();
    if (!budget.spend_bytes(affix.size())) break;
    const std::string_view all = text.text();
    if (starts ? all.starts_with(affix) : all.ends_with(affix)) return JinjaValue{true};
  }
  return JinjaValue{false};
}

JinjaOutcome split_method(const TemplatedText& text, bool from_right,
                          const JinjaArguments& arguments, JinjaBudget& budget) {
  auto separator = text_argument(arguments, 0, "sep");
  if (!separator) return separator.error();
  if (*separator != nullptr && (*separator)->empty()) return fail("the separator is empty");
  const auto* limit = arguments.find(1, "maxsplit");
  const std::int64_t splits_max = limit == nullptr ? -1 : limit->integer().value_or(-1);
  return JinjaValue{split(text, *separator, splits_max, from_right, budget)};
}

JinjaOutcome replace_method(const TemplatedText& text, const JinjaArguments& arguments,
                            JinjaBudget& budget) {
  auto from = text_argument(arguments, 0, "old");
  auto to = text_argument(arguments, 1, "new");
  if (!from || !to) return from ? to.error() : from.error();
  if (*from == nullptr || *to == nullptr) return fail("replace needs two texts");
  const auto* count = arguments.find(2, "count");
  const std::int64_t count_max = count == nullptr ? -1 : count->integer().value_or(-1);
  return JinjaValue{replace(text, **from, **to, count_max, budget)};
}

JinjaOutcome find_method(const TemplatedText& text, std::string_view name,
                         const JinjaArguments& arguments, JinjaBudget& budget) {
  auto wanted = text_argument(arguments, 0, "sub");
  if (!wanted) return wanted.error();
  if (*wanted == nullptr) return fail("find and count need a text");
  const std::string_view all = text.text();
  const std::string_view part = (*wanted)->text();
  std::int64_t result = -1;
  if (name == "count") {
    result = 0;
    if (part.empty()) return JinjaValue{static_cast<std::int64_t>(character_count(all) + 1)};
    for (auto at = find_text(all, part); at != all.npos; at = find_text(all, part, at)) {
      ++result;
      at += part.size();
    }
  } else {
    // The last place is searched from the right, which may compare the whole part at each.
    if (name == "rfind" && !budget.spend((1 + all.size() / 16) * (1 + part.size() / 64))) {
      return JinjaValue{};
    }
    const auto at = name == "find" ? find_text(all, part) : all.rfind(part);
    if (at != all.npos) result = static_cast<std::int64_t>(character_count(all.substr(0, at)));
  }
  return JinjaValue{result};
}

JinjaOutcome text_method(const JinjaValue& object, std::string_view name,
                         const JinjaArguments& arguments, JinjaBudget& budget) {
  const TemplatedText& text = *object.text();
  if (!budget.spend_bytes(text.size())) return JinjaValue{};
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    auto set = text_argument(arguments, 0, "chars");
    if (!set) return set.error();
    return JinjaValue{strip(text, *set, name != "rstrip", name != "lstrip")};
  }
  if (name == "startswith") return starts_or_ends(text, true, arguments, budget);
  if (name == "endswith") return starts_or_ends(text, false, arguments, budget);
  if (name == "split") return split_method(text, false, arguments, budget);
  if (name == "rsplit") return split_method(text, true, arguments, budget);
  if (name == "upper") return JinjaValue{with_case(text, LetterCase::upper)};
  if (name == "lower") return JinjaValue{with_case(text, LetterCase::lower)};
  if (name == "title") return JinjaValue{with_case(text, LetterCase::title)};
  if (name == "capitalize") return JinjaValue{with_case(text, LetterCase::capitalized)};
  if (name == "replace") return replace_method(text, arguments, budget);
  if (name == "find" || name == "rfind" || name == "count") {
    return find_method(text, name, arguments, budget);
  }
  if (name == "splitlines") {
    const auto* keep = arguments.find(0, "keepends");
    return JinjaValue{split_lines(text, keep != nullptr && jinja_true(*keep), budget)};
  }
  if (name == "join") {
    JinjaArguments separator;
    separator.positional.push_back(object);
    const auto* items = arguments.find(0, "iterable");
    if (items == nullptr) return fail("join needs a list");
    auto listed = jinja_iterate(*items, budget);
    if (!listed) return listed.error();
    for (const auto& item : **listed) {
      if (item.text() == nullptr) return fail("join needs a list of texts");
    }
    return jinja_filter("join", *items, separator, budget);
  }
  return no_method(object, name);
}

JinjaOutcome dict_method(const JinjaValue& object, std::string_view name,
                         const JinjaArguments& arguments, JinjaBudget& budget) {
  const JinjaDict& dict = *object.dict();
  if (!budget.spend(1 + dict.entries.size())) return JinjaValue{};
  if (name == "get") {
    const auto* key = arguments.find(0, "key");
    if (key == nullptr) return fail("get needs a key");
    const auto* missing = arguments.find(1, "default");
    const auto* value = key->text() == nullptr ? nullptr : dict.find(key->text()->text());
    if (value != nullptr) return *value;
    return missing == nullptr ? JinjaValue{JinjaValue::None{}} : *missing;
  }
  JinjaList out;
  for (const auto& [key, value] : dict.entries) {
    if (name == "values") {
      out.push_back(value);
      continue;
    }
    if (!budget.spend_bytes(key.size() + 64)) break;
    if (name == "keys") {
      out.emplace_back(key);
    } else if (name == "items") {
      JinjaList pair;
      pair.emplace_back(key);
      pair.push_back(value);
      out.push_back(JinjaValue::tuple(std::move(pair)));
    } else {
      return no_method(object, name);
    }
  }
  if (name != "values" && name != "keys" && name != "items") return no_method(object, name);
  return JinjaValue{std::move(out)};
}

}   // namespace

JinjaOutcome jinja_method(const JinjaValue& object, std::string_view name,
                          const JinjaArguments& arguments, JinjaBudget& budget) {
  if (object.text() != nullptr) return text_method(object, name, arguments, budget);
  if (object.dict() != nullptr) return dict_method(object, name, arguments, budget);
  if (const auto* loop = object.get<JinjaValue::LoopRef>(); loop != nullptr && name == "cycle") {
    const auto& choices = arguments.positional;
    if (choices.empty()) return fail("loop.cycle() needs values");
    return choices[(*loop)->index0 % choices.size()];
  }
  if (const auto* missing = object.get<JinjaValue::Undefined>()) {
    return fail("'" + missing->name.substr(0, 64) + "' is undefined");
  }
  return no_method(object, name);
}

}   // namespace duet::text
