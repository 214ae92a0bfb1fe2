// types.hpp: the values that cross the session contract. All of them can be logged.
#pragma once

#include "device/contract/error.hpp"
#include "device/package/manifest.hpp"
#include "runtime/time.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

/// Host monotonic time; every deadline is absolute on it. Which clock it is, the runtime decides.
using runtime::TimePoint;

/// "No deadline": for jobs and calls whose end somebody else watches.
inline constexpr TimePoint no_deadline = TimePoint::max();

/// Chip time: nanoseconds since the device was opened, one clock for both chips.
using ChipNanoseconds = std::uint64_t;

/// 1.., never reused in the life of a Device, over close and re-open too.
using SessionId = std::uint32_t;

/// Of a session: raised by load, unload and every reset that touches it. The values come from one
/// counter of the Device, so that no two sessions, and no session and its successor, ever share
/// one: a generation names its session. Greater is later; 0 is none.
using Generation = std::uint64_t;

/// The caller's, unique within its session; a repeat of a job in flight is refused.
using JobId = std::uint64_t;

/// Within the model's own range in the manifest.
using SequenceId = std::uint64_t;

/// Of a loaded package; 0 is none.
using PackageId = std::uint32_t;

/// What the runtime is and promises. A flag that conformance has not shown is only a promise.
struct Topology {
  std::string runtime;    ///< name and version, for reports.
  std::string driver;     ///< empty if unknown.
  std::string firmware;   ///< empty if unknown.
  std::uint32_t chips = 0;
  std::uint32_t cores_per_chip = 0;
  std::uint32_t engines_per_chip = 0;
  std::uint64_t dram_bytes_per_chip = 0;
  bool combined = true;              ///< one current package for the board; configure is global.
  bool independent_load = false;     ///< a model can be loaded while the other chip runs.
  bool independent_queues = false;   ///< a chip's queue is never held up by the other's.
  bool ccu_reset = false;       ///< each reset scope that the runtime offers; configuration and
  bool session_reset = false;   ///< device are always there.
  bool chip_reset = false;
  bool cancel_stops_execution = false;   ///< false: a cancel stops delivery only.
  bool wait_deadline = false;            ///< the vendor's wait takes a deadline.
  bool per_chip_memory = false;          ///< memory figures are a chip's own, not the board's.
  bool real_outputs = true;              ///< false: logits are made up, so that no golden can hold.
  std::uint32_t sessions_per_chip_max = 1;
  std::uint32_t inflight_per_chip_max = 1;   ///< the sum over a chip's sessions.
};

/// A validated package, as it is given to a device.
struct PackageRef {
  std::filesystem::path directory;
  std::shared_ptr<const Manifest> manifest;   ///< the validated one; nobody parses it again.
  std::string hash;   ///< SHA-256 of the bytes of checksums.sha256, 64 lower-case hex digits.
};

/// A graph as the runtime reports it after load, to be compared with the manifest.
struct LoadedGraph {
  std::string name;
  std::vector<std::uint32_t> target_chips;
  ChipMode mode = ChipMode::schip;
};

struct LoadedPackage {
  PackageId package = 0;
  std::vector<LoadedGraph> graphs;
};

struct ChipSessionOptions {
  std::uint32_t chip = 0;
  std::uint64_t dram_quota_bytes = 0;   ///< 0: what the manifest reserves for the chip.
  std::uint64_t sram_quota_bytes = 0;   ///< 0: the runtime's default.
  std::uint32_t inflight_max = 1;       ///< 2 needs verified separate buffers and ping/pong.
};

enum class SessionPhase : std::uint8_t {
  empty,      ///< no model.
  loaded,     ///< takes jobs.
  draining,   ///< takes no new jobs; ends with resume, load or unload.
  lost,       ///< a reset failed: only a wider reset is accepted.
  ended,      ///< its configuration or device is gone; the id is never used again.
};

struct SessionState {
  SessionId session = 0;
  std::uint32_t chip = 0;
  Generation generation = 0;
  SessionPhase phase = SessionPhase::empty;
};

/// The staging of one job, in host memory that the device can reach. It stays mapped until
/// release_io or the end of close, through every reset.
struct IoBuffers {
  std::uint64_t id = 0;   ///< 0: none.
  SessionId session = 0;
  GraphKind graph = GraphKind::decode;
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
  std::uint32_t tokens = 0;   ///< 1..tokens_max, the first of the buffers' tokens; reserved before.
  std::uint64_t buffers = 0;   ///< IoBuffers::id; of this session and graph, in no other job.
  /// Of the wait, not of the request. Reaching it completes the job with wait_timeout, not settled.
  TimePoint deadline = no_deadline;
};

/// Where a job's time went. begin <= end.
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
  boost::system::error_code status;   ///< of device_category; success: logits are in the buffer.
  bool ran = true;       ///< false: it never started; key/value memory and buffers are untouched.
  bool settled = true;   ///< false: DMA or compute may still touch its buffers and key/value slot.
                         ///< on_settled follows, unless the call never returns.
  std::uint32_t kv_before = 0;     ///< committed positions before this job,
  std::uint32_t kv_after = 0;      ///< and after a commit of all its tokens.
  std::optional<JobTimes> times;   ///< null where the runtime cannot tell.
};

enum class CancelEffect : std::uint8_t {
  removed_from_queue,   ///< it never runs; its completion says `cancelled`.
  stopping,        ///< where Topology::cancel_stops_execution; its completion says `cancelled`.
  delivery_only,   ///< it runs to its end; the buffers stay in use until its completion.
  already_done,
};

/// A job that has completed and settled is unknown again.
enum class JobState : std::uint8_t { unknown, queued, running, unsettled };

enum class ResetScope : std::uint8_t { ccu, session, chip, configuration, device };

struct ResetTarget {
  ResetScope scope = ResetScope::device;
  std::uint32_t chip = 0;   ///< ccu and chip.
  SessionId session = 0;    ///< session.
};

/// What a chip's memory holds of one kind.
struct MemoryPart {
  std::string what;   ///< as in the package's memory report: weights, kv, workspace, code, ...
  std::uint64_t bytes = 0;                   ///< set aside on the chip now.
  std::optional<std::uint64_t> peak_bytes;   ///< most in use at a time since configure.
};

/// Null is "the runtime cannot tell", never 0 and never the board's figure.
struct MemoryUsage {
  std::uint32_t chip = 0;
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> kv_slots_total;
  std::optional<std::uint64_t> kv_slots_used;
  std::optional<std::uint64_t> kv_slots_peak;   ///< most in use at a time since configure.
  std::vector<MemoryPart> parts;                ///< empty: the runtime cannot tell.
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
  SessionId session = 0;
  Generation generation = 0;
  GraphKind graph = GraphKind::decode;
  Engine engine = Engine::automatic;
  JobId job = 0;
  ChipNanoseconds begin = 0;
  ChipNanoseconds end = 0;
};

/// What was recorded since the last call. The record is bounded; the oldest events are dropped
/// first.
struct Trace {
  std::vector<TraceEvent> events;
  std::uint64_t dropped = 0;
};

}   // namespace duet::device
