// threaded_board.cpp: one lock around the core, a compute thread a chip, blocking waits. One file,
// because all that happens under the lock must be seen at once.
#include "device/emulator/threaded_board.hpp"

#include "device/emulator/threaded_cores.hpp"
#include "device/emulator/threaded_lock.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace duet::device::emulator {
namespace {

constexpr std::size_t jobs_max = std::size_t{limits::chips_max} * limits::jobs_per_chip_max;

void check_options(const ThreadedBoardOptions& options) {
  const auto require = [](bool condition, const char* what) {
    if (!condition) throw std::invalid_argument{std::string{"emulated board: "} + what};
  };
  require(options.threads_per_chip == 1 || options.threads_per_chip == 2,
          "threads_per_chip must be 1 or 2");
  require(options.tile >= 1 && options.tile <= tile_max, "tile must be 1 to 256");
  require(options.profile.transfers == TransferTiming::performed,
          "a threaded board performs its transfers");
  require(options.open_package && options.make_executable,
          "open_package and make_executable must be given");
}

/// SerialRunner by another name: that one would bind the driver to the kernels' library.
class OneThread final : public CoreRunner {
 public:
  void run_cores(void (*body)(void* context, std::uint32_t core), void* context) override {
    body(context, 0);
    body(context, 1);
  }
  [[nodiscard]] bool parallel() const override { return false; }
};

Failure no_memory(const char* call) {
  return {errc::out_of_memory, std::string{call} + ": the host has not enough memory"};
}

}   // namespace

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
    auto answer = call(core_);
    drive(lock);
    return answer;
  }

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
  };

  [[nodiscard]] ChipNanoseconds chip_now() const {
    return static_cast<ChipNanoseconds>(
        std::chrono::nanoseconds{std::chrono::steady_clock::now() - opened_at_}.count());
  }

  void drive(std::unique_lock<std::mutex>& lock);
  void transfer(std::unique_lock<std::mutex>& lock, const StartTransfer& action);
  void serve_chip(std::uint32_t chip);
  void stop_threads();
  void wake_all();
  result<std::vector<std::vector<Program>>> read_programs(const PackageImage& image) const;
  result<std::unique_ptr<ResidentPackage>> make_resident();

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
  std::array<HostStaging, limits::io_buffers_board_max> staging_;
  std::array<std::condition_variable, jobs_max> ended_;   ///< by job index.
  std::condition_variable idle_;   ///< a thread let go of a job, or of a wait.
  std::uint32_t waiters_ = 0;
};

result<Topology> ThreadedBoard::Impl::open() {
  const std::lock_guard life{life_cycle_};
  if (board_lock_) return Failure{errc::wrong_state, "open: this board is open already"};
  auto taken = BoardLock::take(options_.lock_directory, options_.board);
  if (taken.has_error()) return taken.error();
  board_lock_ = std::move(taken).value();
  std::unique_lock lock{mutex_};
  opened_at_ = std::chrono::steady_clock::now();
  auto topology = core_.open(0);
  if (topology.has_error()) {
    board_lock_.reset();
    return topology;
  }
  stopping_ = false;
  try {
    for (std::uint32_t i = 0; i < options_.profile.chips; ++i) {
      if (options_.threads_per_chip == 2) chips_[i].team.emplace();
      chips_[i].thread = std::thread{[this, i] { serve_chip(i); }};
    }
  } catch (const std::system_error& error) {
    const bool closed = core_.begin_close(0).has_value();
    DUET_ASSERT(closed);
    core_.finish_reset();
    lock.unlock();
    stop_threads();
    board_lock_.reset();
    return Failure{errc::driver_lost, std::string{"no compute thread starts: "} + error.what()};
  }
  return topology;
}

void ThreadedBoard::Impl::stop_threads() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    for (ChipThread& chip : chips_) chip.wake.notify_all();
  }
  for (ChipThread& chip : chips_) {
    if (chip.thread.joinable()) chip.thread.join();
    chip.team.reset();
  }
}

void ThreadedBoard::Impl::wake_all() {
  for (std::condition_variable& ended : ended_) ended.notify_all();
}

