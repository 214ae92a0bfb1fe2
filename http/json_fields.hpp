// json_fields.hpp: reads the fields of one JSON object with strict types and remembers the first
// error.
#pragma once

#include "actors/error.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace duet::http {

struct IntegerRange {
  std::int64_t min;
  std::int64_t max;
};

struct NumberRange {
  double min;
  double max;
};

/// "a string", "an object" and so on, for messages.
[[nodiscard]] std::string_view type_name(const boost::json::value& value) noexcept;

/// The value as an integer: a number without fraction. Null: it is none, or beyond 64 signed bits.
[[nodiscard]] std::optional<std::int64_t> as_integer(const boost::json::value& value) noexcept;

[[nodiscard]] actors::ServiceError bad_field(std::string param, std::string_view what);

/// Each reader leaves its target alone when the field is absent or null, and does nothing after an
/// error. It keeps references to object and error, which outlive it.
class JsonFields {
 public:
  JsonFields(const boost::json::object& object, std::optional<actors::ServiceError>& error,
             std::string prefix = {})
      : object_(object), error_(error), prefix_(std::move(prefix)) {}

  /// Null: absent, null, or an error before.
  [[nodiscard]] const boost::json::value* find(std::string_view name) const noexcept;

  void boolean(std::string_view name, bool& target) const;
  void integer(std::string_view name, IntegerRange range,
               std::optional<std::int64_t>& target) const;
  void number(std::string_view name, NumberRange range, std::optional<double>& target) const;
  void string(std::string_view name, std::optional<std::string>& target) const;

  void fail(std::string_view name, std::string_view what) const;   ///< only the first counts.
  [[nodiscard]] bool failed() const noexcept { return error_.has_value(); }
  [[nodiscard]] std::string path(std::string_view name) const;

 private:
  const boost::json::object& object_;
  std::optional<actors::ServiceError>& error_;
  std::string prefix_;   // of nested objects: "stream_options."
};

}   // namespace duet::http
