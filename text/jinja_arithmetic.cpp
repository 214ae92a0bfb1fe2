// jinja_arithmetic.cpp: Python's arithmetic on numbers, texts and lists.
#include "text/jinja_builtins.hpp"
#include "text/limits.hpp"

#include <cmath>

namespace duet::text {
namespace {

JinjaFailure fail(std::string message) {
  return {errc::template_failed, std::move(message)};
}

JinjaFailure text_too_long() {
  return {errc::template_limit,
          "a text is longer than " + std::to_string(limits::template_output_max) + " bytes"};
}

JinjaOutcome floats(std::string_view operation, double a, double b) {
  if (operation == "+") return JinjaValue{a + b};
  if (operation == "-") return JinjaValue{a - b};
  if (operation == "*") return JinjaValue{a * b};
  if (operation == "**") return JinjaValue{std::pow(a, b)};
  if (b == 0) return fail("division by zero");
  if (operation == "/") return JinjaValue{a / b};
  // Python rounds the quotient down and gives the rest the divisor's sign.
  const double rest = std::fmod(a, b);
  const bool down = rest != 0 && (rest < 0) != (b < 0);
  if (operation == "%") return JinjaValue{down ? rest + b : rest};
  return JinjaValue{std::floor((a - rest) / b + 0.5) - (down ? 1 : 0)};
}

JinjaOutcome integers(std::string_view operation, std::int64_t a, std::int64_t b,
                      JinjaBudget& budget) {
  std::int64_t result = 0;
  bool overflow = false;
  if (operation == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (operation == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (operation == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (operation == "**" && b >= 0) {
    result = 1;
    for (std::int64_t i = 0; i < b && !overflow && budget.spend(1); ++i) {
      overflow = __builtin_mul_overflow(result, a, &result);
    }
  } else if ((operation == "//" || operation == "%") && b != 0) {
    overflow = b == -1 && a == INT64_MIN;
    if (!overflow) {
      const bool down = a % b != 0 && (a % b < 0) != (b < 0);
      result = operation == "%" ? a % b + (down ? b : 0) : a / b - (down ? 1 : 0);
    }
  } else {
    return floats(operation, static_cast<double>(a), static_cast<double>(b));
  }
  if (overflow) return fail("this number is too large");
  return JinjaValue{result};
}

JinjaOutcome repeat(const TemplatedText& text, std::int64_t count, JinjaBudget& budget) {
  TemplatedText out;
  for (std::int64_t i = 0; i < count && !text.empty(); ++i) {
    if (out.size() > limits::template_output_max) return text_too_long();
    if (!budget.spend_bytes(text.size())) break;
    out.append(text);
  }
  return JinjaValue{std::move(out)};
}

JinjaOutcome add_texts(const TemplatedText& left, const TemplatedText& right, JinjaBudget& budget) {
  const std::size_t size = left.size() + right.size();
  if (size > limits::template_output_max) return text_too_long();
  if (!budget.spend_bytes(size)) return JinjaValue{};
  TemplatedText joined;
  joined.append(left);
  joined.append(right);
  return JinjaValue{std::move(joined)};
}

JinjaOutcome add_lists(const JinjaValue& left, const JinjaValue& right, JinjaBudget& budget) {
  if (!budget.spend(left.list()->size() + right.list()->size())) return JinjaValue{};
  JinjaList joined = *left.list();
  joined.insert(joined.end(), right.list()->begin(), right.list()->end());
  return left.is_tuple() ? JinjaValue::tuple(std::move(joined)) : JinjaValue{std::move(joined)};
}

}   // namespace

JinjaOutcome jinja_arithmetic(std::string_view operation, const JinjaValue& left,
                              const JinjaValue& right, JinjaBudget& budget) {
  if (left.integer() && right.integer()) {
    return integers(operation, *left.integer(), *right.integer(), budget);
  }
  if (left.number() && right.number()) return floats(operation, *left.number(), *right.number());
  if (operation == "+" && left.text() != nullptr && right.text() != nullptr) {
    return add_texts(*left.text(), *right.text(), budget);
  }
  if (operation == "+" && left.list() != nullptr && right.list() != nullptr &&
      left.is_tuple() == right.is_tuple()) {
    return add_lists(left, right, budget);
  }
  if (operation == "*" && left.text() != nullptr && right.integer()) {
    return repeat(*left.text(), *right.integer(), budget);
  }
  if (operation == "*" && left.integer() && right.text() != nullptr) {
    return repeat(*right.text(), *left.integer(), budget);
  }
  const auto* missing = left.get<JinjaValue::Undefined>();
  if (missing == nullptr) missing = right.get<JinjaValue::Undefined>();
  if (missing != nullptr) return fail("'" + missing->name.substr(0, 64) + "' is undefined");
  return fail("cannot compute " + std::string{left.type_name()} + " " + std::string{operation} +
              " " + std::string{right.type_name()});
}

JinjaOutcome jinja_sign(bool minus, const JinjaValue& value) {
  if (const auto whole = value.integer(); whole && *whole != INT64_MIN) {
    return JinjaValue{minus ? -*whole : *whole};
  }
  if (const auto* number = value.get<double>()) return JinjaValue{minus ? -*number : *number};
  return fail("a sign before " + std::string{value.type_name()});
}

}   // namespace duet::text