template <typename Begin>
result<void> ThreadedBoard::Impl::reset(Begin begin) {
  std::unique_ptr<ResidentPackage> dropped;
  std::unique_lock lock{mutex_};
  auto begun = begin(core_, chip_now());
  drive(lock);
  if (begun.has_error()) return begun;
  idle_.wait(lock, [this] { return !core_.work_in_hand(); });
  core_.finish_reset();
  drive(lock);
  const BoardState state = core_.state();
  if (state == BoardState::open || state == BoardState::closed) {
    dropped = std::move(resident_);
    programs_.clear();
    image_.reset();
  }
  if (state == BoardState::closed) {
    for (HostStaging& staging : staging_) staging = HostStaging{};
  }
  // Whoever waits for a job that the reset ended has been told; a close also ends the tickets.
  wake_all();
  return {};
}

result<void> ThreadedBoard::Impl::close() {
  const std::lock_guard life{life_cycle_};
  auto closed = reset([](BoardCore& core, ChipNanoseconds now) { return core.begin_close(now); });
  if (closed.has_error()) return closed;
  stop_threads();
  board_lock_.reset();
  return {};
}

result<std::vector<std::vector<Program>>> ThreadedBoard::Impl::read_programs(
    const PackageImage& image) const {
  std::vector<std::vector<Program>> programs;
  for (const Graph& graph : image.manifest().graphs) {
    auto read = image.programs(graph);
    if (read.has_error()) return read.error();
    if (read->empty() || read->size() > options_.profile.cores_per_chip) {
      return Failure{errc::package_invalid, "graph \"" + graph.name + "\" has " +
                                                std::to_string(read->size()) + " programs"};
    }
    programs.push_back(std::move(read).value());
  }
  return programs;
}

result<std::vector<LoadedGraph>> ThreadedBoard::Impl::load_package(
    const std::filesystem::path& directory) {
  const std::lock_guard life{life_cycle_};
  const BoardState state = with_core([](BoardCore& core) { return core.state(); });
  if (state == BoardState::closed) return Failure{errc::not_open, "load: the board is closed"};
  auto image = options_.open_package(directory);
  if (image.has_error()) return image.error();
  const PackageImage& opened = *image.value();
  auto programs = read_programs(opened);
  if (programs.has_error()) return programs.error();
  auto graphs = with_core(
      [&](BoardCore& core) { return core.load(opened.manifest(), opened.hash(), chip_now()); });
  if (graphs.has_error()) return graphs;
  image_ = std::move(image).value();
  programs_ = std::move(programs).value();
  return graphs;
}

result<std::unique_ptr<ResidentPackage>> ThreadedBoard::Impl::make_resident() {
  try {
    return ResidentPackage::build(*image_, core_.plan(), programs_, options_.make_executable,
                                  options_.tile);
  } catch (const std::bad_alloc&) {
    return no_memory("configure");
  }
}

result<void> ThreadedBoard::Impl::configure() {
  const std::lock_guard life{life_cycle_};
  auto begun = with_core([&](BoardCore& core) { return core.begin_configure(chip_now()); });
  if (begun.has_error()) return begun;
  // Without the lock: it copies and checks gigabytes. The plan stays while life_cycle_ is held.
  auto resident = make_resident();
  const std::lock_guard lock{mutex_};
  if (resident.has_error()) {
    core_.abort_configure();
    return resident.error();
  }
  DUET_ASSERT(resident_ == nullptr);
  resident_ = std::move(resident).value();
  core_.finish_configure();
  // All that jobs need has been copied: from here on the directory may change or go.
  image_.reset();
  programs_.clear();
  return {};
}

result<IoBuffers> ThreadedBoard::Impl::allocate_io(GraphHandle graph) {
  const std::lock_guard lock{mutex_};
  auto id = core_.allocate_io(graph);
  if (id.has_error()) return id.error();
  const GraphPlan& plan = core_.plan().graphs[graph];
  HostStaging& staging = staging_[BoardCore::io_index(id.value())];
  const std::size_t input_bytes = (std::size_t{plan.tokens_max} * 4 + 63) / 64 * 64;
  try {
    staging.memory = HostMemory{input_bytes + std::size_t{plan.vocabulary} * 4};
  } catch (const std::bad_alloc&) {
    const bool released = core_.release_io(id.value()).has_value();
    DUET_ASSERT(released);
    return no_memory("allocate_io");
  }
  std::byte* memory = staging.memory.bytes().data();
  staging.id = id.value();
  staging.tokens = {reinterpret_cast<std::uint32_t*>(memory), plan.tokens_max};
  staging.logits = {reinterpret_cast<float*>(memory + input_bytes), plan.vocabulary};
  IoBuffers buffers;
  buffers.id = staging.id;
  buffers.graph = plan.kind;
  buffers.tokens = staging.tokens;
  buffers.logits = staging.logits;
  return buffers;
}

