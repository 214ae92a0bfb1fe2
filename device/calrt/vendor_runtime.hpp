// vendor_runtime.hpp: the blocking calls of a vendor runtime in the combined dialect, in C++.
//
// The C ABI of a plug-in and the emulated board both stand behind it; combined_adapter turns it
// into the session contract. Every call may block, so only completion threads make them. One
// life-cycle call runs at a time; submit, wait, the key/value calls and the telemetry may run
// beside it and beside each other.
#pragma once

#include "device/contract/types.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace duet::device {

using GraphHandle = std::uint32_t;   ///< index into the list that load_package returned.
using JobTicket = std::uint64_t;     ///< the runtime's own number of a job; 0 is none.

/// A submission by graph; the chip follows from the graph alone.
struct VendorJob {
  GraphHandle graph = 0;
  Engine engine = Engine::automatic;
  SessionId session = 0;       ///< for the trace.
  JobId job = 0;               ///< for the trace.
  Generation generation = 0;   ///< part of the key of the key/value slot.
  SequenceId sequence = 0;
  std::uint32_t past = 0;
  std::uint32_t tokens = 0;
  std::uint64_t buffers = 0;   ///< IoBuffers::id.
};

/// What `wait` returns when the job has ended, well or badly.
struct VendorJobEnd {
  boost::system::error_code status;
  Engine engine = Engine::automatic;
  std::uint32_t kv_before = 0;
  std::uint32_t kv_after = 0;
  JobTimes times;
};

class VendorRuntime {
 public:
  virtual ~VendorRuntime() = default;

  /// Takes the board lock, opens, resets. Errors: board_in_use, driver_lost, reset_failed.
  virtual result<Topology> open() = 0;
  virtual result<void> close() = 0;

  virtual result<std::vector<LoadedGraph>> load_package(const std::filesystem::path& directory) = 0;
  virtual result<void> configure() = 0;
  virtual result<std::string> current_hash() = 0;
  virtual result<void> reset_configuration() = 0;
  virtual result<void> reset(ResetScope scope, std::uint32_t chip) = 0;

  virtual result<IoBuffers> allocate_io(GraphHandle graph) = 0;
  virtual result<void> release_io(std::uint64_t buffers) = 0;

  /// Do not wait for a job; short.
  virtual result<void> kv_reserve(std::uint32_t chip, Generation generation, SequenceId sequence,
                                  std::uint32_t tokens) = 0;
  virtual result<void> kv_commit(std::uint32_t chip, Generation generation, SequenceId sequence,
                                 std::uint32_t tokens) = 0;
  virtual result<void> kv_rollback(std::uint32_t chip, Generation generation,
                                   SequenceId sequence) = 0;
  virtual result<void> kv_release(std::uint32_t chip, Generation generation,
                                  SequenceId sequence) = 0;

  virtual result<JobTicket> submit(const VendorJob& job) = 0;
  /// Blocks until the job ends or the deadline passes (wait_timeout: the job goes on and may be
  /// waited for again).
  virtual result<VendorJobEnd> wait(JobTicket ticket, TimePoint deadline) = 0;
  /// Removes a queued job (its wait returns `cancelled`), or says that a running one cannot be
  /// stopped.
  virtual result<CancelEffect> cancel(JobTicket ticket) = 0;

  virtual result<MemoryUsage> memory_usage(std::uint32_t chip) = 0;
  virtual result<Health> health(std::uint32_t chip) = 0;
  /// Of one chip; what was recorded since the last call.
  virtual result<Trace> take_trace(std::uint32_t chip) = 0;
};

}   // namespace duet::device
