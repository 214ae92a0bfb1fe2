// device.hpp: the session contract. Nothing above device/ can tell which runtime is below.
#pragma once

#include "device/contract/types.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
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
  drain,
  unload,
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

struct SessionState {
  SessionId session = 0;
  Generation generation = 0;
};

/// The end of one life-cycle or telemetry call.
struct CallDone {
  using Value = std::variant<std::monostate, Topology, std::vector<LoadedGraph>, std::string,
                             SessionState, MemoryUsage, Health, std::vector<TraceEvent>>;
  CallDone(std::uint64_t tag_value, CallKind kind, result<Value> outcome_value)
      : tag(tag_value), call(kind), outcome(std::move(outcome_value)) {}
  std::uint64_t tag;   ///< the caller's.
  CallKind call;
  result<Value> outcome;   ///< which alternative it holds is written at each call of Device.
};

/// Receives every completion exactly once, on any thread, possibly before the call that caused it
/// has returned. It must not block and must outlive its calls.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void on_call(CallDone&& done) noexcept = 0;
  virtual void on_job(const JobResult& done) noexcept = 0;
};

/// One board. No call blocks. Life-cycle calls are carried out in the order given; they may be made
/// from any thread, but one owner at a time. `tag` comes back in CallDone and may be
/// anything.
class Device {
 public:
  virtual ~Device() = default;

  /// Takes the board lock before anything is touched, then resets the device: it may be dirty.
  /// Value: Topology. Errors: board_in_use, driver_lost, reset_failed.
  virtual void open(std::uint64_t tag, CompletionSink& sink) = 0;

  /// Reads a package that has passed validation. Value: the loaded graphs, to be compared with the
  /// manifest. Errors: package_invalid, wrong_state. The device's configuration is not changed.
  virtual void load_package(std::uint64_t tag, std::filesystem::path directory,
                            CompletionSink& sink) = 0;

  /// Makes the loaded package the current one, for the whole board where Topology::combined. No
  /// value. Errors: already_configured, out_of_memory, package_invalid, wrong_state.
  virtual void configure(std::uint64_t tag, CompletionSink& sink) = 0;

  /// Value: string, the current package's hash (64 hex digits), "" if none is configured.
  virtual void read_hash(std::uint64_t tag, CompletionSink& sink) = 0;

  /// Value: SessionState with generation 1. At most one session a chip where Topology::combined.
  virtual void create_session(std::uint64_t tag, ChipSessionOptions options,
                              CompletionSink& sink) = 0;

  /// Binds a model of the current package to its session. Value: SessionState with the raised
  /// generation. Errors: unknown_name; bad_argument if the model's graphs target another chip.
  virtual void load_model(std::uint64_t tag, SessionId session, std::string model,
                          CompletionSink& sink) = 0;

  /// Ends when no job of the session is queued or running. New jobs are refused from now on
  /// (wrong_state), until the next load_model. Errors: drain_timeout (the session stays draining).
  virtual void drain(std::uint64_t tag, SessionId session, TimePoint deadline,
                     CompletionSink& sink) = 0;

  /// Errors: device_busy while a job is in flight. Value: SessionState with the raised generation.
  virtual void unload(std::uint64_t tag, SessionId session, CompletionSink& sink) = 0;

  /// `target` is a chip (ccu, chip), a session (session) or ignored. Generations of all sessions it
  /// touches are raised and their running jobs complete with stale_generation. Errors: unsupported
  /// where Topology does not offer the scope.
  virtual void reset(std::uint64_t tag, ResetScope scope, std::uint32_t target,
                     CompletionSink& sink) = 0;

  /// Ends the current configuration; sessions end with it. Errors: device_busy while a job is in
  /// flight.
  virtual void reset_configuration(std::uint64_t tag, CompletionSink& sink) = 0;

  /// Values: MemoryUsage, Health, vector<TraceEvent> (what was recorded since the last call; the
  /// record is bounded, the oldest events are dropped first).
  virtual void memory_usage(std::uint64_t tag, std::uint32_t chip, CompletionSink& sink) = 0;
  virtual void health(std::uint64_t tag, std::uint32_t chip, CompletionSink& sink) = 0;
  virtual void take_trace(std::uint64_t tag, CompletionSink& sink) = 0;

  /// Releases everything and the board lock. Jobs in flight are waited for until `deadline`.
  virtual void close(std::uint64_t tag, TimePoint deadline, CompletionSink& sink) = 0;

  /// Host-visible staging for one job at a time of `session` and `graph`. Bounded by
  /// limits::io_buffers_max a session.
  virtual result<IoBuffers> allocate_io(SessionId session, GraphKind graph) = 0;
  /// Errors: device_busy while a job uses it: a buffer that DMA may still reference is never reused
  ///
  virtual result<void> release_io(IoBuffers buffers) = 0;

  /// Key/value bookkeeping, keyed (session, generation, sequence); does not block. reserve: room
  /// for `tokens` more positions, and the slot on first use; a second reserve replaces the first. A
  /// job may write only reserved positions. commit: the first `tokens` reserved positions become
  /// part of the sequence. rollback: none of them does. release: the slot is free once no job uses
  /// it. Errors: kv_exhausted, stale_generation, bad_argument.
  virtual result<void> kv_reserve(SessionId session, Generation generation, SequenceId sequence,
                                  std::uint32_t tokens) = 0;
  virtual result<void> kv_commit(SessionId session, Generation generation, SequenceId sequence,
                                 std::uint32_t tokens) = 0;
  virtual result<void> kv_rollback(SessionId session, Generation generation,
                                   SequenceId sequence) = 0;
  virtual result<void> kv_release(SessionId session, Generation generation,
                                  SequenceId sequence) = 0;

  /// Any thread. Every accepted job completes exactly once through `sink`. Refusals come back at
  /// once and complete nothing. Errors: queue_full, stale_generation, bad_argument, wrong_state,
  /// kv_exhausted (not reserved), device_busy.
  virtual result<void> submit(const JobRequest& job, CompletionSink& sink) = 0;
  virtual result<CancelEffect> cancel(JobId job) = 0;
  [[nodiscard]] virtual JobState query(JobId job) const = 0;
};

}   // namespace duet::device
