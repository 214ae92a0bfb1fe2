// threaded_board.hpp: the emulated board with real threads, real time and real compute.
#pragma once

#include "device/calrt/vendor_runtime.hpp"
#include "device/emulator/board_core.hpp"
#include "device/emulator/package_image.hpp"
#include "device/emulator/resident_package.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace duet::device::emulator {

struct ThreadedBoardOptions {
  std::string board = "board0";           ///< 1 to 64 letters, digits, '.', '_' or '-'.
  std::filesystem::path lock_directory;   ///< empty: default_lock_directory().
  Profile profile;                        ///< see Profile::compute for what goes with what.
  std::uint32_t threads_per_chip = 1;     ///< 2: one a CalCore; 1: one runs both in turn.
  std::uint32_t tile = tile_default;      ///< tokens computed together, 1 to tile_max.
  FaultHook* faults = nullptr;            ///< must outlive the board.
  OpenPackage open_package;               ///< empty is refused; make_emulated_board fills it in.
  MakeExecutable make_executable;         ///< the same.
};

/// Any thread may call anything; life-cycle calls take turns. Each chip has one compute thread (and
/// one for its second CalCore where asked) from open to close. A transfer is a copy between the
/// host's staging and the engine's, made by the thread that found the link free. Chip time is
/// nanoseconds since open; compute is stamped on the chip's thread. A job allocates nothing.
///
/// A timed or null board has no threads. A timed one lets events happen, each at its own time, when
/// the next call comes, and those who wait sleep until the next event; on a null one a job ends
/// within submit. The logits that a caller leaves as they were are written in two places a job.
///
/// reset and close wait for a computation under way, which cannot be broken off: at most the time
/// of one prefill job. close ends the jobs (their waits return not_open); so does the destructor,
/// which also waits until no thread is left in a wait.
class ThreadedBoard final : public VendorRuntime {
 public:
  /// Opens nothing. Throws std::invalid_argument for options that cannot be.
  explicit ThreadedBoard(ThreadedBoardOptions options);
  ~ThreadedBoard() override;
  ThreadedBoard(const ThreadedBoard&) = delete;
  ThreadedBoard& operator=(const ThreadedBoard&) = delete;

  result<Topology> open() override;
  result<void> close() override;
  result<std::vector<LoadedGraph>> load_package(const std::filesystem::path& directory) override;
  result<void> configure() override;
  result<std::string> current_hash() override;
  /// Also drops a package that is loaded and not configured.
  result<void> reset_configuration() override;
  result<void> reset(ResetScope scope, std::uint32_t chip) override;

  result<IoBuffers> allocate_io(GraphHandle graph) override;
  result<void> release_io(std::uint64_t buffers) override;
  result<void> kv_reserve(std::uint32_t chip, Generation generation, SequenceId sequence,
                          std::uint32_t tokens) override;
  result<void> kv_commit(std::uint32_t chip, Generation generation, SequenceId sequence,
                         std::uint32_t tokens) override;
  result<void> kv_rollback(std::uint32_t chip, Generation generation, SequenceId sequence) override;
  result<void> kv_release(std::uint32_t chip, Generation generation, SequenceId sequence) override;

  result<JobTicket> submit(const VendorJob& job) override;
  result<VendorJobEnd> wait(JobTicket ticket, TimePoint deadline) override;
  result<CancelEffect> cancel(JobTicket ticket) override;

  result<MemoryUsage> memory_usage(std::uint32_t chip) override;
  result<Health> health(std::uint32_t chip) override;
  result<Trace> take_trace(std::uint32_t chip) override;

  // Beside the vendor's calls, for tools and tests.
  [[nodiscard]] Counters counters() const;
  /// Bytes of the largest workspace that a job of the chip uses; 0 if nothing is configured.
  [[nodiscard]] std::uint64_t workspace_peak_bytes(std::uint32_t chip) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}   // namespace duet::device::emulator
