// combined_session.cpp: a job from submission to settlement, and the books beside it.
#include "device/calrt/combined_session.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace duet::device {

/// One job in flight. It lies ready in its lane and is used again for the next job.
class CombinedSession::Job final : public runtime::BlockingCall {
 public:
  void run() noexcept override;
  void finish(bool ran) noexcept override;

  std::shared_ptr<CombinedSession> session;   // while in flight
  JobRequest request;
  GraphHandle graph = 0;
  KvOrders orders;
  JobResult result;         // written by the lane's thread
  bool told = false;        // the runtime carried out `orders`
  bool in_flight = false;   // guarded by the session's lock, as what follows
  bool started = false;
  bool cancelled = false;
  bool completed = false;   // on_job was called, or another thread is about to
};

struct CombinedSession::Lane {
  std::unique_ptr<runtime::CompletionLane> lane;
  std::shared_ptr<Job> job;
};

/// Tells the runtime of freed slots when no job comes along to do it.
class CombinedSession::ReleaseCall final : public runtime::BlockingCall {
 public:
  void run() noexcept override { session->tell_releases(); }
  void finish(bool) noexcept override {
    const std::shared_ptr<CombinedSession> keep = std::move(session);
    const std::lock_guard lock(keep->lock_);
    queued = false;
  }

  std::shared_ptr<CombinedSession> session;   // while queued
  bool queued = false;                        // guarded by the session's lock
};

namespace {

// A job may wait behind one release call in its lane.
constexpr std::size_t lane_queued_max = 2;

/// The result of a job that changed nothing, as far as anyone knows.
JobResult outcome_of(const JobRequest& request, errc error) {
  JobResult outcome;
  outcome.job = request.job;
  outcome.session = request.session;
  outcome.generation = request.generation;
  outcome.graph = request.graph;
  outcome.engine = request.engine;
  outcome.sequence = request.sequence;
  outcome.status = make_error_code(error);
  outcome.kv_before = outcome.kv_after = request.past;
  return outcome;
}

}   // namespace

CombinedSession::CombinedSession(VendorRuntime& runtime, runtime::CompletionSource& source,
                                 SessionState state, ChipSessionOptions options, Sink jobs)
    : runtime_(runtime),
      source_(source),
      options_(options),
      jobs_sink_(std::move(jobs)),
      state_(state),
      release_call_(std::make_unique<ReleaseCall>()) {
  buffers_.reserve(limits::io_buffers_max);
  quarantine_.reserve(limits::quarantine_max);
  for (std::uint32_t i = 0; i < options_.inflight_max; ++i) lanes_.push_back(make_lane());
}

CombinedSession::~CombinedSession() = default;

std::unique_ptr<CombinedSession::Lane> CombinedSession::make_lane() {
  auto lane = std::make_unique<Lane>();
  lane->lane = source_.open_lane("chip" + std::to_string(options_.chip) + "-job", lane_queued_max);
  lane->job = std::make_shared<Job>();
  return lane;
}

SessionState CombinedSession::state() const {
  const std::lock_guard lock(lock_);
  return state_;
}

bool CombinedSession::idle_locked() const {
  return std::none_of(lanes_.begin(), lanes_.end(),
                      [](const auto& lane) { return lane->job->in_flight; });
}

bool CombinedSession::idle() const {
  const std::lock_guard lock(lock_);
  return idle_locked();
}

void CombinedSession::bind(BoundModel model, Generation generation) {
  const std::lock_guard lock(lock_);
  DUET_ASSERT(idle_locked() && generation > state_.generation, generation, state_.generation);
  model_ = model;
  kv_.emplace(model.kv);
  releases_.clear();
  releases_.reserve(model.kv.slots);
  state_.generation = generation;
  state_.phase = SessionPhase::loaded;
}

void CombinedSession::set_phase(SessionPhase phase) {
  const std::lock_guard lock(lock_);
  state_.phase = phase;
}

void CombinedSession::invalidate(Generation generation, SessionPhase phase) {
  std::vector<JobResult> stale;
  std::function<void()> idle_now;
  {
    const std::lock_guard lock(lock_);
    DUET_ASSERT(generation > state_.generation, generation, state_.generation);
    state_.generation = generation;
    state_.phase = phase;
    if (phase != SessionPhase::loaded) model_.reset();
    if (kv_.has_value()) kv_->forget_all();
    releases_.clear();
    for (const auto& lane : lanes_) {
      Job& job = *lane->job;
      if (!job.in_flight || std::exchange(job.completed, true)) continue;
      stale.push_back(outcome_of(job.request, errc::stale_generation));
      stale.back().settled = false;
    }
    idle_now = std::exchange(when_idle_, nullptr);
  }
  for (const JobResult& outcome : stale) jobs_sink_->on_job(outcome);
  if (idle_now) idle_now();
}

