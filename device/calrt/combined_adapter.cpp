// combined_adapter.cpp: puts each call on its lane, watches its deadline and completes it once.
#include "device/calrt/combined_adapter.hpp"

#include "device/calrt/combined_board.hpp"
#include "runtime/assert.hpp"

#include <atomic>
#include <functional>
#include <utility>

namespace duet::device {

/// One call of the life cycle or of telemetry. Its timer and its lane each hold it until they are
/// done with it.
class CombinedAdapter::Call final : public runtime::BlockingCall,
                                    public runtime::Timer,
                                    public std::enable_shared_from_this<Call> {
 public:
  using Work = std::function<result<CallDone::Value>()>;
  enum class Lane { life_cycle, telemetry };

  static void start(const std::shared_ptr<Board>& board, Lane lane, CallKind kind,
                    std::uint64_t tag, TimePoint deadline, Sink sink, Work work) {
    auto call = std::make_shared<Call>(board, kind, tag, std::move(sink), std::move(work));
    if (board->lost.load(std::memory_order_acquire)) {
      return call->complete(Failure(errc::driver_lost, "an earlier call never came back"));
    }
    call->lane_hold_ = call;
    if (deadline != no_deadline) {
      call->has_timer_ = true;
      call->timer_hold_ = call;
      board->clock.arm(*call, deadline);
    }
    auto& queue = lane == Lane::life_cycle ? *board->life_cycle : *board->telemetry;
    if (queue.push(*call)) return;
    call->complete(Failure(errc::queue_full, "too many calls wait behind a running one"));
    call->lane_hold_.reset();
  }

  Call(std::shared_ptr<Board> board, CallKind kind, std::uint64_t tag, Sink sink, Work work)
      : board_(std::move(board)),
        kind_(kind),
        tag_(tag),
        sink_(std::move(sink)),
        work_(std::move(work)) {}

  void run() noexcept override { outcome_ = work_(); }

  void finish(bool ran) noexcept override {
    const std::shared_ptr<Call> keep = std::move(lane_hold_);
    complete(ran ? std::move(outcome_)
                 : result<CallDone::Value>(Failure(errc::not_open, "the device was closed")));
  }

  void expired() noexcept override {
    const std::shared_ptr<Call> keep = std::move(timer_hold_);
    if (completed_.load(std::memory_order_acquire)) return;
    board_->lost.store(true, std::memory_order_release);
    deliver(Failure(errc::call_timeout,
                    std::string(to_string(kind_)) + " did not end by its deadline"));
  }

 private:
  void complete(result<CallDone::Value> outcome) noexcept {
    if (has_timer_ && board_->clock.cancel(*this)) timer_hold_.reset();
    deliver(std::move(outcome));
  }

  void deliver(result<CallDone::Value> outcome) noexcept {
    if (completed_.exchange(true, std::memory_order_acq_rel)) return;
    sink_->on_call(CallDone(tag_, kind_, std::move(outcome)));
  }

  const std::shared_ptr<Board> board_;
  const CallKind kind_;
  const std::uint64_t tag_;
  const Sink sink_;
  const Work work_;
  result<CallDone::Value> outcome_ = CallDone::Value();
  std::atomic<bool> completed_ = false;
  std::shared_ptr<Call> lane_hold_;
  bool has_timer_ = false;   // written before the timer or the lane can run
  std::shared_ptr<Call> timer_hold_;
};

/// A drain waits for no thread: the session's last job or the clock ends it.
class CombinedAdapter::DrainCall final : public runtime::Timer {
 public:
  static void start(const std::shared_ptr<Board>& board, std::uint64_t tag, SessionId session,
                    TimePoint deadline, Sink sink) {
    const auto found = board->require_session(session);
    if (!found) return sink->on_call(CallDone(tag, CallKind::drain, found.error()));
    auto call = std::make_shared<DrainCall>(board, *found, tag, std::move(sink));
    if (deadline != no_deadline) {
      call->has_timer_ = true;
      call->timer_hold_ = call;
      board->clock.arm(*call, deadline);
    }
    (*found)->drain([call] { call->idle(); });
  }

