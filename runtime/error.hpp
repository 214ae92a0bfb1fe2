// error.hpp: what can go wrong between actors, as error codes.
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/is_error_code_enum.hpp>

#include <type_traits>

namespace duet::runtime {

enum class errc {
  overloaded = 1,   ///< A bound was reached (mailbox, compute queue); retry later.
  receiver_gone,    ///< The receiver has ended, or drops what it was sent; do not retry on it.
  timed_out,        ///< The deadline passed first.
  cancelled,        ///< The one who waited was stopped, or a race with another wait was lost.
};

[[nodiscard]] const boost::system::error_category& error_category() noexcept;

[[nodiscard]] inline boost::system::error_code make_error_code(errc value) noexcept {
  return {static_cast<int>(value), error_category()};
}

}   // namespace duet::runtime

template <>
struct boost::system::is_error_code_enum<duet::runtime::errc> : std::true_type {};
