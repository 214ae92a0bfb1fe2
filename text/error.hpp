// error.hpp: the errors of text/: a code to act on and one message to show.
#pragma once

#include <boost/system/result.hpp>
#include <boost/throw_exception.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace duet::text {

enum class errc : std::uint8_t {
  tokenizer_invalid = 1,   ///< The tokenizer document is wrong; the package must be made anew.
  text_not_utf8,           ///< The text to encode is not UTF-8; the client must send UTF-8.
  text_too_long,           ///< The text is above limits::text_bytes_max.
  pattern_limit,           ///< The pre-tokenizer gave up at limits::pattern_match_max.
  token_out_of_range,      ///< An id is not in the vocabulary.
  template_invalid,        ///< The chat template cannot be parsed or uses what we do not have.
  template_failed,         ///< The chat template met a value that it cannot work with.
  template_limit,          ///< Rendering went past a limit of limits.hpp.
  template_raised,         ///< The template called raise_exception: the messages are not for it.
  parameter_invalid,       ///< A sampling parameter or stop string is out of its range.
  logits_not_finite,       ///< The model's output holds NaN or an infinity: a fault of the chip.
};

/// The enumerator's name, for logs and metrics.
[[nodiscard]] std::string_view name_of(errc code) noexcept;

struct Error {
  errc code;
  std::string message;        ///< One sentence: what is wrong, where, and what to do.
  std::uint32_t line = 0;     ///< Of the template, from 1; 0 when the error has no place in one.
  std::uint32_t column = 0;   ///< In bytes, from 1.
};

template <typename T>
using Result = boost::system::result<T, Error>;

[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location& where) {
  boost::throw_exception(std::runtime_error(error.message), where);
}

}   // namespace duet::text
