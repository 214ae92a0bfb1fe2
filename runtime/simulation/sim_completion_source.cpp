// sim_completion_source.cpp: the life of a blocking call in virtual time.
#include "runtime/simulation/sim_completion_source.hpp"

#include "runtime/assert.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/simulation/fiber.hpp"

#include <algorithm>
#include <utility>

namespace duet::runtime::simulation {

class SimLane final : public CompletionLane {
 public:
  SimLane(SimCompletionSource& source, std::size_t queued_max, bool spared) noexcept
      : source_(source), queued_max_(queued_max), spared_(spared) {}
  ~SimLane() override { close(); }

  [[nodiscard]] bool push(BlockingCall& call) noexcept override;
  void close() noexcept override;
  bool abandon() noexcept override;

 private:
  friend class SimCompletionSource::ActiveCall;
  void begin_next() noexcept;
  void finish_queue() noexcept;

  SimCompletionSource& source_;
  BlockingCallQueue queue_;
  SimCompletionSource::ActiveCall* running_ = nullptr;
  const std::size_t queued_max_;
  const bool spared_;
  bool closed_ = false;
};

/// A call from the moment its lane takes it to its last touch. Owns itself.
class SimCompletionSource::ActiveCall final : public Timer {
 public:
  ActiveCall(SimCompletionSource& source, SimLane& lane, BlockingCall& call) noexcept
      : source_(source), call_(call), lane_(&lane), next_(source.calls_) {
    if (next_ != nullptr) next_->link_ = &next_;
    source.calls_ = this;
  }
  ~ActiveCall() override {
    source_.clock_.cancel(*this);
    *link_ = next_;
    if (next_ != nullptr) next_->link_ = link_;
  }

  void begin() {
    ++source_.counters_.calls;
    SimRandom& random = source_.random_;
    const Faults& faults = source_.faults_;
    const CallTimes& times = source_.times_;
    Duration takes = draw(times.usual_min, times.usual_max);
    if (random.chance(faults[FaultKind::call_delayed])) takes *= random.between(2, 100);
    bool repeated = false;
    bool lost = false;
    if (!lane_->spared_) {
      if (random.chance(faults[FaultKind::call_late])) {
        takes += draw(times.usual_max, times.late_max);
        ++source_.counters_.late;
      }
      lost = random.chance(faults[FaultKind::call_lost]);
      repeated = random.chance(faults[FaultKind::call_repeated]);
    }
    // A call that is lost may have been made: then only its answer is lost.
    stage_ = lost && random.below(2) == 0 ? Stage::lost : Stage::makes;
    fate_ = lost ? Fate::lost : repeated ? Fate::repeated : Fate::comes;
    const TimePoint now = source_.clock_.now();
    ends_ = now + takes;
    if (stage_ == Stage::lost) {
      ++source_.counters_.lost;
    } else {
      source_.clock_.arm(*this, now + draw(Duration(0), takes));
    }
  }

  void expired() noexcept override {
    switch (stage_) {
      case Stage::makes:
      case Stage::blocks:
        if (run()) was_made();
        return;
      case Stage::ends:
        if (fate_ == Fate::repeated) {
          repeat();
        } else {
          finish();
        }
        return;
      case Stage::ends_again:
        finish();
        return;
      case Stage::lost:
      case Stage::finishing:
        DUET_UNREACHABLE();
    }
  }

  /// For our run(), on its fiber.
  bool block_until(const std::function<bool()>& ready, TimePoint deadline) {
    for (;;) {
      if (ready()) return true;
      if (forced_ || source_.clock_.now() >= deadline) return false;
      stage_ = Stage::blocks;
      if (deadline != TimePoint::max()) source_.clock_.arm(*this, deadline);
      fiber_->yield();
    }
  }
  void wake() {
    if (stage_ == Stage::blocks) source_.clock_.arm(*this, source_.clock_.now());
  }
  [[nodiscard]] ActiveCall* next() const noexcept { return next_; }

  /// The lane waits for it.
  void finish_now() noexcept {
    DUET_ASSERT(stage_ != Stage::finishing && source_.on_fiber_ != this,
                "a lane cannot be closed by its own call");
    if (stage_ == Stage::lost) ++source_.counters_.closed_on_lost;
    source_.clock_.cancel(*this);
    force();
    finish();
  }

  /// Its lane goes away.
  void leave() noexcept {
    DUET_ASSERT(stage_ != Stage::finishing, "a lane cannot be left by its own call");
    lane_ = nullptr;
    left_ = true;
    ++source_.abandoned_;
  }

  /// The end of the simulation.
  void end_unheard() noexcept {
    lane_ = nullptr;
    if (fiber_ != nullptr) force();
    finish();
  }

