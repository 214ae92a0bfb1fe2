// names.cpp: the words for enumerations of the service, for logs, metrics and error objects.
#include "actors/error.hpp"
#include "actors/service.hpp"

#include "runtime/assert.hpp"

namespace duet::actors {

const char* to_string(errc code) noexcept {
  switch (code) {
    case errc::bad_request:
      return "bad_request";
    case errc::model_not_found:
      return "model_not_found";
    case errc::request_not_found:
      return "request_not_found";
    case errc::request_exists:
      return "request_exists";
    case errc::quota_exceeded:
      return "quota_exceeded";
    case errc::overloaded:
      return "overloaded";
    case errc::unavailable:
      return "unavailable";
    case errc::deadline_exceeded:
      return "deadline_exceeded";
    case errc::cancelled:
      return "cancelled";
    case errc::reader_too_slow:
      return "reader_too_slow";
    case errc::device_fault:
      return "device_fault";
    case errc::internal:
      return "internal";
  }
  DUET_UNREACHABLE();
}

const char* to_string(WorkerState state) noexcept {
  switch (state) {
    case WorkerState::unloaded:
      return "unloaded";
    case WorkerState::validating:
      return "validating";
    case WorkerState::configuring:
      return "configuring";
    case WorkerState::warming:
      return "warming";
    case WorkerState::ready:
      return "ready";
    case WorkerState::draining:
      return "draining";
    case WorkerState::unloading:
      return "unloading";
    case WorkerState::recovering:
      return "recovering";
    case WorkerState::failed:
      return "failed";
  }
  DUET_UNREACHABLE();
}

}   // namespace duet::actors
