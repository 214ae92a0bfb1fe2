// time.hpp: the one monotonic time of the whole program.
#pragma once

#include <chrono>

namespace duet::runtime {

using Duration = std::chrono::nanoseconds;

/// Monotonic. Real time counts from the start of the machine, simulated time from the start of the
/// run.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Time of day, for log records and the `created` fields of answers; never for measuring.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

}   // namespace duet::runtime