 private:
  enum class Stage : std::uint8_t { makes, blocks, ends, ends_again, finishing, lost };
  enum class Fate : std::uint8_t { comes, repeated, lost };

  [[nodiscard]] Duration draw(Duration min, Duration max) noexcept {
    return Duration(source_.random_.between(static_cast<std::uint64_t>(min.count()),
                                            static_cast<std::uint64_t>(max.count())));
  }

  /// False: it blocks.
  bool run() {
    if (!source_.calls_block_) {
      call_.run();
      return true;
    }
    if (fiber_ == nullptr) fiber_ = std::make_unique<Fiber>([this] { call_.run(); });
    ActiveCall* const outer = std::exchange(source_.on_fiber_, this);
    fiber_->resume();
    source_.on_fiber_ = outer;
    return fiber_->ended();
  }

  void was_made() {
    made_ = true;
    fiber_.reset();
    if (fate_ == Fate::lost) {
      stage_ = Stage::lost;
      ++source_.counters_.lost;
      return;
    }
    stage_ = Stage::ends;
    source_.clock_.arm(*this, std::max(ends_, source_.clock_.now()));
  }

  /// It may not block any more.
  void force() {
    if (made_ || stage_ == Stage::lost) return;
    forced_ = true;
    const bool ended = run();
    DUET_ASSERT(ended, "a call that is forced to come back does");
    made_ = true;
    fiber_.reset();
  }

  void repeat() noexcept {
    ++source_.counters_.repeated;
    stage_ = Stage::finishing;   // the actor may run right in here
    call_.repeat();
    stage_ = Stage::ends_again;
    const Duration later =
        source_.random_.below(2) == 0 ? source_.times_.usual_max : source_.times_.late_max;
    source_.clock_.arm(*this, source_.clock_.now() + draw(Duration(0), later));
    release_lane();
  }

  void finish() noexcept {
    stage_ = Stage::finishing;
    if (left_) {
      ++source_.counters_.after_abandon;
      --source_.abandoned_;
    }
    call_.finish(made_);
    release_lane();
    detail::destroy(this);
  }

  void release_lane() noexcept {
    SimLane* const lane = std::exchange(lane_, nullptr);
    if (lane == nullptr) return;
    lane->running_ = nullptr;
    lane->begin_next();
  }

  SimCompletionSource& source_;
  BlockingCall& call_;
  SimLane* lane_;   // null once the lane went on or away
  TimePoint ends_{};
  Stage stage_ = Stage::makes;
  Fate fate_ = Fate::comes;
  std::unique_ptr<Fiber> fiber_;   // while run() is under way
  bool made_ = false;
  bool left_ = false;
  bool forced_ = false;
  ActiveCall* next_;
  ActiveCall** link_ = &source_.calls_;
};

bool SimLane::push(BlockingCall& call) noexcept {
  if (closed_ || queue_.size() >= queued_max_) return false;
  queue_.push(call);
  if (running_ == nullptr) begin_next();
  return true;
}

void SimLane::begin_next() noexcept {
  if (closed_) return;
  BlockingCall* const call = queue_.pop();
  if (call == nullptr) return;
  running_ = detail::create<SimCompletionSource::ActiveCall>(source_, *this, *call);
  running_->begin();
}

void SimLane::close() noexcept {
  if (closed_) return;
  closed_ = true;
  if (running_ != nullptr) running_->finish_now();
  finish_queue();
}

bool SimLane::abandon() noexcept {
  if (closed_) return false;
  closed_ = true;
  const bool running = running_ != nullptr;
  if (running) std::exchange(running_, nullptr)->leave();
  finish_queue();
  return running;
}

void SimLane::finish_queue() noexcept {
  while (BlockingCall* const call = queue_.pop()) call->finish(false);
}

SimCompletionSource::SimCompletionSource(SimClock& clock, const Faults& faults, std::uint64_t seed)
    : clock_(clock), faults_(faults), random_(seed, "completions") {}

SimCompletionSource::~SimCompletionSource() {
  while (calls_ != nullptr) calls_->end_unheard();
}

bool SimCompletionSource::block_until(const std::function<bool()>& ready, TimePoint deadline) {
  DUET_ASSERT(on_fiber_ != nullptr, "only a call may block, and only if calls may");
  return on_fiber_->block_until(ready, deadline);
}

void SimCompletionSource::wake_blocked() {
  for (ActiveCall* call = calls_; call != nullptr; call = call->next()) call->wake();
}

std::unique_ptr<CompletionLane> SimCompletionSource::open_lane(std::string_view name,
                                                               std::size_t queued_max) {
  const bool spared =
      std::any_of(spared_.begin(), spared_.end(),
                  [name](const std::string& prefix) { return name.starts_with(prefix); });
  return std::make_unique<SimLane>(*this, queued_max, spared);
}

}   // namespace duet::runtime::simulation
