// chip_session.cpp: reserve, submit, commit; fence first.
#include "actors/chip_session.hpp"

#include "actors/limits.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <utility>

namespace duet::actors {

ChipSession::ChipSession(device::Device& device, ChipSessionSetup setup,
                         runtime::Ref<ModelWorkerMessage> worker,
                         runtime::Ref<DeviceSupervisorMessage> supervisor,
                         std::shared_ptr<ChipCounters> counters)
    : device_(device),
      setup_(std::move(setup)),
      worker_(std::move(worker)),
      supervisor_(std::move(supervisor)),
      counters_(std::move(counters)) {
  for (const device::IoBuffers& io : setup_.buffers) buffers_.push_back({io, false});
}

/// Whatever still comes of a job that was not waited for is stale.
ChipSession::~ChipSession() {
  counters_->completions_stale.fetch_add(running_.size(), std::memory_order_relaxed);
}

device::SequenceId ChipSession::device_sequence(SequenceNumber sequence) const {
  const auto range = setup_.sequence_last - setup_.sequence_first + 1;
  return setup_.sequence_first + (range == 0 ? sequence : sequence % range);
}

std::optional<std::size_t> ChipSession::free_buffer(device::GraphKind graph) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].busy && buffers_[i].io.graph == graph) return i;
  }
  return std::nullopt;
}

void ChipSession::on(RunJob command) {
  DUET_ASSERT(waiting_.size() < limits::orders_max, waiting_.size());
  waiting_.push_back({std::move(command.order), std::nullopt});
  submit_waiting();
}

void ChipSession::on(AskJob command) {
  DUET_ASSERT(waiting_.size() < limits::orders_max, waiting_.size());
  waiting_.push_back({std::move(command.order), std::move(command.reply)});
  submit_waiting();
}

void ChipSession::submit_waiting() {
  while (!waiting_.empty() && running_.size() < setup_.inflight_max) {
    if (!submit(waiting_.front())) break;
    waiting_.erase(waiting_.begin());
  }
  set_waits_for(!running_.empty() ? "completion" : !waiting_.empty() ? "buffer" : nullptr);
}

bool ChipSession::submit(Order& order) {
  const JobOrder& what = order.what;
  const auto free = free_buffer(what.graph);
  if (!free) return false;   // a ReturnBuffer comes: every lease is given back
  Buffer& buffer = buffers_[*free];
  const device::SequenceId sequence = device_sequence(what.sequence);
  const auto count = what.graph == device::GraphKind::prefill
                         ? static_cast<std::uint32_t>(what.prompt->size())
                         : 1U;
  DUET_ASSERT(count <= buffer.io.tokens.size(), count, buffer.io.tokens.size());
  auto step =
      device_.kv_reserve(setup_.session.session, setup_.session.generation, sequence, count);
  if (!step) {
    fail(order, make_error_code(step.error().code));
    return true;
  }
  if (what.graph == device::GraphKind::prefill) {
    std::copy(what.prompt->begin(), what.prompt->end(), buffer.io.tokens.begin());
  } else {
    buffer.io.tokens[0] = what.token;
  }
  device::JobRequest job;
  job.job = ++jobs_made_;
  job.session = setup_.session.session;
  job.generation = setup_.session.generation;
  job.graph = what.graph;
  job.sequence = sequence;
  job.past = what.past;
  job.tokens = count;
  job.buffers = buffer.io.id;
  job.deadline = now() + setup_.job_deadline;
  if (auto accepted = device_.submit(job); !accepted) {
    fail(order, make_error_code(accepted.error().code));
    return true;
  }
  buffer.busy = true;
  counters_->jobs_submitted.fetch_add(1, std::memory_order_relaxed);
  const SequenceNumber number = what.sequence;
  // Only the first job of a sequence is news to its worker.
  const bool news = !order.reply.has_value() && what.graph == device::GraphKind::prefill;
  running_.push_back({job.job, std::move(order), *free});

  if (news) worker_.send(JobAccepted{setup_.session.generation, number});
  return true;
}

void ChipSession::fail(Order& order, boost::system::error_code code) {
  answer(order, JobEnded(setup_.session.generation, order.what.sequence, code, LogitsLease()));
}

void ChipSession::answer(Order& order, JobEnded ended) {
  if (order.reply.has_value()) {
    (*order.reply)(std::move(ended));
  } else {
    worker_.send(std::move(ended));
  }
}