void CombinedSession::close() {
  std::vector<std::unique_ptr<Lane>> lanes;
  {
    const std::lock_guard lock(lock_);
    state_.phase = SessionPhase::ended;
    lanes.swap(lanes_);
  }
  for (const auto& lane : lanes) lane->lane->close();
}

void CombinedSession::drain(std::function<void()> idle_now) {
  {
    const std::lock_guard lock(lock_);
    state_.phase = SessionPhase::draining;
    if (!idle_locked()) {
      when_idle_ = std::move(idle_now);
      return;
    }
  }
  idle_now();
}

result<void> CombinedSession::resume() {
  const std::lock_guard lock(lock_);
  if (state_.phase != SessionPhase::draining) {
    return Failure(errc::wrong_state, "resume of a session that is not draining");
  }
  state_.phase = SessionPhase::loaded;
  return {};
}

CombinedSession::Buffers* CombinedSession::find_buffers(std::uint64_t id) {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                  [id](const Buffers& buffers) { return buffers.io.id == id; });
  return found == buffers_.end() ? nullptr : &*found;
}

void CombinedSession::add_buffers(const IoBuffers& buffers) {
  const std::lock_guard lock(lock_);
  DUET_ASSERT(buffers_.size() < limits::io_buffers_max, buffers_.size());
  buffers_.push_back({buffers, false});
}

result<void> CombinedSession::remove_buffers(std::uint64_t buffers) {
  const std::lock_guard lock(lock_);
  Buffers* const found = find_buffers(buffers);
  if (found == nullptr) {
    return Failure(errc::unknown_name,
                   "no buffers " + std::to_string(buffers) + " in this session");
  }
  if (found->busy) {
    return Failure(errc::device_busy, "a job still uses buffers " + std::to_string(buffers));
  }
  buffers_.erase(buffers_.begin() + (found - buffers_.data()));
  return {};
}

std::size_t CombinedSession::buffers_count() const {
  const std::lock_guard lock(lock_);
  return buffers_.size();
}

std::optional<GraphHandle> CombinedSession::graph(GraphKind kind) const {
  const std::lock_guard lock(lock_);
  if (!model_.has_value()) return std::nullopt;
  return kind == GraphKind::prefill ? model_->prefill : model_->decode;
}

result<void> CombinedSession::check_generation(Generation generation) const {
  if (generation != state_.generation) {
    return Failure(errc::stale_generation, "generation " + std::to_string(generation) +
                                               ", the session is at " +
                                               std::to_string(state_.generation));
  }
  if (!kv_.has_value() || !model_.has_value()) {
    return Failure(errc::wrong_state, "the session has no model");
  }
  return {};
}

result<void> CombinedSession::kv_reserve(Generation generation, SequenceId sequence,
                                         std::uint32_t tokens) {
  const std::lock_guard lock(lock_);
  if (auto checked = check_generation(generation); !checked) return checked;
  return kv_->reserve(sequence, tokens);
}

result<void> CombinedSession::kv_commit(Generation generation, SequenceId sequence,
                                        std::uint32_t tokens) {
  const std::lock_guard lock(lock_);
  if (auto checked = check_generation(generation); !checked) return checked;
  return kv_->commit(sequence, tokens);
}

result<void> CombinedSession::kv_rollback(Generation generation, SequenceId sequence) {
  const std::lock_guard lock(lock_);
  if (auto checked = check_generation(generation); !checked) return checked;
  return kv_->rollback(sequence);
}

result<void> CombinedSession::kv_release(Generation generation, SequenceId sequence) {
  {
    const std::lock_guard lock(lock_);
    if (auto checked = check_generation(generation); !checked) return checked;
    const result<bool> tell = kv_->release(sequence);
    if (!tell) return tell.error();
    if (!*tell) return {};
  }
  queue_release(generation, sequence);
  return {};
}

void CombinedSession::queue_release(Generation generation, SequenceId sequence) {
  const std::lock_guard lock(lock_);
  if (generation != state_.generation || lanes_.empty()) return;   // a reset has freed it already
  releases_.push_back({generation, sequence});
  if (release_call_->queued) return;
  release_call_->queued = true;
  release_call_->session = shared_from_this();
  if (!lanes_.front()->lane->push(*release_call_)) {
    // The lane is full of work that tells of releases itself before it runs.
    release_call_->queued = false;
    release_call_->session.reset();
  }
}

