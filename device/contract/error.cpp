// error.cpp: the error category of device/, one sentence a value, and the failed-result exception.
#include "device/contract/error.hpp"

#include <boost/throw_exception.hpp>

#include <stdexcept>

namespace duet::device {
namespace {

const char* sentence(errc value) noexcept {
  switch (value) {
    case errc::board_in_use:
      return "another process owns the board";
    case errc::not_open:
      return "the device is not open";
    case errc::wrong_state:
      return "the call does not belong at this point of the life cycle";
    case errc::already_configured:
      return "a configuration is active and must be reset first";
    case errc::package_invalid:
      return "the package cannot be loaded or configured";
    case errc::unknown_name:
      return "nothing of that name or number exists";
    case errc::bad_argument:
      return "an argument is outside what the manifest allows";
    case errc::out_of_memory:
      return "the chip's memory or the quota does not hold it";
    case errc::kv_exhausted:
      return "no key/value slot or position is left";
    case errc::queue_full:
      return "the limit of jobs in flight is reached";
    case errc::device_busy:
      return "the device refuses for now";
    case errc::wait_timeout:
      return "the job did not end before its deadline";
    case errc::ccu_exception:
      return "a CalCore stopped with an exception";
    case errc::bad_output:
      return "the output is not finite or out of range";
    case errc::cancelled:
      return "the job was cancelled before it started";
    case errc::stale_generation:
      return "the session was reset or reloaded since";
    case errc::drain_timeout:
      return "jobs were still running at the drain's deadline";
    case errc::reset_failed:
      return "the reset did not succeed";
    case errc::driver_lost:
      return "the driver does not answer";
    case errc::draining:
      return "the session takes no new jobs";
    case errc::call_timeout:
      return "the call did not end by its deadline";
    case errc::unsupported:
      return "this runtime cannot do it";
  }
  return "unknown device error";
}

// Boost gives the base a non-virtual destructor on purpose: categories are constants that nobody
// deletes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class DeviceCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "duet.device"; }
  std::string message(int value) const override { return sentence(static_cast<errc>(value)); }
  // The non-allocating form, for logs written where memory may be short.
  const char* message(int value, char*, std::size_t) const noexcept override {
    return sentence(static_cast<errc>(value));
  }
};
#pragma GCC diagnostic pop

}   // namespace

const boost::system::error_category& device_category() noexcept {
  static const DeviceCategory category;
  return category;
}

boost::system::error_code make_error_code(errc value) noexcept {
  return {static_cast<int>(value), device_category()};
}

void throw_exception_from_error(const Failure& failure, const boost::source_location& where) {
  std::string what = sentence(failure.code);
  if (!failure.detail.empty()) {
    what += ": ";
    what += failure.detail;
  }
  boost::throw_exception(std::logic_error{what}, where);
}

}   // namespace duet::device
