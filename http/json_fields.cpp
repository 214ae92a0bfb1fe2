// json_fields.cpp: strict types and their error messages.
#include "http/json_fields.hpp"

#include "http/json_text.hpp"

#include <boost/json/string.hpp>

#include <cmath>
#include <limits>
#include <utility>

namespace duet::http {

namespace json = boost::json;

namespace {

std::string range_text(std::string_view kind, const std::string& min, const std::string& max) {
  std::string text = "must be ";
  text += kind;
  text += " from " + min + " to " + max;
  return text;
}

std::string number_text(double value) {
  std::string text;
  append_number(text, value);
  return text;
}

}   // namespace

std::string_view type_name(const json::value& value) noexcept {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      break;
  }
  return "an object";
}

std::optional<std::int64_t> as_integer(const json::value& value) noexcept {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) {
    if (value.get_uint64() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return static_cast<std::int64_t>(value.get_uint64());
  }
  if (!value.is_double()) return std::nullopt;
  const double number = value.get_double();
  // Within 2^53 each double without fraction is exactly one integer.
  if (!(std::abs(number) <= 0x1p53) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

actors::ServiceError bad_field(std::string param, std::string_view what) {
  std::string message = "'" + param + "' ";
  message += what;
  return {actors::errc::bad_request, std::move(message), std::move(param)};
}

const json::value* JsonFields::find(std::string_view name) const noexcept {
  if (error_) return nullptr;
  const json::value* const value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void JsonFields::boolean(std::string_view name, bool& target) const {
  const json::value* const value = find(name);
  if (value == nullptr) return;
  if (!value->is_bool()) {
    std::string what = "must be true or false, not ";
    what += type_name(*value);
    return fail(name, what);
  }
  target = value->get_bool();
}

void JsonFields::integer(std::string_view name, IntegerRange range,
                         std::optional<std::int64_t>& target) const {
  const json::value* const value = find(name);
  if (value == nullptr) return;
  const std::optional<std::int64_t> number = as_integer(*value);
  if (!number || *number < range.min || *number > range.max) {
    std::string what =
        range_text("an integer", std::to_string(range.min), std::to_string(range.max));
    if (!value->is_number()) (what += ", not ") += type_name(*value);
    return fail(name, what);
  }
  target = number;
}

void JsonFields::number(std::string_view name, NumberRange range,
                        std::optional<double>& target) const {
  const json::value* const value = find(name);
  if (value == nullptr) return;
  if (!value->is_number()) {
    std::string what = range_text("a number", number_text(range.min), number_text(range.max));
    (what += ", not ") += type_name(*value);
    return fail(name, what);
  }
  const auto number = value->to_number<double>();
  // Written so that a NaN would fail it too.
  if (!(number >= range.min && number <= range.max)) {
    return fail(name, range_text("a number", number_text(range.min), number_text(range.max)));
  }
  target = number;
}

void JsonFields::string(std::string_view name, std::optional<std::string>& target) const {
  const json::value* const value = find(name);
  if (value == nullptr) return;
  if (!value->is_string()) {
    std::string what = "must be a string, not ";
    what += type_name(*value);
    return fail(name, what);
  }
  target.emplace(value->get_string());
}

void JsonFields::fail(std::string_view name, std::string_view what) const {
  if (!error_) error_ = bad_field(path(name), what);
}

std::string JsonFields::path(std::string_view name) const {
  std::string full = prefix_;
  full += name;
  return full;
}

}   // namespace duet::http