void ChipSession::on(JobDone fact) {
  const device::JobResult& result = fact.result;
  if (result.session != setup_.session.session || result.generation != setup_.session.generation) {
    counters_->completions_stale.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const auto running = std::find_if(running_.begin(), running_.end(),
                                    [&](const Running& r) { return r.job == result.job; });
  if (running == running_.end()) {   // told twice
    counters_->completions_stale.fetch_add(1, std::memory_order_relaxed);
    return;
  }

  Running job = std::move(*running);
  running_.erase(running);
  Buffer& buffer = buffers_[job.buffer];
  const device::SequenceId sequence = device_sequence(job.order.what.sequence);
  JobEnded ended(result.generation, job.order.what.sequence, result.status, LogitsLease());
  if (!result.status.failed()) {
    const auto tokens = result.kv_after - result.kv_before;
    const auto committed =
        device_.kv_commit(setup_.session.session, setup_.session.generation, sequence, tokens);
    if (!committed) ended.status = make_error_code(committed.error().code);
  } else if (result.settled) {
    static_cast<void>(
        device_.kv_rollback(setup_.session.session, setup_.session.generation, sequence));
  }
  if (!ended.status.failed()) {
    ended.logits = LogitsLease(buffer.io.logits, address(), buffer.io.id);
    counters_->jobs_done.fetch_add(1, std::memory_order_relaxed);
    counters_->last_progress.store(now().time_since_epoch().count(), std::memory_order_relaxed);
  } else {
    counters_->jobs_failed.fetch_add(1, std::memory_order_relaxed);
    if (result.settled) {
      buffer.busy = false;
    } else {
      unsettled_.push_back({job.job, job.buffer});
    }
  }
  const auto releasing = std::find(releasing_.begin(), releasing_.end(), ended.sequence);
  if (releasing != releasing_.end()) {
    releasing_.erase(releasing);
    static_cast<void>(
        device_.kv_release(setup_.session.session, setup_.session.generation, sequence));
  }

  const boost::system::error_code status = ended.status;
  answer(job.order, std::move(ended));
  if (status.failed() && status != device::errc::device_busy) {
    supervisor_.send(SessionFault(setup_.chip, setup_.session.generation, status));
  }
  submit_waiting();
}

void ChipSession::on(JobSettled fact) {
  const auto settled = std::find_if(unsettled_.begin(), unsettled_.end(),
                                    [&](const Unsettled& u) { return u.job == fact.job; });
  if (fact.generation != setup_.session.generation || settled == unsettled_.end()) {
    counters_->completions_stale.fetch_add(1, std::memory_order_relaxed);
    return;
  }

  buffers_[settled->buffer].busy = false;
  unsettled_.erase(settled);

  submit_waiting();
}

void ChipSession::on(ReleaseSequence command) {
  const bool running = std::any_of(running_.begin(), running_.end(), [&](const Running& r) {
    return r.order.what.sequence == command.sequence;
  });
  if (running) {
    releasing_.push_back(command.sequence);
    return;
  }
  static_cast<void>(device_.kv_release(setup_.session.session, setup_.session.generation,
                                       device_sequence(command.sequence)));
}

void ChipSession::on(ReturnBuffer command) {
  const auto buffer = std::find_if(buffers_.begin(), buffers_.end(),
                                   [&](const Buffer& b) { return b.io.id == command.buffer; });
  DUET_ASSERT(buffer != buffers_.end() && buffer->busy, command.buffer);
  buffer->busy = false;
  submit_waiting();
}

void LogitsLease::give_back() noexcept {
  const std::uint64_t buffer = std::exchange(buffer_, 0);
  if (buffer != 0) runtime::Ref<ChipSessionMessage>(session_).send(ReturnBuffer{buffer});
}

runtime::Properties ChipSession::snapshot() const {
  const auto count = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  const auto busy = std::count_if(buffers_.begin(), buffers_.end(),
                                  [](const Buffer& buffer) { return buffer.busy; });
  return {{"chip", count(setup_.chip)},
          {"generation", count(setup_.session.generation)},
          {"jobs_made", count(jobs_made_)},
          {"jobs_waiting", count(waiting_.size())},
          {"jobs_running", count(running_.size())},
          {"jobs_unsettled", count(unsettled_.size())},
          {"sequences_releasing", count(releasing_.size())},
          {"buffers_busy", busy},
          {"buffers", count(buffers_.size())}};
}

void JobSink::connect(runtime::Ref<ChipSessionMessage> session) {
  session_ = std::move(session);
}

void JobSink::on_call(device::CallDone&&) noexcept {}

void JobSink::on_job(const device::JobResult& done) noexcept {
  session_.send_and_run(JobDone{done});
}

void JobSink::on_settled(device::SessionId session, device::Generation generation,
                         device::JobId job) noexcept {
  session_.send(JobSettled{session, generation, job});
}

}   // namespace duet::actors
