// error.hpp: what a device call can fail with, and the failure that carries a sentence for a
// person.
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <type_traits>
#include <utility>

namespace duet::device {

/// A value exists only where a caller acts on it differently.
enum class errc {
  board_in_use = 1,   ///< Another process owns the board; nothing was touched.
  not_open,           ///< The device is not open, or was closed.
  wrong_state,   ///< The call does not belong at this point of the life cycle; a fault of ours.
  already_configured,   ///< A configuration is active; it must be reset first. A fault of ours,
                        ///< never a warning.
  package_invalid,      ///< The package cannot be loaded or configured; the device was not changed.
  unknown_name,         ///< No graph, model, session, buffer or job of that name or number.
  bad_argument,    ///< A size, id or position is outside what the manifest allows; refused before
                   ///< the device.
  out_of_memory,   ///< The chip's DRAM or the session's quota does not hold it; nothing was
                   ///< allocated.
  kv_exhausted,    ///< Every key/value slot or position is taken; retry after a release.
  queue_full,      ///< The session's jobs in flight have reached their limit.
  device_busy,     ///< The device refused for now; retry with back-off, no reset needed.
  wait_timeout,    ///< The job did not end before its deadline; its buffers may still be in use by
                   ///< DMA.
  ccu_exception,   ///< A CalCore stopped with an exception; the chip needs a reset.
  bad_output,      ///< The output is not finite or out of range.
  cancelled,       ///< Cancelled before it started, or stopped.
  stale_generation,   ///< The session was reset or reloaded since; the result belongs to nobody.
  drain_timeout,      ///< Jobs were still running at the drain's deadline.
  reset_failed,       ///< The reset did not succeed; a wider one is needed.
  driver_lost,        ///< The driver does not answer; only a restart of the process helps.
  draining,           ///< The session takes no new jobs; expected during a drain.
  call_timeout,       ///< A life-cycle call did not end by its deadline; its thread is lost.
  unsupported,        ///< This runtime cannot do it; Topology says so.
};

[[nodiscard]] const boost::system::error_category& device_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(errc value) noexcept;

/// An error and one sentence that names what it was about. The sentence is for logs and tools,
/// never for branching.
struct Failure {
  Failure() = default;   ///< Only boost::system::result needs it; no failure is made this way.
  Failure(errc error_code, std::string sentence) : code(error_code), detail(std::move(sentence)) {}
  errc code = errc::wrong_state;
  std::string detail;
};

/// What boost::system::result throws if a failed result's value is taken: a broken invariant of
/// ours.
[[noreturn]] void throw_exception_from_error(const Failure& failure,
                                             const boost::source_location& where);

template <typename T>
using result = boost::system::result<T, Failure>;

}   // namespace duet::device

template <>
struct boost::system::is_error_code_enum<duet::device::errc> : std::true_type {};
