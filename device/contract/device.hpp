// device.hpp: the session contract. Nothing above device/ can tell which runtime is below.
#pragma once

#include "device/contract/types.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace duet::device {

enum class CallKind : std::uint8_t {
  open,
  load_package,
  configure,
  read_hash,
  create_session,
  load_model,
  allocate_io,
  release_io,
  drain,
  unload,
  destroy_session,
  reset,
  reset_configuration,
  memory_usage,
  health,
  take_trace,
  close,
};

/// The word for logs and tools, e.g. "configure".
[[nodiscard]] const char* to_string(CallKind kind) noexcept;
[[nodiscard]] const char* to_string(GraphKind kind) noexcept;
[[nodiscard]] const char* to_string(Engine engine) noexcept;

/// The end of one call that is not a job.
struct CallDone {
  using Value = std::variant<std::monostate, Topology, LoadedPackage, std::string, SessionState,
                             std::vector<SessionState>, IoBuffers, MemoryUsage, Health, Trace>;
  CallDone(std::uint64_t tag_value, CallKind kind, result<Value> outcome_value)
      : tag(tag_value), call(kind), outcome(std::move(outcome_value)) {}
  std::uint64_t tag;   ///< the caller's.
  CallKind call;
  result<Value> outcome;   ///< which alternative it holds is written at each call of Device.
};

/// Receives completions, on any thread, possibly before the call that caused them has returned. No
/// lock of the device is held, so it may call submit, cancel, query and kv_*. It must not block.
/// Each call and each accepted job completes exactly once; a receiver that must survive a faulty
/// runtime still checks session, generation and job.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void on_call(CallDone&& done) noexcept = 0;
  virtual void on_job(const JobResult& done) noexcept = 0;
  /// At most once, after an on_job that was not settled: buffers and key/value slot are free from
  /// now on.
  virtual void on_settled(SessionId session, Generation generation, JobId job) noexcept = 0;
};

using Sink = std::shared_ptr<CompletionSink>;   ///< shared: a call that never returns keeps it.

/// One board.
///
/// No call blocks, and none but those that end in `sink` or `jobs` reaches the runtime: submit,
/// cancel, query and kv_* are decided by the books that the implementation keeps. Any thread may
/// call. Order: board calls (open, load_package, configure, reset_configuration, reset, close) run
/// one at a time in the order given and have one owner; session calls run in order within a
/// session. A drain occupies no queue. Telemetry (memory_usage, health, take_trace) has a queue of
/// its own and delays no job. Errors of every call: queue_full (limits::calls_queued_max),
/// call_timeout at its deadline, wrong_state, driver_lost.
class Device {
 public:
  virtual ~Device() = default;

  /// Takes the board lock before anything is touched, then resets the device: it may be dirty.
  /// Value: Topology. Errors: board_in_use, reset_failed.
  virtual void open(std::uint64_t tag, TimePoint deadline, Sink sink) = 0;

  /// Reads a validated package; the configuration is not changed. Value: LoadedPackage.
  /// Errors: package_invalid, also if the directory no longer has the hash.
  virtual void load_package(std::uint64_t tag, PackageRef package, TimePoint deadline,
                            Sink sink) = 0;

  /// Makes a loaded package the current one, for the whole board where Topology::combined (else:
  /// unsupported). No value. Errors: already_configured, out_of_memory, package_invalid,
  /// unknown_name.
  virtual void configure(std::uint64_t tag, PackageId package, TimePoint deadline, Sink sink) = 0;

  /// Value: string, the hash of the current package; "" if none is configured.
  virtual void read_hash(std::uint64_t tag, TimePoint deadline, Sink sink) = 0;

  /// After configure where Topology::combined. Every job of the session completes in `jobs`.
  /// Value: SessionState (empty). Errors: bad_argument, out_of_memory, unsupported
  /// (sessions_per_chip_max).
  virtual void create_session(std::uint64_t tag, ChipSessionOptions options, Sink jobs,
                              Sink sink) = 0;

  /// Binds a model of a package to the session. Value: SessionState (loaded), generation raised.
  /// Errors: unknown_name, out_of_memory; bad_argument if its graphs target another chip.
  virtual void load_model(std::uint64_t tag, SessionId session, PackageId package,
                          std::string model, TimePoint deadline, Sink sink) = 0;