void CombinedSession::tell_releases() {
  const std::lock_guard telling(telling_);
  for (;;) {
    Release release{};
    {
      const std::lock_guard lock(lock_);
      if (releases_.empty()) return;
      release = releases_.front();
      releases_.erase(releases_.begin());
    }
    // A refusal means that a reset has freed the slot meanwhile; the books are right either way.
    static_cast<void>(runtime_.kv_release(options_.chip, release.generation, release.sequence));
  }
}

result<CombinedSession::Buffers*> CombinedSession::check_job(const JobRequest& job) {
  if (auto checked = check_generation(job.generation); !checked) return checked.error();
  if (state_.phase == SessionPhase::draining) {
    return Failure(errc::draining, "the session is draining");
  }
  if (state_.phase != SessionPhase::loaded) {
    return Failure(errc::wrong_state, "the session takes no jobs");
  }
  if (find_lane(job.job) != nullptr) {
    return Failure(errc::bad_argument, "job " + std::to_string(job.job) + " is in flight already");
  }
  Buffers* const buffers = find_buffers(job.buffers);
  if (buffers == nullptr || buffers->io.graph != job.graph) {
    return Failure(errc::unknown_name, "no buffers " + std::to_string(job.buffers) + " for " +
                                           to_string(job.graph) + " in this session");
  }
  if (buffers->busy) {
    return Failure(errc::bad_argument, "buffers " + std::to_string(job.buffers) + " are in use");
  }
  if (job.tokens == 0 || job.tokens > buffers->io.tokens.size()) {
    return Failure(errc::bad_argument, std::to_string(job.tokens) + " tokens; a " +
                                           to_string(job.graph) + " job takes 1 to " +
                                           std::to_string(buffers->io.tokens.size()));
  }
  return buffers;
}

CombinedSession::Lane* CombinedSession::find_lane(JobId job) const {
  for (const auto& lane : lanes_) {
    if (lane->job->in_flight && lane->job->request.job == job) return lane.get();
  }
  return nullptr;
}

result<void> CombinedSession::submit(const JobRequest& job) {
  const std::lock_guard lock(lock_);
  const result<Buffers*> buffers = check_job(job);
  if (!buffers) return buffers.error();
  const auto free = std::find_if(lanes_.begin(), lanes_.end(),
                                 [](const auto& lane) { return !lane->job->in_flight; });
  if (free == lanes_.end()) {
    return Failure(errc::queue_full, std::to_string(lanes_.size()) + " jobs are in flight");
  }
  const result<KvOrders> orders = kv_->begin_job(job.sequence, job.past, job.tokens);
  if (!orders) return orders.error();

  Job& call = *(*free)->job;
  call.session = shared_from_this();
  call.request = job;
  call.graph = job.graph == GraphKind::prefill ? model_->prefill : model_->decode;
  call.orders = *orders;
  call.told = call.started = call.cancelled = call.completed = false;
  call.in_flight = true;
  (*buffers)->busy = true;
  const bool pushed = (*free)->lane->push(call);
  DUET_ASSERT(pushed);   // one job and one release call fit into a lane
  return {};
}

result<CancelEffect> CombinedSession::cancel(JobId job) {
  const std::lock_guard lock(lock_);
  Lane* const lane = find_lane(job);
  if (lane == nullptr) return Failure(errc::unknown_name, "no job " + std::to_string(job));
  if (lane->job->completed) return CancelEffect::already_done;
  if (lane->job->started) return CancelEffect::delivery_only;
  lane->job->cancelled = true;
  return CancelEffect::removed_from_queue;
}

result<void> CombinedSession::abandon(JobId id) {
  std::unique_ptr<Lane> left;
  JobResult outcome;
  bool deliver = false;
  std::function<void()> idle_now;
  {
    const std::lock_guard lock(lock_);
    Lane* const lane = find_lane(id);
    if (lane == nullptr) return Failure(errc::unknown_name, "no job " + std::to_string(id));
    if (quarantine_.size() >= limits::quarantine_max) {
      return Failure(errc::queue_full, std::to_string(quarantine_.size()) +
                                           " jobs of the chip never came back already");
    }
    Job& job = *lane->job;
    deliver = !std::exchange(job.completed, true);
    outcome = outcome_of(job.request, errc::wait_timeout);
    outcome.settled = false;
    quarantine_.push_back(lane->job);
    left = make_lane();
    std::swap(left->lane, lane->lane);
    std::swap(left->job, lane->job);
    if (idle_locked()) idle_now = std::exchange(when_idle_, nullptr);
  }
  left->lane->abandon();
  if (deliver) jobs_sink_->on_job(outcome);
  if (idle_now) idle_now();
  return {};
}