  DrainCall(std::shared_ptr<Board> board, std::shared_ptr<CombinedSession> session,
            std::uint64_t tag, Sink sink)
      : board_(std::move(board)), session_(std::move(session)), tag_(tag), sink_(std::move(sink)) {}

  void expired() noexcept override {
    const std::shared_ptr<DrainCall> keep = std::move(timer_hold_);
    deliver(Failure(errc::drain_timeout, "jobs are still running; the session stays draining"));
  }

 private:
  void idle() {
    if (has_timer_ && board_->clock.cancel(*this)) timer_hold_.reset();
    deliver(CallDone::Value(session_->state()));
  }

  void deliver(result<CallDone::Value> outcome) noexcept {
    if (completed_.exchange(true, std::memory_order_acq_rel)) return;
    sink_->on_call(CallDone(tag_, CallKind::drain, std::move(outcome)));
  }

  const std::shared_ptr<Board> board_;
  const std::shared_ptr<CombinedSession> session_;
  const std::uint64_t tag_;
  const Sink sink_;
  std::atomic<bool> completed_ = false;
  bool has_timer_ = false;   // written before the timer or the session can call
  std::shared_ptr<DrainCall> timer_hold_;
};

CombinedAdapter::CombinedAdapter(VendorRuntime& runtime, runtime::CompletionSource& source,
                                 runtime::Clock& clock)
    : board_(std::make_shared<Board>(runtime, source, clock)) {}

CombinedAdapter::~CombinedAdapter() {
  if (board_->lost.load(std::memory_order_acquire)) board_->life_cycle->abandon();
  board_->life_cycle->close();
  board_->telemetry->close();
  for (const auto& session : board_->sessions()) session->close();
}

void CombinedAdapter::open(std::uint64_t tag, TimePoint deadline, Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::open, tag, deadline, std::move(sink),
              [board = board_.get()] { return board->open(); });
}

void CombinedAdapter::load_package(std::uint64_t tag, PackageRef package, TimePoint deadline,
                                   Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::load_package, tag, deadline,
              std::move(sink), [board = board_.get(), package = std::move(package)] {
                return board->load_package(package);
              });
}

void CombinedAdapter::configure(std::uint64_t tag, PackageId package, TimePoint deadline,
                                Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::configure, tag, deadline, std::move(sink),
              [board = board_.get(), package] { return board->configure(package); });
}

void CombinedAdapter::read_hash(std::uint64_t tag, TimePoint deadline, Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::read_hash, tag, deadline, std::move(sink),
              [board = board_.get()] { return board->read_hash(); });
}

void CombinedAdapter::create_session(std::uint64_t tag, ChipSessionOptions options, Sink jobs,
                                     Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::create_session, tag, no_deadline,
              std::move(sink), [board = board_.get(), options, jobs = std::move(jobs)] {
                return board->create_session(options, jobs);
              });
}

void CombinedAdapter::load_model(std::uint64_t tag, SessionId session, PackageId package,
                                 std::string model, TimePoint deadline, Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::load_model, tag, deadline, std::move(sink),
              [board = board_.get(), session, package, model = std::move(model)] {
                return board->load_model(session, package, model);
              });
}

void CombinedAdapter::allocate_io(std::uint64_t tag, SessionId session, GraphKind graph,
                                  Sink sink) {
  Call::start(
      board_, Call::Lane::life_cycle, CallKind::allocate_io, tag, no_deadline, std::move(sink),
      [board = board_.get(), session, graph] { return board->allocate_io(session, graph); });
}

void CombinedAdapter::release_io(std::uint64_t tag, SessionId session, std::uint64_t buffers,
                                 Sink sink) {
  Call::start(
      board_, Call::Lane::life_cycle, CallKind::release_io, tag, no_deadline, std::move(sink),
      [board = board_.get(), session, buffers] { return board->release_io(session, buffers); });
}

void CombinedAdapter::drain(std::uint64_t tag, SessionId session, TimePoint deadline, Sink sink) {
  DrainCall::start(board_, tag, session, deadline, std::move(sink));
}

void CombinedAdapter::unload(std::uint64_t tag, SessionId session, TimePoint deadline, Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::unload, tag, deadline, std::move(sink),
              [board = board_.get(), session] { return board->unload(session); });
}