  /// Host-visible staging for one job at a time; at most limits::io_buffers_max a session. Value:
  /// IoBuffers.
  virtual void allocate_io(std::uint64_t tag, SessionId session, GraphKind graph, Sink sink) = 0;
  /// Errors: device_busy while a job uses them: a buffer that DMA may still reference is never
  /// reused.
  virtual void release_io(std::uint64_t tag, SessionId session, std::uint64_t buffers,
                          Sink sink) = 0;

  /// Ends when no job of the session is queued or running; new ones are refused with `draining` at
  /// once. Value: SessionState. Errors: drain_timeout (it stays draining).
  virtual void drain(std::uint64_t tag, SessionId session, TimePoint deadline, Sink sink) = 0;
  /// Ends a drain without a new generation. Errors: wrong_state.
  virtual result<void> resume(SessionId session) = 0;

  /// Value: SessionState (empty), generation raised. Errors: device_busy while a job is in flight;
  /// an unsettled job that was abandoned counts as quarantined, not as in flight.
  virtual void unload(std::uint64_t tag, SessionId session, TimePoint deadline, Sink sink) = 0;
  /// Of an empty session; its id is never used again. No value.
  virtual void destroy_session(std::uint64_t tag, SessionId session, Sink sink) = 0;

  /// What each scope destroys: ccu, jobs and key/value slots of the chip (the model stays loaded);
  /// session and chip, also the binding (empty); configuration and device, all sessions (ended),
  /// and nothing is configured. The board stays open. Every job touched has completed with
  /// stale_generation before this does. Value: vector<SessionState> of all touched. Errors:
  /// unsupported where Topology lacks the scope; reset_failed (the sessions are lost).
  virtual void reset(std::uint64_t tag, ResetTarget target, TimePoint deadline, Sink sink) = 0;

  /// The polite end of a configuration; sessions end with it. No value. Errors: device_busy while a
  /// job is in flight.
  virtual void reset_configuration(std::uint64_t tag, TimePoint deadline, Sink sink) = 0;

  /// Values: MemoryUsage, Health, Trace of one chip.
  virtual void memory_usage(std::uint64_t tag, std::uint32_t chip, Sink sink) = 0;
  virtual void health(std::uint64_t tag, std::uint32_t chip, Sink sink) = 0;
  virtual void take_trace(std::uint64_t tag, std::uint32_t chip, Sink sink) = 0;

  /// Releases everything and the board lock. No value. Errors: device_busy while a job is in
  /// flight.
  virtual void close(std::uint64_t tag, TimePoint deadline, Sink sink) = 0;

  /// Key/value bookkeeping of the session's current generation; an older one is stale_generation
  /// and frees nothing. reserve: room for `tokens` more positions, and the slot on first use; a
  /// second reserve replaces the first. commit: the first `tokens` reserved positions become part
  /// of the sequence, the rest is given back. rollback: none of them does. release: the slot is
  /// free. All but release answer device_busy while a job of the sequence is in flight; a release
  /// then takes effect when that job has settled. A raised generation frees every slot but those of
  /// unsettled jobs. Errors: kv_exhausted, stale_generation, bad_argument (range of ids, context),
  /// unknown_name.
  virtual result<void> kv_reserve(SessionId session, Generation generation, SequenceId sequence,
                                  std::uint32_t tokens) = 0;
  virtual result<void> kv_commit(SessionId session, Generation generation, SequenceId sequence,
                                 std::uint32_t tokens) = 0;
  virtual result<void> kv_rollback(SessionId session, Generation generation,
                                   SequenceId sequence) = 0;
  virtual result<void> kv_release(SessionId session, Generation generation,
                                  SequenceId sequence) = 0;

  /// Accepts a job, or refuses it at once and completes nothing. What the runtime refuses later
  /// arrives as a completion with ran == false (device_busy: try again after a pause). Errors:
  /// queue_full (inflight_max), draining, stale_generation, wrong_state, bad_argument,
  /// unknown_name.
  virtual result<void> submit(const JobRequest& job) = 0;

  /// Errors: unknown_name (also: already completed).
  virtual result<CancelEffect> cancel(SessionId session, JobId job) = 0;

  /// The watchdog's way out: completes the job now with wait_timeout, not settled, leaves its
  /// thread behind and keeps its buffers and slot for ever. Errors: unknown_name; queue_full when
  /// limits::quarantine_max jobs of the chip are kept.
  virtual result<void> abandon(SessionId session, JobId job) = 0;

  [[nodiscard]] virtual JobState query(SessionId session, JobId job) const = 0;
};

}   // namespace duet::device