result<void> ThreadedBoard::Impl::release_io(std::uint64_t buffers) {
  const std::lock_guard lock{mutex_};
  auto released = core_.release_io(buffers);
  if (released.has_value()) staging_[BoardCore::io_index(buffers)] = HostStaging{};
  return released;
}

result<JobTicket> ThreadedBoard::Impl::submit(const VendorJob& job) {
  std::unique_lock lock{mutex_};
  std::span<const std::uint32_t> tokens;
  const std::uint32_t index = BoardCore::io_index(job.buffers);
  if (index < staging_.size() && staging_[index].id == job.buffers) {
    tokens = staging_[index].tokens;
  }
  auto ticket = core_.submit(job, tokens, chip_now());
  drive(lock);
  return ticket;
}

result<VendorJobEnd> ThreadedBoard::Impl::wait(JobTicket ticket, TimePoint deadline) {
  std::unique_lock lock{mutex_};
  if (auto begun = core_.begin_wait(ticket, chip_now()); begun.has_error()) return begun.error();
  std::condition_variable& ended = ended_[BoardCore::job_index(ticket)];
  ++waiters_;
  result<VendorJobEnd> answer = Failure{errc::wait_timeout, "the deadline has passed"};
  for (bool late = false;;) {
    auto end = core_.take_end(ticket);
    if (end.has_error()) {
      answer = end.error();
      break;
    }
    if (end->has_value()) {
      answer = **end;
      break;
    }
    // Asked once more after the deadline: an end that came with it counts.
    if (late) break;
    if (deadline == no_deadline) {
      ended.wait(lock);
    } else {
      late = ended.wait_until(lock, deadline) == std::cv_status::timeout;
    }
  }
  if (--waiters_ == 0) idle_.notify_all();
  return answer;
}

result<CancelEffect> ThreadedBoard::Impl::cancel(JobTicket ticket) {
  std::unique_lock lock{mutex_};
  auto effect = core_.cancel(ticket, chip_now());
  drive(lock);
  return effect;
}

void ThreadedBoard::Impl::drive(std::unique_lock<std::mutex>& lock) {
  while (const auto action = core_.next_action()) {
    if (const auto* start = std::get_if<StartTransfer>(&*action)) {
      transfer(lock, *start);
    } else if (const auto* compute = std::get_if<StartCompute>(&*action)) {
      ChipThread& chip = chips_[compute->chip];
      DUET_ASSERT(!chip.work, compute->chip);
      chip.work = *compute;
      chip.wake.notify_one();
    } else {
      ended_[BoardCore::job_index(std::get<JobEnded>(*action).ticket)].notify_all();
    }
  }
  // Nobody gets an answer any more; those who wait must not wait on.
  if (core_.lost()) wake_all();
}

void ThreadedBoard::Impl::transfer(std::unique_lock<std::mutex>& lock,
                                   const StartTransfer& action) {
  const JobView job = core_.view(action.ticket);
  const HostStaging& host = staging_[BoardCore::io_index(job.buffers)];
  DUET_ASSERT(host.id == job.buffers && resident_ != nullptr);
  const std::span<std::uint32_t> input = resident_->input(job.chip, job.engine);
  const std::span<float> output = resident_->output(job.chip, job.engine);
  const std::size_t logits = resident_->vocabulary(job.graph);
  const std::uint32_t* tokens = host.tokens.data();
  float* results = host.logits.data();
  lock.unlock();
  // Neither side is touched by anyone else: the buffers and the engine belong to this job until the
  // core hears of the end.
  const ChipNanoseconds begin = chip_now();
  if (!job.doomed) {
    if (action.direction == Direction::host_to_device) {
      std::memcpy(input.data(), tokens, job.tokens * sizeof(std::uint32_t));
    } else {
      std::memcpy(results, output.data(), logits * sizeof(float));
    }
  }
  const ChipNanoseconds end = chip_now();
  lock.lock();
  core_.transfer_done(action.ticket, begin, end);
  idle_.notify_all();
}

