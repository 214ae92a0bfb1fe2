// types.hpp: the values that cross the session contract. No pointers into a runtime; all of them
// can be logged.
#pragma once

#include "device/contract/error.hpp"
#include "device/package/manifest.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

/// Host monotonic time; every deadline is absolute on it. Which clock it is, the runtime's Clock
/// decides.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

/// Chip time: nanoseconds since the device was opened, one clock for both chips.
using ChipNanoseconds = std::uint64_t;

using SessionId = std::uint32_t;   ///< 1.. within one open device; never reused.
using Generation =
    std::uint64_t;   ///< of a session: raised by load, unload and every reset that touches it.
using JobId = std::uint64_t;        ///< chosen by the caller, unique within one open device.
using SequenceId = std::uint64_t;   ///< within the model's own range in the manifest.

/// What the runtime promises. A flag that conformance has not shown is only a promise.
struct Topology {
  std::string runtime;   ///< name and version, for reports.
  std::uint32_t chips = 0;
  std::uint32_t cores_per_chip = 0;
  std::uint32_t engines_per_chip = 0;
  std::uint64_t dram_bytes_per_chip = 0;
  bool combined = true;   ///< one current package for the whole board; configure is global.
  bool independent_queues = false;   ///< a chip's queue is never held up by the other's.
  bool session_reset = false;        ///< resetting a session leaves the other chip alone.
  bool chip_reset = false;
  bool cancel_stops_execution = false;   ///< false: a cancel stops delivery only.
  bool wait_deadline = false;            ///< the vendor's wait takes a deadline.
  bool per_chip_memory = false;          ///< memory figures are a chip's own, not the board's.
  std::uint32_t inflight_per_chip_max = 1;
};

/// A graph as the runtime reports it after load, to be compared with the manifest.
struct LoadedGraph {
  std::string name;
  std::vector<std::uint32_t> target_chips;
  ChipMode mode = ChipMode::schip;
};

struct ChipSessionOptions {
  std::uint32_t chip = 0;
  std::uint64_t dram_quota_bytes = 0;   ///< 0: what the manifest reserves for the chip.
  std::uint64_t sram_quota_bytes = 0;   ///< 0: the runtime's default.
  std::uint32_t inflight_max = 1;       ///< 2 needs verified separate buffers and ping/pong.
};

/// The staging of one job, in host memory that the device can reach. The creator keeps it until the
/// job's completion.
struct IoBuffers {
  std::uint64_t id = 0;              ///< 0: none.
  std::span<std::uint32_t> tokens;   ///< input: token ids, tokens_max of the graph.
  std::span<float> logits;           ///< output: one F32 a token of the vocabulary.
};

struct JobRequest {
  JobId job = 0;
  SessionId session = 0;
  Generation generation = 0;   ///< refused as stale if it is not the session's.
  GraphKind graph = GraphKind::decode;
  Engine engine = Engine::automatic;
  SequenceId sequence = 0;
  std::uint32_t past = 0;   ///< committed positions of the sequence; must equal the device's count.
  std::uint32_t tokens = 0;   ///< 1..tokens_max, taken from `buffers.tokens`; reserved before.
  IoBuffers buffers;          ///< not shared with any job in flight.
  TimePoint deadline{};
};

/// Where a job's time went, chip time. begin <= end; all 0 where the runtime cannot tell.
struct JobTimes {
  ChipNanoseconds submitted = 0;
  ChipNanoseconds h2d_begin = 0, h2d_end = 0;
  ChipNanoseconds compute_begin = 0, compute_end = 0;
  ChipNanoseconds d2h_begin = 0, d2h_end = 0;
};

struct JobResult {
  JobId job = 0;
  SessionId session = 0;
  Generation generation = 0;   ///< under which the job was submitted.
  GraphKind graph = GraphKind::decode;
  Engine engine = Engine::automatic;   ///< the one that ran it.
  SequenceId sequence = 0;
  boost::system::error_code
      status;                    ///< of device_category; success: logits are in the output buffer.
  std::uint32_t kv_before = 0;   ///< committed positions before and after a commit of this job.
  std::uint32_t kv_after = 0;
  JobTimes times;
};

enum class CancelEffect : std::uint8_t {
  removed_from_queue,   ///< it never runs; its completion says `cancelled`.
  delivery_only,        ///< it runs to its end; the buffers stay in use until its completion.
  already_done,
};

enum class JobState : std::uint8_t { unknown, queued, running, done };

enum class ResetScope : std::uint8_t { ccu, session, chip, configuration, device };

/// Null is "the runtime cannot tell", never 0 and never the board's figure.
struct MemoryUsage {
  std::uint32_t chip = 0;
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> kv_slots_total;
  std::optional<std::uint64_t> kv_slots_used;
};

struct Health {
  std::uint32_t chip = 0;
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> frequency_mhz;
  std::optional<bool> throttled;
  std::optional<std::uint64_t> queue_depth;
  std::optional<std::uint64_t> in_flight;
  std::optional<std::uint64_t> jobs_completed;
  std::optional<std::uint64_t> jobs_failed;
  std::optional<std::uint64_t> resets;
};

enum class TraceKind : std::uint8_t { queue, h2d, compute, d2h };

/// One interval of one job on one chip. begin <= end, chip time.
struct TraceEvent {
  TraceKind kind = TraceKind::compute;
  std::uint32_t chip = 0;
  GraphKind graph = GraphKind::decode;
  Engine engine = Engine::automatic;
  JobId job = 0;
  ChipNanoseconds begin = 0;
  ChipNanoseconds end = 0;
};

}   // namespace duet::device
