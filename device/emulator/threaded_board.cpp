// threaded_board.cpp: the threaded board's life cycle and staging.
#include "device/emulator/threaded_board.hpp"

#include "device/emulator/threaded_board_impl.hpp"
#include "device/package/package_files.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace duet::device::emulator {
namespace {

void check_options(const ThreadedBoardOptions& options) {
  const auto require = [](bool condition, const char* what) {
    if (!condition) throw std::invalid_argument{std::string{"emulated board: "} + what};
  };
  require(is_board_name(options.board),
          "the board's name must be 1 to 64 letters, digits, '.', '_' or '-'");
  require(options.threads_per_chip == 1 || options.threads_per_chip == 2,
          "threads_per_chip must be 1 or 2");
  require(options.tile >= 1 && options.tile <= tile_max, "tile must be 1 to 256");
  const bool real = options.profile.compute == Compute::real;
  require((options.profile.transfers == TransferTiming::performed) == real,
          "transfers are performed where the compute is real, else modelled");
  require(options.open_package && options.make_executable,
          "open_package and make_executable must be given");
}

Failure no_memory(const char* call) {
  return {errc::out_of_memory, std::string{call} + ": the host has not enough memory"};
}

}   // namespace

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
    for (std::uint32_t i = 0; real() && i < options_.profile.chips; ++i) {
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
  catch_up(lock);
  auto begun = begin(core_, chip_now());
  drive(lock);
  if (begun.has_error()) return begun;
  idle_.wait(lock, [this] { return !core_.work_in_hand(); });
  core_.finish_reset();
  drive(lock);
  const BoardState state = core_.state();
  if (state == BoardState::open || state == BoardState::closed) {
    dropped = std::move(resident_);
    made_up_.reset();
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

result<std::unique_ptr<MadeUpPackage>> ThreadedBoard::Impl::make_made_up() {
  try {
    return MadeUpPackage::build(*image_, core_.plan());
  } catch (const std::bad_alloc&) {
    return no_memory("configure");
  }
}

result<void> ThreadedBoard::Impl::configure() {
  const std::lock_guard life{life_cycle_};
  auto begun = with_core([&](BoardCore& core) { return core.begin_configure(chip_now()); });
  if (begun.has_error()) return begun;
  // Without the lock: it copies and checks gigabytes. The plan stays while life_cycle_ is held.
  result<std::unique_ptr<ResidentPackage>> resident{nullptr};
  result<std::unique_ptr<MadeUpPackage>> made_up{nullptr};
  if (real()) {
    resident = make_resident();
  } else {
    made_up = make_made_up();
  }
  const std::lock_guard lock{mutex_};
  if (resident.has_error() || made_up.has_error()) {
    core_.abort_configure();
    return resident.has_error() ? resident.error() : made_up.error();
  }
  DUET_ASSERT(resident_ == nullptr && made_up_ == nullptr);
  resident_ = std::move(resident).value();
  made_up_ = std::move(made_up).value();
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

result<MemoryUsage> ThreadedBoard::Impl::memory_usage(std::uint32_t chip) {
  std::unique_lock lock{mutex_};
  catch_up(lock);
  auto usage = core_.memory_usage(chip);
  drive(lock);
  if (usage.has_error() || resident_ == nullptr) return usage;
  for (MemoryPart& part : usage.value().parts) {
    if (part.what == memory_line_of(SectionKind::parameters)) {
      part.peak_bytes = resident_->parameter_bytes(chip);
    } else if (part.what == memory_line_of(SectionKind::workspace)) {
      part.peak_bytes = resident_->workspace_peak_bytes(chip);
    }
  }
  return usage;
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
  return impl_->with_books(
      [&](BoardCore& core) { return core.kv_reserve(chip, generation, sequence, tokens); });
}

result<void> ThreadedBoard::kv_commit(std::uint32_t chip, Generation generation,
                                      SequenceId sequence, std::uint32_t tokens) {
  return impl_->with_books(
      [&](BoardCore& core) { return core.kv_commit(chip, generation, sequence, tokens); });
}

result<void> ThreadedBoard::kv_rollback(std::uint32_t chip, Generation generation,
                                        SequenceId sequence) {
  return impl_->with_books(
      [&](BoardCore& core) { return core.kv_rollback(chip, generation, sequence); });
}

result<void> ThreadedBoard::kv_release(std::uint32_t chip, Generation generation,
                                       SequenceId sequence) {
  return impl_->with_books(
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
  return impl_->memory_usage(chip);
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
