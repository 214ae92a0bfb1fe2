// message.hpp: small helpers for error texts: results with a sentence, quoting of foreign names,
// UTF-8 checks.
#pragma once

#include <boost/assert/source_location.hpp>
#include <boost/system/result.hpp>

#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace duet::device {

/// One sentence that names the file, the place and what to do. A type of its own, so that
/// Result<std::string> is possible.
struct Error {
  // Declared, so that it is no aggregate: a text must not turn into an Error by itself.
  Error() = default;
  std::string message;
};

/// A value or an Error. result::value() throws std::runtime_error with the message.
template <typename T>
using Result = boost::system::result<T, Error>;

[[noreturn]] void throw_exception_from_error(const Error& error,
                                             const boost::source_location& where);

/// `text` between single quotes, with control characters and bytes that are not ASCII as \xNN, cut
/// after 80 bytes: a foreign name can neither break a line of a report nor fill it.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// True if `text` is well-formed UTF-8 (RFC 3629: no overlong form, no surrogate, at most
/// U+10FFFF).
[[nodiscard]] bool is_utf8(std::string_view text);

/// True if `text` is a name that this format takes: 1..128 of A-Z a-z 0-9 . _ - and not starting
/// with a dot or a dash.
[[nodiscard]] bool is_plain_name(std::string_view text);

/// Joins the parts with operator<<.
template <typename... T>
[[nodiscard]] std::string concat(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

/// An Error of the joined parts.
template <typename... T>
[[nodiscard]] Error failure(const T&... parts) {
  Error error;
  error.message = concat(parts...);
  return error;
}

}   // namespace duet::device
