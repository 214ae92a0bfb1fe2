// board_core.cpp: the board's life cycle, memory, staging, key/values and telemetry.
#include "device/emulator/board_core.hpp"

#include "device/package/package_files.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <utility>

namespace duet::device::emulator {
namespace {

// A ticket or buffer id is serial << 8 | index, so that a stale one never finds a new record.
constexpr std::uint32_t index_bits = 8;
static_assert(limits::chips_max * limits::jobs_per_chip_max < (1U << index_bits));
static_assert(limits::io_buffers_board_max < (1U << index_bits));

const char* name_of(BoardState state) noexcept {
  switch (state) {
    case BoardState::closed:
      return "closed";
    case BoardState::open:
      return "open, with no package";
    case BoardState::loaded:
      return "loaded and not configured";
    case BoardState::configuring:
      return "being configured";
    case BoardState::configured:
      return "configured";
  }
  return "unknown";
}

Failure wrong_state(const char* call, BoardState state) {
  return {errc::wrong_state, std::string{call} + ": the board is " + name_of(state)};
}

ChipMemory::Region region_of(const SectionPlan& section) {
  return {section.owner, section.name, section.address, section.bytes, section.kind};
}

/// What is placed, by the lines of the package's memory report.
std::vector<MemoryPart> parts_of(const ChipMemory& memory) {
  std::vector<MemoryPart> parts;
  for (const ChipMemory::Region& region : memory.regions()) {
    const char* const line = memory_line_of(region.kind);
    auto part = std::find_if(parts.begin(), parts.end(),
                             [&](const MemoryPart& each) { return each.what == line; });
    if (part == parts.end()) part = parts.insert(part, {line, 0, std::nullopt});
    part->bytes += region.bytes;
  }
  return parts;
}

}   // namespace

BoardCore::BoardCore(const Profile& profile, FaultHook* faults)
    : profile_(profile), faults_(faults) {
  check_profile(profile);
  chips_.assign(profile.chips, Chip{profile.dram_bytes_per_chip});
  for (Chip& chip : chips_) {
    chip.queue.reserve(profile.jobs_per_chip_max);
    chip.trace.resize(profile.trace_events_max);
  }
  jobs_.resize(std::size_t{profile.chips} * profile.jobs_per_chip_max);
  link_queue_.reserve(jobs_.size());
  io_.resize(limits::io_buffers_board_max);
}

Fault BoardCore::consult(FaultSite site) {
  const auto point = static_cast<std::size_t>(site.point);
  DUET_ASSERT(point < visits_.size(), point);
  site.visit = visits_[point]++;
  if (faults_ == nullptr) return {};
  const Fault fault = faults_->consult(site);
  if (fault.effect == Fault::Effect::fail && fault.code == errc::driver_lost) lost_ = true;
  return fault;
}

result<void> BoardCore::usable(ChipNanoseconds now, FaultPoint point, FaultSite site) {
  if (lost_) return Failure{errc::driver_lost, "the driver was lost"};
  site.point = point;
  site.now = now;
  const Fault fault = consult(site);
  if (fault.effect == Fault::Effect::fail) return Failure{fault.code, "injected"};
  return {};
}

result<void> BoardCore::ready_for_jobs() const {
  if (lost_) return Failure{errc::driver_lost, "the driver was lost"};
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  if (state_ != BoardState::configured) return wrong_state("no package is current", state_);
  return {};
}

result<Topology> BoardCore::open(ChipNanoseconds now) {
  if (state_ != BoardState::closed) return wrong_state("open", state_);
  if (auto fine = usable(now, FaultPoint::open, {}); fine.has_error()) return fine.error();
  state_ = BoardState::open;
  ++counters_.opens;
  return topology_of(profile_);
}

result<std::vector<LoadedGraph>> BoardCore::load(const Manifest& manifest, std::string hash,
                                                 ChipNanoseconds now) {
  if (state_ == BoardState::closed) return Failure{errc::not_open, "load: the board is closed"};
  if (state_ != BoardState::open && state_ != BoardState::loaded) {
    return wrong_state("load", state_);
  }
  auto planned = plan_board(manifest, std::move(hash), profile_);
  if (planned.has_error()) return planned.error();
  std::vector<ChipMemory> placed(chips_.size(), ChipMemory{profile_.dram_bytes_per_chip});
  for (const SectionPlan& section : planned.value().sections) {
    if (!filled_at_load(section.kind)) continue;
    auto done = placed[section.chip].place(region_of(section));
    if (done.has_error()) return done.error();
  }
  if (auto fine = usable(now, FaultPoint::load, {}); fine.has_error()) return fine.error();
  plan_ = std::move(planned).value();
  for (std::size_t i = 0; i < chips_.size(); ++i) chips_[i].memory = std::move(placed[i]);
  state_ = BoardState::loaded;
  ++counters_.loads;
  std::vector<LoadedGraph> graphs;
  for (const Graph& graph : manifest.graphs) {
    graphs.push_back({graph.name, graph.target_chips, graph.mode});
  }
  DUET_ASSERT(graphs.size() == plan_.graphs.size(), graphs.size(), plan_.graphs.size());
  return graphs;
}

result<void> BoardCore::begin_configure(ChipNanoseconds now) {
  if (state_ == BoardState::closed)
    return Failure{errc::not_open, "configure: the board is closed"};
  ++counters_.configure_calls;
  if (state_ == BoardState::configured) {
    return Failure{errc::already_configured, "package " + plan_.hash + " is current"};
  }
  if (state_ != BoardState::loaded) return wrong_state("configure", state_);
  if (auto fine = usable(now, FaultPoint::configure, {}); fine.has_error()) return fine.error();
  std::vector<ChipMemory> placed;
  for (const Chip& chip : chips_) placed.push_back(chip.memory);
  for (const SectionPlan& section : plan_.sections) {
    if (filled_at_load(section.kind)) continue;
    auto done = placed[section.chip].place(region_of(section));
    if (done.has_error()) return done.error();
  }
  for (std::size_t i = 0; i < chips_.size(); ++i) chips_[i].memory = std::move(placed[i]);
  state_ = BoardState::configuring;
  return {};
}

void BoardCore::finish_configure() {
  DUET_ASSERT(state_ == BoardState::configuring);
  DUET_ASSERT(pools_.empty());
  for (const PoolPlan& pool : plan_.pools) pools_.emplace_back(pool);
  state_ = BoardState::configured;
  ++counters_.configures;
}

void BoardCore::abort_configure() {
  DUET_ASSERT(state_ == BoardState::configuring);
  for (Chip& chip : chips_) chip.memory.clear();
  for (const SectionPlan& section : plan_.sections) {
    if (!filled_at_load(section.kind)) continue;
    const auto done = chips_[section.chip].memory.place(region_of(section));
    // They were placed in the same way by load.
    DUET_ASSERT(done.has_value());
  }
  state_ = BoardState::loaded;
}

result<std::string> BoardCore::current_hash() const {
  if (lost_) return Failure{errc::driver_lost, "the driver was lost"};
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  return state_ == BoardState::configured ? plan_.hash : std::string{};
}

result<void> BoardCore::begin_reset(ResetScope scope, std::uint32_t chip, ChipNanoseconds now) {
  DUET_ASSERT(!reset_scope_);
  if (state_ == BoardState::closed) return Failure{errc::not_open, "reset: the board is closed"};
  const bool one_chip = scope == ResetScope::ccu || scope == ResetScope::chip;
  if (scope == ResetScope::session) {
    return Failure{errc::unsupported, "this board has no session reset"};
  }
  const bool offered = scope == ResetScope::ccu ? profile_.ccu_reset : profile_.chip_reset;
  if (one_chip && !offered) {
    return Failure{errc::unsupported, "this board has no reset of that scope"};
  }
  if (one_chip && chip >= chips_.size()) {
    return Failure{errc::bad_argument, "chip " + std::to_string(chip) + " does not exist"};
  }
  const bool has_package = state_ == BoardState::loaded || state_ == BoardState::configured;
  if (state_ == BoardState::configuring || (scope == ResetScope::configuration && !has_package)) {
    return wrong_state("reset", state_);
  }
  FaultSite site;
  site.chip = one_chip ? chip : 0;
  site.scope = scope;
  if (auto fine = usable(now, FaultPoint::reset, site); fine.has_error()) return fine.error();
  reset_scope_ = scope;
  for (std::uint32_t i = 0; i < chips_.size(); ++i) {
    if (one_chip && i != chip) continue;
    chips_[i].resetting = true;
    doom_jobs(i, now);
  }
  return {};
}

result<void> BoardCore::begin_reset_configuration(ChipNanoseconds now) {
  DUET_ASSERT(!reset_scope_);
  if (state_ == BoardState::closed) return Failure{errc::not_open, "reset: the board is closed"};
  if (state_ != BoardState::loaded && state_ != BoardState::configured) {
    return wrong_state("reset_configuration", state_);
  }
  for (const Job& job : jobs_) {
    if (job.phase != Phase::free && job.phase != Phase::ended) {
      return Failure{errc::device_busy, "job " + std::to_string(job.request.job) + " is in flight"};
    }
  }
  FaultSite site;
  site.scope = ResetScope::configuration;
  if (auto fine = usable(now, FaultPoint::reset_configuration, site); fine.has_error()) {
    return fine.error();
  }
  reset_scope_ = ResetScope::configuration;
  for (Chip& chip : chips_) chip.resetting = true;
  return {};
}

result<void> BoardCore::begin_close(ChipNanoseconds now) {
  DUET_ASSERT(!reset_scope_);
  if (state_ == BoardState::closed) return Failure{errc::not_open, "close: the board is closed"};
  DUET_ASSERT(state_ != BoardState::configuring);
  // A lost driver is closed like any other: its owner must be able to let go of the lock.
  reset_scope_ = ResetScope::device;
  closing_ = true;
  for (std::uint32_t i = 0; i < chips_.size(); ++i) {
    chips_[i].resetting = true;
    doom_jobs(i, now);
  }
  return {};
}

bool BoardCore::work_in_hand() const noexcept {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [this](const Job& job) { return chips_[job.chip].resetting && in_hand(job); });
}

