// limits.hpp: the bounds of the session contract, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

namespace duet::device::limits {

/// Prefill and decode, ping and pong, and the same again for a job that never came back.
inline constexpr std::uint32_t io_buffers_max = 8;

/// Two engines; a third job would only wait in a queue that we cannot see.
inline constexpr std::uint32_t inflight_per_chip_max = 2;

/// Intervals kept until take_trace: four a job, so 16 Ki jobs, 2.5 MiB.
inline constexpr std::size_t trace_events_max = 65536;

/// Jobs a chip that never came back and whose memory is kept: at eight, more is broken than a job.
inline constexpr std::uint32_t quarantine_max = 8;

/// Life-cycle calls waiting behind a running one: a supervisor makes one at a time, tools a
/// handful.
inline constexpr std::size_t calls_queued_max = 64;

}   // namespace duet::device::limits
