// threaded_board_jobs.cpp: jobs from submit to wait, and who carries out what the core asks for.
// One file, because all that happens to a job under the lock must be seen at once.
#include "device/emulator/threaded_board_impl.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace duet::device::emulator {
namespace {

/// SerialRunner by another name: that one would bind the driver to the kernels' library.
class OneThread final : public CoreRunner {
 public:
  void run_cores(void (*body)(void* context, std::uint32_t core), void* context) override {
    body(context, 0);
    body(context, 1);
  }
  [[nodiscard]] bool parallel() const override { return false; }
};

}   // namespace

result<JobTicket> ThreadedBoard::Impl::submit(const VendorJob& job) {
  std::unique_lock lock{mutex_};
  std::span<const std::uint32_t> tokens;
  const std::uint32_t index = BoardCore::io_index(job.buffers);
  if (index < staging_.size() && staging_[index].id == job.buffers) {
    tokens = staging_[index].tokens;
  }
  catch_up(lock);
  auto ticket = core_.submit(job, tokens, chip_now());
  drive(lock);
  // Its events may come before the one that a wait sleeps for.
  if (timed()) wake_all();
  return ticket;
}

result<VendorJobEnd> ThreadedBoard::Impl::wait(JobTicket ticket, TimePoint deadline) {
  std::unique_lock lock{mutex_};
  catch_up(lock);
  if (auto begun = core_.begin_wait(ticket, chip_now()); begun.has_error()) return begun.error();
  std::condition_variable& ended = ended_[BoardCore::job_index(ticket)];
  ++waiters_;
  std::optional<result<VendorJobEnd>> answer;   // a sentence is made only where one is needed
  for (bool late = false;;) {
    catch_up(lock);
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
    // A timed board has no thread of its own: those who wait sleep until its next event.
    const auto event = timed() ? core_.next_event() : std::nullopt;
    const TimePoint until =
        event ? std::min(deadline, TimePoint{opened_at_ + std::chrono::nanoseconds{*event}})
              : deadline;
    if (until == no_deadline) {
      ended.wait(lock);
    } else {
      const bool timeout = ended.wait_until(lock, until) == std::cv_status::timeout;
      late = timeout && until == deadline;
    }
  }
  if (--waiters_ == 0) idle_.notify_all();
  if (answer) return *std::move(answer);
  return Failure{errc::wait_timeout, "the deadline has passed"};
}

result<CancelEffect> ThreadedBoard::Impl::cancel(JobTicket ticket) {
  std::unique_lock lock{mutex_};
  catch_up(lock);
  auto effect = core_.cancel(ticket, chip_now());
  drive(lock);
  if (timed()) wake_all();
  return effect;
}

void ThreadedBoard::Impl::catch_up(std::unique_lock<std::mutex>& lock) {
  if (!timed()) return;
  core_.advance(chip_now());
  drive(lock);
}

void ThreadedBoard::Impl::drive(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    const auto action = core_.next_action();
    if (!action) {
      if (real()) break;
      // A null board's events are due when they are made.
      const auto event = core_.next_event();
      if (!event || (timed() && *event > chip_now())) break;
      core_.advance(*event);
      continue;
    }
    if (const auto* start = std::get_if<StartTransfer>(&*action)) {
      transfer(lock, *start);
    } else if (const auto* made_up = std::get_if<StartCompute>(&*action);
               made_up != nullptr && !real()) {
      make_up(*made_up);
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

void ThreadedBoard::Impl::make_up(const StartCompute& action) {
  const JobView job = core_.view(action.ticket);
  HostStaging& host = staging_[BoardCore::io_index(job.buffers)];
  DUET_ASSERT(host.id == job.buffers && made_up_ != nullptr);
  boost::system::error_code status;
  if (action.spoil_output) {
    status = errc::bad_output;
  } else {
    const std::uint32_t token =
        made_up_->next_token(job, host.tokens.first(job.tokens), options_.faults);
    // The buffer holds 0 everywhere else: two writes in place of a whole vocabulary.
    host.logits[host.made_up] = 0;
    host.logits[token] = made_up_logit;
    host.made_up = token;
  }
  core_.compute_done(action.ticket, status, action.at, action.at);
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

}   // namespace duet::device::emulator
