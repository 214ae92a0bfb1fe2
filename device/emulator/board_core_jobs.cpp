// board_core_jobs.cpp: a job's way from submit over link, cores and link to its end. One file,
// because every change of a job's phase must be seen at once.
#include "device/emulator/board_core.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <utility>

namespace duet::device::emulator {
namespace {

constexpr std::uint32_t index_bits = 8;

// A package whose figures are absurd must not make a time that overflows.
constexpr double compute_seconds_max = 3600;

Failure bad(std::string sentence) {
  return {errc::bad_argument, std::move(sentence)};
}

std::size_t engine_index(Engine engine) noexcept {
  return engine == Engine::pong ? 1 : 0;
}

Engine other(Engine engine) noexcept {
  return engine == Engine::ping ? Engine::pong : Engine::ping;
}

}   // namespace

BoardCore::Job* BoardCore::find_job(JobTicket ticket) noexcept {
  return const_cast<Job*>(std::as_const(*this).find_job(ticket));
}

const BoardCore::Job* BoardCore::find_job(JobTicket ticket) const noexcept {
  const std::uint32_t index = job_index(ticket);
  if (ticket == 0 || index >= jobs_.size()) return nullptr;
  const Job& job = jobs_[index];
  return job.phase != Phase::free && job.ticket == ticket ? &job : nullptr;
}

BoardCore::Job* BoardCore::free_job(std::uint32_t chip) noexcept {
  const std::size_t first = std::size_t{chip} * profile_.jobs_per_chip_max;
  for (std::size_t i = first; i < first + profile_.jobs_per_chip_max; ++i) {
    if (jobs_[i].phase == Phase::free) return &jobs_[i];
  }
  return nullptr;
}

BoardCore::Io* BoardCore::find_io(std::uint64_t id) noexcept {
  return const_cast<Io*>(std::as_const(*this).find_io(id));
}

const BoardCore::Io* BoardCore::find_io(std::uint64_t id) const noexcept {
  const std::uint32_t index = io_index(id);
  return id != 0 && index < io_.size() && io_[index].id == id ? &io_[index] : nullptr;
}

result<void> BoardCore::check_job(const VendorJob& job,
                                  std::span<const std::uint32_t> tokens) const {
  if (job.graph >= plan_.graphs.size()) {
    return Failure{errc::unknown_name,
                   "graph handle " + std::to_string(job.graph) + " does not exist"};
  }
  const GraphPlan& graph = plan_.graphs[job.graph];
  const Chip& chip = chips_[graph.chip];
  // Made when it is needed: a good job allocates nothing.
  const auto where = [&graph] { return "graph \"" + graph.name + "\": "; };
  if (chip.halted) {
    return Failure{errc::ccu_exception,
                   "chip " + std::to_string(graph.chip) + " is halted until it is reset"};
  }
  if (chip.resetting) return Failure{errc::device_busy, where() + "its chip is being reset"};
  if (job.tokens == 0 || job.tokens > graph.tokens_max) {
    return bad(where() + std::to_string(job.tokens) + " tokens; a job has 1 to " +
               std::to_string(graph.tokens_max));
  }
  if (job.past > graph.context - job.tokens) {
    return bad(where() + std::to_string(job.past) + " past and " + std::to_string(job.tokens) +
               " new positions pass the context of " + std::to_string(graph.context));
  }
  if (graph.kind == GraphKind::prefill && !graph.split_prefill && job.past != 0) {
    return bad(where() + "a prompt must be given in one prefill job");
  }
  const Io* io = find_io(job.buffers);
  if (io == nullptr) {
    return Failure{errc::unknown_name, "no buffers of id " + std::to_string(job.buffers)};
  }
  if (io->retired || io->graph != job.graph)
    return bad(where() + "the buffers are not this graph's");
  if (io->busy) return Failure{errc::device_busy, where() + "another job uses the buffers"};
  if (tokens.size() < job.tokens) return bad(where() + "the input buffer is shorter than the job");
  for (std::uint32_t i = 0; i < job.tokens; ++i) {
    if (tokens[i] >= graph.vocabulary) {
      return bad(where() + "token " + std::to_string(tokens[i]) + " at " + std::to_string(i) +
                 " is not below the vocabulary's " + std::to_string(graph.vocabulary));
    }
  }
  return {};
}

result<JobTicket> BoardCore::submit(const VendorJob& request, std::span<const std::uint32_t> tokens,
                                    ChipNanoseconds now) {
  const auto refuse = [this](Failure failure) -> result<JobTicket> {
    ++counters_.jobs_refused;
    return failure;
  };
  if (auto ready = ready_for_jobs(); ready.has_error()) return refuse(ready.error());
  if (auto fine = check_job(request, tokens); fine.has_error()) return refuse(fine.error());
  const GraphPlan& graph = plan_.graphs[request.graph];
  FaultSite site;
  site.chip = graph.chip;
  site.graph = graph.kind;
  site.job = request.job;
  if (auto fine = usable(now, FaultPoint::submit, site); fine.has_error()) {
    return refuse(fine.error());
  }
  Job* job = free_job(graph.chip);
  if (job == nullptr) {
    return refuse({errc::queue_full, "chip " + std::to_string(graph.chip) + " holds " +
                                         std::to_string(profile_.jobs_per_chip_max) + " jobs"});
  }
  KvPool& pool = pools_[graph.pool];
  auto slot = pool.begin_job(request.generation, request.sequence, request.past, request.tokens);
  if (slot.has_error()) return refuse(slot.error());
  const auto index = static_cast<std::uint8_t>(job - jobs_.data());
  *job = Job{};
  job->phase = Phase::queued;
  job->ticket = (++serial_ << index_bits) | index;
  job->request = request;
  job->kind = graph.kind;
  job->chip = graph.chip;
  job->slot = slot.value().slot;
  job->kv_before = slot.value().committed;
  job->times.submitted = now;
  find_io(request.buffers)->busy = true;
  chips_[graph.chip].queue.push_back(index);
  ++counters_.jobs_submitted;
  const JobTicket ticket = job->ticket;
  dispatch(graph.chip, now);
  return ticket;
}

void BoardCore::dispatch(std::uint32_t number, ChipNanoseconds now) {
  Chip& chip = chips_[number];
  if (chip.resetting || chip.halted) return;
  // In order of submission, except that a job that asked for a busy engine does not hold up one
  // behind it that can go to the other.
  for (std::size_t i = 0; i < chip.queue.size();) {
    const std::uint8_t index = chip.queue[i];
    Job& job = jobs_[index];
    Engine engine = job.request.engine;
    if (engine == Engine::automatic) {
      engine = other(chip.engine_last);
      if (chip.engines[engine_index(engine)] != 0) engine = other(engine);
    }
    if (chip.engines[engine_index(engine)] != 0) {
      ++i;
      continue;
    }
    chip.engines[engine_index(engine)] = static_cast<std::uint8_t>(index + 1);
    chip.engine_last = engine;
    chip.queue.erase(chip.queue.begin() + static_cast<std::ptrdiff_t>(i));
    job.engine = engine;
    job.phase = Phase::h2d_wait;
    link_queue_.push_back(index);
  }
  pump_link(now);
}

ChipNanoseconds BoardCore::transfer_time(const Job& job) const noexcept {
  if (profile_.compute == Compute::null) return 0;
  const std::uint64_t bytes =
      4 * std::uint64_t{job.phase == Phase::h2d ? job.request.tokens
                                                : plan_.graphs[job.request.graph].vocabulary};
  // At most 2^26 bytes, so the product fits; rounded up, so that no transfer is free.
  const std::uint64_t rate = profile_.pcie_bytes_per_second;
  return profile_.pcie_latency + (bytes * 1'000'000'000 + rate - 1) / rate;
}

ChipNanoseconds BoardCore::compute_time(const Job& job) const noexcept {
  const GraphPlan& graph = plan_.graphs[job.request.graph];
  const double tokens = job.request.tokens;
  const double positions = job.request.past + tokens;
  const double bytes = static_cast<double>(graph.weight_bytes) +
                       positions * static_cast<double>(graph.kv_bytes_per_token);
  const double operations = tokens * static_cast<double>(graph.operations_per_token);
  const double seconds = std::max(bytes / static_cast<double>(profile_.dram_bytes_per_second),
                                  operations / static_cast<double>(profile_.operations_per_second));
  return profile_.job_overhead +
         static_cast<ChipNanoseconds>(std::min(seconds, compute_seconds_max) * 1e9);
}

void BoardCore::pump_link(ChipNanoseconds now) {
  if (link_job_ || link_queue_.empty()) return;
  const std::uint8_t index = link_queue_.front();
  link_queue_.erase(link_queue_.begin());
  Job& job = jobs_[index];
  DUET_ASSERT(job.phase == Phase::h2d_wait || job.phase == Phase::d2h_wait);
  const bool in = job.phase == Phase::h2d_wait;
  job.phase = in ? Phase::h2d : Phase::d2h;
  if (in) trace(TraceKind::queue, job, job.times.submitted, now);
  link_job_ = index;
  if (profile_.transfers == TransferTiming::modelled) {
    link_begin_ = now;
    link_end_ = now + transfer_time(job);
  } else {
    emit(StartTransfer{job.ticket, job.chip,
                       in ? Direction::host_to_device : Direction::device_to_host});
  }
}

std::optional<ChipNanoseconds> BoardCore::next_event() const noexcept {
  std::optional<ChipNanoseconds> next;
  if (profile_.transfers == TransferTiming::modelled && link_job_) next = link_end_;
  for (const Chip& chip : chips_) {
    if (!chip.elapsing) continue;
    const ChipNanoseconds end = jobs_[*chip.elapsing].times.compute_end;
    if (!next || end < *next) next = end;
  }
  return next;
}

void BoardCore::advance(ChipNanoseconds now) {
  const bool made_up = profile_.compute != Compute::real;
  // Each turn ends one transfer or computation, and there are at most three a job.
  for (auto next = next_event(); next && *next <= now; next = next_event()) {
    if (made_up && actions_count_ != 0) return;
    const auto ends = [&](const Chip& chip) {
      return chip.elapsing && jobs_[*chip.elapsing].times.compute_end == *next;
    };
    // At equal times a computation goes first, the lower chip before the other.
    const auto chip = std::find_if(chips_.begin(), chips_.end(), ends);
    if (chip != chips_.end()) {
      Job& job = jobs_[*std::exchange(chip->elapsing, std::nullopt)];
      after_compute(job, {}, *next);
    } else {
      Job& job = jobs_[*link_job_];
      link_job_.reset();
      after_transfer(job, link_begin_, link_end_);
    }
  }
}

void BoardCore::transfer_done(JobTicket ticket, ChipNanoseconds begin, ChipNanoseconds end) {
  Job* job = find_job(ticket);
  DUET_ASSERT(job != nullptr, ticket);
  DUET_ASSERT(profile_.transfers == TransferTiming::performed);
  DUET_ASSERT(link_job_ && &jobs_[*link_job_] == job);
  link_job_.reset();
  after_transfer(*job, begin, std::max(begin, end));
}

void BoardCore::after_transfer(Job& job, ChipNanoseconds begin, ChipNanoseconds end) {
  DUET_ASSERT(job.phase == Phase::h2d || job.phase == Phase::d2h);
  const std::uint32_t chip = job.chip;
  const bool in = job.phase == Phase::h2d;
  (in ? job.times.h2d_begin : job.times.d2h_begin) = begin;
  (in ? job.times.h2d_end : job.times.d2h_end) = end;
  trace(in ? TraceKind::h2d : TraceKind::d2h, job, begin, end);
  if (job.doomed) {
    end_job(job, job.status, end);
  } else if (in) {
    job.phase = Phase::ready;
    pump_compute(chip, end);
  } else {
    end_job(job, {}, end);
  }
  pump_link(end);
}

void BoardCore::pump_compute(std::uint32_t number, ChipNanoseconds now) {
  const Chip& chip = chips_[number];
  if (chip.resetting || chip.halted) return;
  Job* next = nullptr;
  for (const std::uint8_t entry : chip.engines) {
    if (entry == 0) continue;
    Job& job = jobs_[entry - 1U];
    // The cores of a chip are one resource: a second job waits here while its input is in place.
    if (job.phase == Phase::compute || job.phase == Phase::elapsing || job.phase == Phase::hung) {
      return;
    }
    if (job.phase != Phase::ready) continue;
    if (next == nullptr || job.ticket < next->ticket) next = &job;
  }
  if (next != nullptr) start_compute(*next, now);
}

void BoardCore::start_compute(Job& job, ChipNanoseconds now) {
  FaultSite site;
  site.point = FaultPoint::compute_start;
  site.chip = job.chip;
  site.graph = job.kind;
  site.job = job.request.job;
  site.now = now;
  const Fault fault = consult(site);
  switch (fault.effect) {
    case Fault::Effect::fail:
      job.phase = Phase::compute;
      compute_done(job.ticket, fault.code, now, now);
      return;
    case Fault::Effect::never_ends:
      job.phase = Phase::hung;
      job.times.compute_begin = job.times.compute_end = now;
      return;
    case Fault::Effect::none:
    case Fault::Effect::spoil_output:
      job.phase = Phase::compute;
      emit(StartCompute{job.ticket, job.chip, now, fault.effect == Fault::Effect::spoil_output});
      return;
  }
}

void BoardCore::compute_done(JobTicket ticket, boost::system::error_code status,
                             ChipNanoseconds begin, ChipNanoseconds end) {
  Job* job = find_job(ticket);
  DUET_ASSERT(job != nullptr, ticket);
  DUET_ASSERT(job->phase == Phase::compute);
  job->times.compute_begin = begin;
  job->times.compute_end = std::max(begin, end);
  if (profile_.compute == Compute::timed && !status && !job->doomed) {
    Chip& chip = chips_[job->chip];
    DUET_ASSERT(!chip.elapsing, job->chip);
    job->phase = Phase::elapsing;
    job->times.compute_end = begin + compute_time(*job);
    chip.elapsing = static_cast<std::uint8_t>(job - jobs_.data());
    return;
  }
  after_compute(*job, status, job->times.compute_end);
}

void BoardCore::after_compute(Job& job, boost::system::error_code status, ChipNanoseconds end) {
  const std::uint32_t chip = job.chip;
  trace(TraceKind::compute, job, job.times.compute_begin, end);
  if (!job.doomed && !status) {
    FaultSite site;
    site.point = FaultPoint::compute_end;
    site.chip = chip;
    site.graph = job.kind;
    site.job = job.request.job;
    site.now = end;
    const Fault fault = consult(site);
    if (fault.effect == Fault::Effect::fail) status = fault.code;
  }
  if (job.doomed) {
    end_job(job, job.status, end);
  } else if (status) {
    const bool halts = status == errc::ccu_exception;
    // First, so that the engine that becomes idle is not given away.
    if (halts) chips_[chip].halted = true;
    end_job(job, status, end);
    if (halts) end_halted_jobs(chip, end);
  } else {
    job.phase = Phase::d2h_wait;
    link_queue_.push_back(static_cast<std::uint8_t>(&job - jobs_.data()));
  }
  pump_compute(chip, end);
  pump_link(end);
}

void BoardCore::end_halted_jobs(std::uint32_t number, ChipNanoseconds now) {
  DUET_ASSERT(chips_[number].halted, number);
  for (Job& job : jobs_) {
    if (job.phase == Phase::free || job.phase == Phase::ended || job.chip != number) continue;
    // Results that were computed before the exception still reach the host.
    if (job.phase == Phase::d2h || job.phase == Phase::d2h_wait) continue;
    if (in_hand(job)) {
      job.doomed = true;
      job.status = errc::ccu_exception;
    } else {
      end_job(job, errc::ccu_exception, now);
    }
  }
}

bool BoardCore::in_hand(const Job& job) const noexcept {
  if (job.phase == Phase::compute) return true;
  return profile_.transfers == TransferTiming::performed &&
         (job.phase == Phase::h2d || job.phase == Phase::d2h);
}

void BoardCore::doom_jobs(std::uint32_t chip, ChipNanoseconds now) {
  for (Job& job : jobs_) {
    if (job.phase == Phase::free || job.phase == Phase::ended || job.chip != chip) continue;
    if (in_hand(job)) {
      job.doomed = true;
      job.status = errc::stale_generation;
    } else {
      end_job(job, errc::stale_generation, now);
    }
  }
  pump_link(now);
}

void BoardCore::unlink(std::uint8_t index) {
  Chip& chip = chips_[jobs_[index].chip];
  std::erase(chip.queue, index);
  std::erase(link_queue_, index);
  if (link_job_ == index) link_job_.reset();
  if (chip.elapsing == index) chip.elapsing.reset();
  for (std::uint8_t& entry : chip.engines) {
    if (entry == index + 1) entry = 0;
  }
}

void BoardCore::end_job(Job& job, boost::system::error_code status, ChipNanoseconds now) {
  DUET_ASSERT(job.phase != Phase::free && job.phase != Phase::ended);
  Chip& chip = chips_[job.chip];
  unlink(static_cast<std::uint8_t>(&job - jobs_.data()));
  job.phase = Phase::ended;
  job.doomed = false;
  job.status = status;
  ++(status ? chip.jobs_failed : chip.jobs_done);
  ++(status ? counters_.jobs_failed : counters_.jobs_done);
  pools_[plan_.graphs[job.request.graph].pool].end_job(job.slot, job.request.tokens, !status);
  Io* io = find_io(job.request.buffers);
  DUET_ASSERT(io != nullptr && io->busy, job.request.buffers);
  io->busy = false;
  emit(JobEnded{job.ticket});
  dispatch(job.chip, now);
}

result<CancelEffect> BoardCore::cancel(JobTicket ticket, ChipNanoseconds now) {
  if (lost_) return Failure{errc::driver_lost, "the driver was lost"};
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  Job* job = find_job(ticket);
  if (job == nullptr) {
    return Failure{errc::unknown_name, "no job of ticket " + std::to_string(ticket)};
  }
  switch (job->phase) {
    case Phase::queued:
    case Phase::h2d_wait:
    case Phase::ready:
      end_job(*job, errc::cancelled, now);
      return CancelEffect::removed_from_queue;
    case Phase::h2d:
    case Phase::compute:
    case Phase::elapsing:
    case Phase::hung:
    case Phase::d2h_wait:
    case Phase::d2h:
      return CancelEffect::delivery_only;
    case Phase::ended:
      return CancelEffect::already_done;
    case Phase::free:
      break;
  }
  DUET_UNREACHABLE();
}

result<void> BoardCore::begin_wait(JobTicket ticket, ChipNanoseconds now) {
  if (lost_) return Failure{errc::driver_lost, "the driver was lost"};
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  const Job* job = find_job(ticket);
  if (job == nullptr) {
    return Failure{errc::unknown_name, "no job of ticket " + std::to_string(ticket)};
  }
  FaultSite site;
  site.chip = job->chip;
  site.graph = job->kind;
  site.job = job->request.job;
  return usable(now, FaultPoint::wait, site);
}

result<std::optional<VendorJobEnd>> BoardCore::take_end(JobTicket ticket) {
  if (lost_) return Failure{errc::driver_lost, "the driver was lost"};
  if (state_ == BoardState::closed) return Failure{errc::not_open, "the board is closed"};
  Job* job = find_job(ticket);
  if (job == nullptr) {
    return Failure{errc::unknown_name, "no job of ticket " + std::to_string(ticket)};
  }
  if (job->phase != Phase::ended) return std::optional<VendorJobEnd>{};
  VendorJobEnd end;
  end.status = job->status;
  end.engine = job->engine;
  end.kv_before = job->kv_before;
  end.kv_after = job->kv_before + (job->status ? 0 : job->request.tokens);
  end.times = job->times;
  *job = Job{};
  return std::optional<VendorJobEnd>{end};
}

JobView BoardCore::view(JobTicket ticket) const {
  const Job* job = find_job(ticket);
  DUET_ASSERT(job != nullptr && job->phase != Phase::ended, ticket);
  JobView view;
  view.graph = job->request.graph;
  view.engine = job->engine;
  view.chip = job->chip;
  view.pool = plan_.graphs[job->request.graph].pool;
  view.slot = job->slot;
  view.past = job->request.past;
  view.tokens = job->request.tokens;
  view.buffers = job->request.buffers;
  view.doomed = job->doomed;
  return view;
}

void BoardCore::trace(TraceKind kind, const Job& job, ChipNanoseconds begin,
                      ChipNanoseconds end) noexcept {
  TraceEvent event;
  event.kind = kind;
  event.chip = job.chip;
  event.session = job.request.session;
  event.generation = job.request.generation;
  event.graph = job.kind;
  event.engine = job.engine;
  event.job = job.request.job;
  event.begin = begin;
  event.end = std::max(begin, end);
  Chip& chip = chips_[job.chip];
  if (chip.trace_count == chip.trace.size()) {
    chip.trace[chip.trace_first] = event;
    chip.trace_first = (chip.trace_first + 1) % chip.trace.size();
    ++chip.trace_dropped;
  } else {
    chip.trace[(chip.trace_first + chip.trace_count++) % chip.trace.size()] = event;
  }
}

void BoardCore::emit(BoardAction action) {
  DUET_ASSERT(actions_count_ < actions_.size(), actions_count_);
  actions_[(actions_first_ + actions_count_++) % actions_.size()] = action;
}

std::optional<BoardAction> BoardCore::next_action() {
  if (actions_count_ == 0) return std::nullopt;
  const BoardAction action = actions_[actions_first_];
  actions_first_ = (actions_first_ + 1) % actions_.size();
  --actions_count_;
  return action;
}

}   // namespace duet::device::emulator