JobState CombinedSession::query(JobId job) const {
  const std::lock_guard lock(lock_);
  for (const auto& kept : quarantine_) {
    if (kept->in_flight && kept->request.job == job) return JobState::unsettled;
  }
  const Lane* const lane = find_lane(job);
  if (lane == nullptr) return JobState::unknown;
  if (lane->job->completed) return JobState::unsettled;
  return lane->job->started ? JobState::running : JobState::queued;
}

void CombinedSession::time_out(Job& job) {
  {
    const std::lock_guard lock(lock_);
    if (std::exchange(job.completed, true)) return;
  }
  JobResult outcome = job.result;
  outcome.status = make_error_code(errc::wait_timeout);
  outcome.settled = false;
  jobs_sink_->on_job(outcome);
}

void CombinedSession::end_job(Job& job, const JobResult& outcome, bool told) {
  const JobRequest request = job.request;
  bool deliver = false;
  bool tell = false;
  std::function<void()> idle_now;
  {
    const std::lock_guard lock(lock_);
    deliver = !std::exchange(job.completed, true);
    job.in_flight = false;
    if (Buffers* const buffers = find_buffers(request.buffers)) buffers->busy = false;
    const std::uint32_t written = outcome.status.failed() ? 0 : request.tokens;
    if (kv_.has_value()) tell = kv_->end_job(job.orders.slot, told, written);
    std::erase_if(quarantine_, [&job](const auto& kept) { return kept.get() == &job; });
    if (idle_locked()) idle_now = std::exchange(when_idle_, nullptr);
  }
  if (tell) queue_release(request.generation, request.sequence);
  if (deliver) {
    jobs_sink_->on_job(outcome);
  } else {
    jobs_sink_->on_settled(request.session, request.generation, request.job);
  }
  if (idle_now) idle_now();
}

void CombinedSession::Job::run() noexcept {
  CombinedSession& owner = *session;
  VendorRuntime& runtime = owner.runtime_;
  const std::uint32_t chip = owner.options_.chip;
  result = outcome_of(request, errc::not_open);
  result.ran = false;
  {
    const std::lock_guard lock(owner.lock_);
    started = true;
    if (cancelled) {
      result.status = make_error_code(errc::cancelled);
      return;
    }
  }
  owner.tell_releases();

  device::result<void> step;
  if (orders.commit.has_value()) {
    step = *orders.commit == 0
               ? runtime.kv_rollback(chip, request.generation, request.sequence)
               : runtime.kv_commit(chip, request.generation, request.sequence, *orders.commit);
  }
  if (step) step = runtime.kv_reserve(chip, request.generation, request.sequence, orders.reserve);
  if (!step) {
    result.status = make_error_code(step.error().code);
    return;
  }
  told = true;

  VendorJob job;
  job.graph = graph;
  job.engine = request.engine;
  job.session = request.session;
  job.job = request.job;
  job.generation = request.generation;
  job.sequence = request.sequence;
  job.past = request.past;
  job.tokens = request.tokens;
  job.buffers = request.buffers;
  const auto ticket = runtime.submit(job);
  if (!ticket) {
    result.status = make_error_code(ticket.error().code);
    return;
  }
  result.ran = true;
  auto ended = runtime.wait(*ticket, request.deadline);
  if (!ended && ended.error().code == errc::wait_timeout) {
    owner.time_out(*this);
    ended = runtime.wait(*ticket, no_deadline);
  }
  if (!ended) {
    result.status = make_error_code(ended.error().code);
    return;
  }
  result.status = ended->status;
  result.engine = ended->engine;
  result.kv_before = ended->kv_before;
  result.kv_after = ended->kv_after;
  result.times = ended->times;
}

void CombinedSession::Job::finish(bool ran) noexcept {
  const std::shared_ptr<CombinedSession> owner = std::move(session);
  JobResult outcome = ran ? result : outcome_of(request, errc::not_open);
  outcome.ran = ran && result.ran;
  owner->end_job(*this, outcome, ran && told);
}

}   // namespace duet::device