void BoardCore::finish_chip_reset(Chip& chip, std::uint32_t number) {
  chip.resetting = false;
  chip.halted = false;
  chip.engine_last = Engine::pong;
  DUET_ASSERT(chip.queue.empty());
  DUET_ASSERT(chip.engines[0] == 0 && chip.engines[1] == 0);
  if (!closing_) ++chip.resets;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (plan_.pools[i].chip == number) pools_[i].release_all();
  }
}

void BoardCore::finish_reset() {
  DUET_ASSERT(reset_scope_.has_value());
  DUET_ASSERT(!work_in_hand());
  for (std::uint32_t i = 0; i < chips_.size(); ++i) {
    if (chips_[i].resetting) finish_chip_reset(chips_[i], i);
  }
  if (!closing_) ++counters_.resets;
  const bool whole =
      *reset_scope_ == ResetScope::configuration || *reset_scope_ == ResetScope::device;
  if (whole) drop_package();
  if (closing_) {
    for (Job& job : jobs_) job = Job{};
    for (Io& io : io_) io = Io{};
    actions_first_ = actions_count_ = 0;
    for (Chip& chip : chips_) chip.trace_first = chip.trace_count = chip.trace_dropped = 0;
    state_ = BoardState::closed;
  }
  closing_ = false;
  reset_scope_.reset();
}