void CombinedAdapter::destroy_session(std::uint64_t tag, SessionId session, Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::destroy_session, tag, no_deadline,
              std::move(sink),
              [board = board_.get(), session] { return board->destroy_session(session); });
}

void CombinedAdapter::reset(std::uint64_t tag, ResetTarget target, TimePoint deadline, Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::reset, tag, deadline, std::move(sink),
              [board = board_.get(), target] { return board->reset(target); });
}

void CombinedAdapter::reset_configuration(std::uint64_t tag, TimePoint deadline, Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::reset_configuration, tag, deadline,
              std::move(sink), [board = board_.get()] { return board->reset_configuration(); });
}

void CombinedAdapter::close(std::uint64_t tag, TimePoint deadline, Sink sink) {
  Call::start(board_, Call::Lane::life_cycle, CallKind::close, tag, deadline, std::move(sink),
              [board = board_.get()] { return board->close(); });
}

void CombinedAdapter::memory_usage(std::uint64_t tag, std::uint32_t chip, Sink sink) {
  Call::start(board_, Call::Lane::telemetry, CallKind::memory_usage, tag, no_deadline,
              std::move(sink), [board = board_.get(), chip]() -> result<CallDone::Value> {
                auto usage = board->runtime.memory_usage(chip);
                if (!usage) return usage.error();
                return CallDone::Value(std::move(*usage));
              });
}

void CombinedAdapter::health(std::uint64_t tag, std::uint32_t chip, Sink sink) {
  Call::start(board_, Call::Lane::telemetry, CallKind::health, tag, no_deadline, std::move(sink),
              [board = board_.get(), chip]() -> result<CallDone::Value> {
                auto health = board->runtime.health(chip);
                if (!health) return health.error();
                return CallDone::Value(*health);
              });
}

void CombinedAdapter::take_trace(std::uint64_t tag, std::uint32_t chip, Sink sink) {
  Call::start(board_, Call::Lane::telemetry, CallKind::take_trace, tag, no_deadline,
              std::move(sink), [board = board_.get(), chip]() -> result<CallDone::Value> {
                auto trace = board->runtime.take_trace(chip);
                if (!trace) return trace.error();
                return CallDone::Value(std::move(*trace));
              });
}

result<void> CombinedAdapter::resume(SessionId session) {
  const auto found = board_->require_session(session);
  return found ? (*found)->resume() : found.error();
}

result<void> CombinedAdapter::kv_reserve(SessionId session, Generation generation,
                                         SequenceId sequence, std::uint32_t tokens) {
  const auto found = board_->require_session(session);
  return found ? (*found)->kv_reserve(generation, sequence, tokens) : found.error();
}

result<void> CombinedAdapter::kv_commit(SessionId session, Generation generation,
                                        SequenceId sequence, std::uint32_t tokens) {
  const auto found = board_->require_session(session);
  return found ? (*found)->kv_commit(generation, sequence, tokens) : found.error();
}

result<void> CombinedAdapter::kv_rollback(SessionId session, Generation generation,
                                          SequenceId sequence) {
  const auto found = board_->require_session(session);
  return found ? (*found)->kv_rollback(generation, sequence) : found.error();
}

result<void> CombinedAdapter::kv_release(SessionId session, Generation generation,
                                         SequenceId sequence) {
  const auto found = board_->require_session(session);
  return found ? (*found)->kv_release(generation, sequence) : found.error();
}

result<void> CombinedAdapter::submit(const JobRequest& job) {
  const auto found = board_->require_session(job.session);
  return found ? (*found)->submit(job) : found.error();
}

result<CancelEffect> CombinedAdapter::cancel(SessionId session, JobId job) {
  const auto found = board_->require_session(session);
  return found ? (*found)->cancel(job) : found.error();
}

result<void> CombinedAdapter::abandon(SessionId session, JobId job) {
  const auto found = board_->require_session(session);
  return found ? (*found)->abandon(job) : found.error();
}

JobState CombinedAdapter::query(SessionId session, JobId job) const {
  const auto found = board_->session(session);
  return found == nullptr ? JobState::unknown : found->query(job);
}

}   // namespace duet::device