void ThreadedBoard::Impl::serve_chip(std::uint32_t number) {
  ChipThread& chip = chips_[number];
  OneThread one;
  CoreRunner& runner = chip.team ? static_cast<CoreRunner&>(*chip.team) : one;
  std::unique_lock lock{mutex_};
  for (;;) {
    chip.wake.wait(lock, [&] { return chip.work.has_value() || stopping_; });
    if (!chip.work) return;
    const StartCompute action = *std::exchange(chip.work, std::nullopt);
    const JobView job = core_.view(action.ticket);
    ResidentPackage& resident = *resident_;
    lock.unlock();
    const ChipNanoseconds begin = chip_now();
    boost::system::error_code status;
    if (!job.doomed) status = resident.compute(job, action.spoil_output, runner);
    const ChipNanoseconds end = chip_now();
    lock.lock();
    core_.compute_done(action.ticket, status, begin, end);
    drive(lock);
    idle_.notify_all();
  }
}

ThreadedBoard::ThreadedBoard(ThreadedBoardOptions options) {
  check_options(options);
  impl_ = std::make_unique<Impl>(std::move(options));
}

ThreadedBoard::~ThreadedBoard() = default;

result<Topology> ThreadedBoard::open() {
  return impl_->open();
}

result<void> ThreadedBoard::close() {
  return impl_->close();
}

result<std::vector<LoadedGraph>> ThreadedBoard::load_package(
    const std::filesystem::path& directory) {
  return impl_->load_package(directory);
}

result<void> ThreadedBoard::configure() {
  return impl_->configure();
}

result<std::string> ThreadedBoard::current_hash() {
  return impl_->with_core([](BoardCore& core) { return core.current_hash(); });
}

result<void> ThreadedBoard::reset_configuration() {
  return impl_->reset_in_turn(
      [](BoardCore& core, ChipNanoseconds now) { return core.begin_reset_configuration(now); });
}

result<void> ThreadedBoard::reset(ResetScope scope, std::uint32_t chip) {
  return impl_->reset_in_turn(
      [=](BoardCore& core, ChipNanoseconds now) { return core.begin_reset(scope, chip, now); });
}

result<IoBuffers> ThreadedBoard::allocate_io(GraphHandle graph) {
  return impl_->allocate_io(graph);
}

result<void> ThreadedBoard::release_io(std::uint64_t buffers) {
  return impl_->release_io(buffers);
}

result<void> ThreadedBoard::kv_reserve(std::uint32_t chip, Generation generation,
                                       SequenceId sequence, std::uint32_t tokens) {
  return impl_->with_core(
      [&](BoardCore& core) { return core.kv_reserve(chip, generation, sequence, tokens); });
}

result<void> ThreadedBoard::kv_commit(std::uint32_t chip, Generation generation,
                                      SequenceId sequence, std::uint32_t tokens) {
  return impl_->with_core(
      [&](BoardCore& core) { return core.kv_commit(chip, generation, sequence, tokens); });
}

result<void> ThreadedBoard::kv_rollback(std::uint32_t chip, Generation generation,
                                        SequenceId sequence) {
  return impl_->with_core(
      [&](BoardCore& core) { return core.kv_rollback(chip, generation, sequence); });
}

result<void> ThreadedBoard::kv_release(std::uint32_t chip, Generation generation,
                                       SequenceId sequence) {
  return impl_->with_core(
      [&](BoardCore& core) { return core.kv_release(chip, generation, sequence); });
}

result<JobTicket> ThreadedBoard::submit(const VendorJob& job) {
  return impl_->submit(job);
}

result<VendorJobEnd> ThreadedBoard::wait(JobTicket ticket, TimePoint deadline) {
  return impl_->wait(ticket, deadline);
}

result<CancelEffect> ThreadedBoard::cancel(JobTicket ticket) {
  return impl_->cancel(ticket);
}

result<MemoryUsage> ThreadedBoard::memory_usage(std::uint32_t chip) {
  return impl_->with_core([=](BoardCore& core) { return core.memory_usage(chip); });
}

result<Health> ThreadedBoard::health(std::uint32_t chip) {
  return impl_->with_core([=](BoardCore& core) { return core.health(chip); });
}

result<Trace> ThreadedBoard::take_trace(std::uint32_t chip) {
  return impl_->with_core([=](BoardCore& core) { return core.take_trace(chip); });
}

Counters ThreadedBoard::counters() const {
  return impl_->counters();
}

std::uint64_t ThreadedBoard::workspace_peak_bytes(std::uint32_t chip) const {
  return impl_->workspace_peak_bytes(chip);
}

}   // namespace duet::device::emulator
