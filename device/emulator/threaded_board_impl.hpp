// threaded_board_impl.hpp: one lock around the core, a compute thread a chip, blocking waits. For
// threaded_board*.cpp alone.
#pragma once

#include "device/emulator/made_up_package.hpp"
#include "device/emulator/threaded_board.hpp"
#include "device/emulator/threaded_cores.hpp"
#include "device/emulator/threaded_lock.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace duet::device::emulator {

class ThreadedBoard::Impl {
 public:
  explicit Impl(ThreadedBoardOptions options)
      : options_(std::move(options)), core_(options_.profile, options_.faults) {
    if (options_.lock_directory.empty()) options_.lock_directory = default_lock_directory();
  }

  ~Impl() {
    (void)close();
    std::unique_lock lock{mutex_};
    idle_.wait(lock, [this] { return waiters_ == 0; });
  }

  result<Topology> open();
  result<void> close();
  result<std::vector<LoadedGraph>> load_package(const std::filesystem::path& directory);
  result<void> configure();
  /// `begin` is one of the core's begin_… calls. life_cycle_ is held.
  template <typename Begin>
  result<void> reset(Begin begin);
  template <typename Begin>
  result<void> reset_in_turn(Begin begin) {
    const std::lock_guard life{life_cycle_};
    return reset(begin);
  }
  result<IoBuffers> allocate_io(GraphHandle graph);
  result<void> release_io(std::uint64_t buffers);
  result<JobTicket> submit(const VendorJob& job);
  result<VendorJobEnd> wait(JobTicket ticket, TimePoint deadline);
  result<CancelEffect> cancel(JobTicket ticket);

  /// Calls the core under the lock and carries out what follows from it.
  template <typename Call>
  auto with_core(Call call) {
    std::unique_lock lock{mutex_};
    catch_up(lock);
    auto answer = call(core_);
    drive(lock);
    return answer;
  }

  /// The same for calls that ask for nothing to be carried out.
  template <typename Call>
  auto with_books(Call call) {
    std::unique_lock lock{mutex_};
    catch_up(lock);
    return call(core_);
  }

  /// What the core has placed, and how much of it the resident package really uses.
  result<MemoryUsage> memory_usage(std::uint32_t chip);

  std::uint64_t workspace_peak_bytes(std::uint32_t chip) const {
    const std::lock_guard lock{mutex_};
    return resident_ ? resident_->workspace_peak_bytes(chip) : 0;
  }

  [[nodiscard]] Counters counters() const {
    const std::lock_guard lock{mutex_};
    return core_.counters();
  }

 private:
  struct ChipThread {
    std::thread thread;
    std::optional<CoreTeam> team;   ///< where each CalCore has a thread.
    std::condition_variable wake;
    std::optional<StartCompute> work;
  };

  /// Input and output of one job on the host's side; 64-byte aligned halves of one block.
  struct HostStaging {
    std::uint64_t id = 0;
    HostMemory memory;
    std::span<std::uint32_t> tokens;
    std::span<float> logits;
    std::uint32_t made_up = 0;   ///< the one logit that is not 0, where answers are made up.
  };

  [[nodiscard]] bool real() const noexcept { return options_.profile.compute == Compute::real; }
  [[nodiscard]] bool timed() const noexcept { return options_.profile.compute == Compute::timed; }

  [[nodiscard]] ChipNanoseconds chip_now() const {
    return static_cast<ChipNanoseconds>(
        std::chrono::nanoseconds{std::chrono::steady_clock::now() - opened_at_}.count());
  }

  void drive(std::unique_lock<std::mutex>& lock);
  /// On a timed board: lets everything happen whose time has come, before a call looks at it.
  void catch_up(std::unique_lock<std::mutex>& lock);
  void make_up(const StartCompute& action);
  void transfer(std::unique_lock<std::mutex>& lock, const StartTransfer& action);
  void serve_chip(std::uint32_t chip);
  void stop_threads();
  void wake_all();
  result<std::vector<std::vector<Program>>> read_programs(const PackageImage& image) const;
  result<std::unique_ptr<ResidentPackage>> make_resident();
  result<std::unique_ptr<MadeUpPackage>> make_made_up();

  ThreadedBoardOptions options_;

  std::mutex life_cycle_;   ///< taken before mutex_; held over a whole life-cycle call.
  std::optional<BoardLock> board_lock_;
  std::unique_ptr<PackageImage> image_;
  std::vector<std::vector<Program>> programs_;   ///< of the loaded package, by graph handle.

  mutable std::mutex mutex_;   ///< of everything below.
  BoardCore core_;
  std::chrono::steady_clock::time_point opened_at_;
  std::array<ChipThread, limits::chips_max> chips_;
  bool stopping_ = false;
  /// Threads use it outside the lock while they have work in hand; it goes only when none has.
  std::unique_ptr<ResidentPackage> resident_;
  std::unique_ptr<MadeUpPackage> made_up_;   ///< in its place on timed and null boards.
  std::array<HostStaging, limits::io_buffers_board_max> staging_;
  std::array<std::condition_variable, std::size_t{limits::chips_max} * limits::jobs_per_chip_max>
      ended_;                      ///< by job index.
  std::condition_variable idle_;   ///< a thread let go of a job, or of a wait.
  std::uint32_t waiters_ = 0;
};

}   // namespace duet::device::emulator