void BoardCore::drop_package() {
  for (Chip& chip : chips_) chip.memory.clear();
  for (Io& io : io_) io.retired = io.id != 0;
  pools_.clear();
  plan_ = BoardPlan{};
  state_ = BoardState::open;
}

result<std::uint64_t> BoardCore::allocate_io(GraphHandle graph) {
  if (auto ready = ready_for_jobs(); ready.has_error()) return ready.error();
  if (graph >= plan_.graphs.size()) {
    return Failure{errc::unknown_name, "graph handle " + std::to_string(graph) + " does not exist"};
  }
  const std::uint32_t chip = plan_.graphs[graph].chip;
  const auto live = std::count_if(io_.begin(), io_.end(), [&](const Io& io) {
    return io.id != 0 && !io.retired && io.chip == chip;
  });
  const auto free = std::find_if(io_.begin(), io_.end(), [](const Io& io) { return io.id == 0; });
  if (live >= static_cast<std::ptrdiff_t>(::duet::device::limits::io_buffers_max) ||
      free == io_.end()) {
    return Failure{errc::out_of_memory, "chip " + std::to_string(chip) + " has " +
                                            std::to_string(live) + " staging buffers already"};
  }
  const auto index = static_cast<std::uint64_t>(free - io_.begin());
  *free = Io{};
  free->id = (++serial_ << index_bits) | index;
  free->graph = graph;
  free->chip = chip;
  return free->id;
}

result<void> BoardCore::release_io(std::uint64_t buffers) {
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  Io* io = find_io(buffers);
  if (io == nullptr) {
    return Failure{errc::unknown_name, "no buffers of id " + std::to_string(buffers)};
  }
  if (io->busy) return Failure{errc::device_busy, "a job uses these buffers"};
  *io = Io{};
  return {};
}

std::uint32_t BoardCore::io_index(std::uint64_t buffers) noexcept {
  return static_cast<std::uint32_t>(buffers & ((1U << index_bits) - 1));
}

std::uint32_t BoardCore::job_index(JobTicket ticket) noexcept {
  return static_cast<std::uint32_t>(ticket & ((1U << index_bits) - 1));
}

