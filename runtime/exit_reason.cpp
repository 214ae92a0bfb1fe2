// exit_reason.cpp: the texts of exit reasons.
#include "runtime/exit_reason.hpp"

namespace duet::runtime {

const char* to_string(ExitKind kind) noexcept {
  switch (kind) {
    case ExitKind::running:
      return "running";
    case ExitKind::finished:
      return "finished";
    case ExitKind::stopped:
      return "stopped";
    case ExitKind::failed:
      return "failed";
    case ExitKind::killed:
      return "killed";
    case ExitKind::gone:
      return "gone";
  }
  return "unknown";
}

std::string ExitReason::text() const {
  if (exception_ == nullptr) return to_string(kind_);
  try {
    std::rethrow_exception(exception_);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}   // namespace duet::runtime