result<KvPool*> BoardCore::pool_of(std::uint32_t chip, SequenceId sequence) {
  if (auto ready = ready_for_jobs(); ready.has_error()) return ready.error();
  if (chip >= chips_.size()) {
    return Failure{errc::bad_argument, "chip " + std::to_string(chip) + " does not exist"};
  }
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (plan_.pools[i].chip == chip && pools_[i].holds(sequence)) return &pools_[i];
  }
  return Failure{errc::bad_argument, "sequence " + std::to_string(sequence) +
                                         " is in no range of chip " + std::to_string(chip)};
}

result<void> BoardCore::kv_reserve(std::uint32_t chip, Generation generation, SequenceId sequence,
                                   std::uint32_t tokens) {
  auto pool = pool_of(chip, sequence);
  if (pool.has_error()) return pool.error();
  return pool.value()->reserve(generation, sequence, tokens);
}

result<void> BoardCore::kv_commit(std::uint32_t chip, Generation generation, SequenceId sequence,
                                  std::uint32_t tokens) {
  auto pool = pool_of(chip, sequence);
  if (pool.has_error()) return pool.error();
  return pool.value()->commit(generation, sequence, tokens);
}

result<void> BoardCore::kv_rollback(std::uint32_t chip, Generation generation,
                                    SequenceId sequence) {
  auto pool = pool_of(chip, sequence);
  if (pool.has_error()) return pool.error();
  return pool.value()->rollback(generation, sequence);
}

result<void> BoardCore::kv_release(std::uint32_t chip, Generation generation, SequenceId sequence) {
  auto pool = pool_of(chip, sequence);
  if (pool.has_error()) return pool.error();
  return pool.value()->release(generation, sequence);
}

const ChipMemory& BoardCore::memory(std::uint32_t chip) const {
  DUET_ASSERT(chip < chips_.size(), chip);
  return chips_[chip].memory;
}

result<MemoryUsage> BoardCore::memory_usage(std::uint32_t chip) const {
  if (lost_) return Failure{errc::driver_lost, "the driver was lost"};
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  if (chip >= chips_.size()) {
    return Failure{errc::bad_argument, "chip " + std::to_string(chip) + " does not exist"};
  }
  MemoryUsage usage;
  usage.chip = chip;
  if (!profile_.per_chip_memory) return usage;
  usage.total_bytes = chips_[chip].memory.capacity_bytes();
  usage.used_bytes = chips_[chip].memory.used_bytes();
  std::uint64_t total = 0;
  std::uint64_t used = 0;
  std::uint64_t peak = 0;
  std::uint64_t peak_bytes = 0;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (plan_.pools[i].chip != chip) continue;
    total += pools_[i].slots_total();
    used += pools_[i].slots_used();
    peak += pools_[i].slots_peak();
    peak_bytes += pools_[i].slots_peak() * plan_.pools[i].bytes_per_slot;
  }
  usage.kv_slots_total = total;
  usage.kv_slots_used = used;
  usage.kv_slots_peak = peak;
  usage.parts = parts_of(chips_[chip].memory);
  for (MemoryPart& part : usage.parts) {
    if (part.what == memory_line_of(SectionKind::kv)) part.peak_bytes = peak_bytes;
  }
  return usage;
}

result<Health> BoardCore::health(std::uint32_t number) const {
  if (lost_) return Failure{errc::driver_lost, "the driver was lost"};
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  if (number >= chips_.size()) {
    return Failure{errc::bad_argument, "chip " + std::to_string(number) + " does not exist"};
  }
  const Chip& chip = chips_[number];
  Health health;
  health.chip = number;
  health.queue_depth = chip.queue.size();
  health.in_flight = static_cast<std::uint64_t>(
      std::count_if(chip.engines.begin(), chip.engines.end(), [](auto job) { return job != 0; }));
  health.jobs_completed = chip.jobs_done;
  health.jobs_failed = chip.jobs_failed;
  health.resets = chip.resets;
  return health;
}

result<Trace> BoardCore::take_trace(std::uint32_t number) {
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  if (number >= chips_.size()) {
    return Failure{errc::bad_argument, "chip " + std::to_string(number) + " does not exist"};
  }
  Chip& chip = chips_[number];
  Trace taken;
  taken.dropped = std::exchange(chip.trace_dropped, 0);
  taken.events.reserve(chip.trace_count);
  for (std::size_t i = 0; i < chip.trace_count; ++i) {
    taken.events.push_back(chip.trace[(chip.trace_first + i) % chip.trace.size()]);
  }
  chip.trace_first = chip.trace_count = 0;
  return taken;
}

}   // namespace duet::device::emulator
