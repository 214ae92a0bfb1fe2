// simulation.cpp: picks what happens next.
#include "runtime/simulation/simulation.hpp"

#include "runtime/actor_base.hpp"
#include "runtime/assert.hpp"
#include "runtime/detail/core.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/slot.hpp"
#include "runtime/detail/thread_state.hpp"

#include <typeinfo>
#include <utility>

namespace duet::runtime::simulation {
namespace {

constexpr Duration slow_actor_max = std::chrono::milliseconds(1);
constexpr Duration stall_max = std::chrono::milliseconds(200);

/// Null if it is something else; a slot is of that very type.
detail::Slot* slot_of(Runnable& runnable) noexcept {
  return typeid(runnable) == typeid(detail::Slot) ? static_cast<detail::Slot*>(&runnable) : nullptr;
}

std::uint32_t draw_activation_messages(std::uint64_t seed) {
  SimRandom random(seed, "activation");
  if (random.below(2) == 0) return 1;
  return static_cast<std::uint32_t>(random.between(2, limits::activation_messages_max));
}

/// Which of two ways a message takes into a mailbox.
bool draw_branchless(std::uint64_t seed) {
  return SimRandom(seed, "branchless").below(2) == 0;
}

}   // namespace

/// While one lives, this thread's actors run for us.
class Simulation::Running {
 public:
  explicit Running(Simulation& simulation) noexcept
      : state_(detail::thread_state()),
        observer_before_(state_.observer),
        messages_before_(state_.activation_messages),
        branchless_before_(state_.wakes.vary()) {
    state_.observer = &simulation;
    state_.wakes.assume(simulation.branchless_);
    state_.activation_messages = simulation.activation_messages_;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    state_.observer = observer_before_;
    state_.activation_messages = messages_before_;
    state_.wakes.assume(branchless_before_);
  }

 private:
  detail::ThreadState& state_;
  detail::Observer* const observer_before_;
  const std::uint32_t messages_before_;
  const bool branchless_before_;
};

/// An action of the host at its time.
class Simulation::Action final : public Timer {
 public:
  Action(Simulation& simulation, std::function<void()> action)
      : simulation_(simulation), action_(std::move(action)) {}
  ~Action() override { simulation_.clock_.cancel(*this); }

  void expired() noexcept override {
    SimExecutor(simulation_.context_).execute(std::move(action_));
    simulation_.actions_.remove_if([this](const Action& action) { return &action == this; });
  }

 private:
  Simulation& simulation_;
  std::function<void()> action_;
};

/// A place of buggify() in this run.
struct Simulation::Place {
  Place(std::uint64_t seed, std::string_view name) : random(seed, name) {
    on = random.unit();
    fires = random.magnitude(0.01, 0.5);
  }
  SimRandom random;
  double on;      // it is, if this is below the probability of FaultKind::buggify
  double fires;   // with this probability
};

const char* to_string(RunEnd end) noexcept {
  switch (end) {
    case RunEnd::quiet:
      return "quiet";
    case RunEnd::time_over:
      return "time over";
    case RunEnd::satisfied:
      return "satisfied";
    case RunEnd::livelock:
      return "livelock";
  }
  return "unknown";
}

Simulation::Simulation(SimulationOptions options)
    : options_(options),
      faults_(options.faults),
      schedule_random_(options.seed, "schedule"),
      fault_random_(options.seed, "faults"),
      system_random_(options.seed, "system"),
      workload_random_(options.seed, "workload"),
      completions_(clock_, faults_, options.seed),
      activation_messages_(options.activation_messages != 0
                               ? options.activation_messages
                               : draw_activation_messages(options.seed)),
      branchless_(draw_branchless(options.seed)),
      context_(ready_) {
  DUET_ASSERT(activation_messages_ <= limits::activation_messages_max, activation_messages_);
  completions_.set_times(options.call_times);
}

Simulation::~Simulation() = default;

SystemOptions Simulation::system_options(std::string_view name) {
  SimScheduler& scheduler = schedulers_.emplace_back(ready_);
  if (options_.lost_wakeups > 0) scheduler.lose_posts(options_.lost_wakeups, fault_random_);
  SystemOptions options;
  options.name = name;
  options.stamp_activations = 1;
  options.scheduler = &scheduler;
  options.clock = &clock_;
  options.random = &system_random_;
  options.completions = &completions_;
  completions_.spare(options.name + "-compute");
  return options;
}

void Simulation::after(Duration delay, std::function<void()> action) {
  clock_.arm(actions_.emplace_back(*this, std::move(action)), clock_.now() + delay);
}

void Simulation::handling(const detail::Slot& slot, const detail::Node& node) noexcept {
  ++handled_;
  trace_.add(slot.number(), node.ops->type, clock_.now());
}

bool Simulation::buggify(const char* place) noexcept {
  const double on = faults_[FaultKind::buggify];
  if (on == 0) return false;
  auto found = places_.find(std::string_view(place));
  if (found == places_.end()) {
    found = places_.emplace(place, std::make_unique<Place>(options_.seed, place)).first;
  }
  Place& here = *found->second;
  if (here.on >= on || !here.random.chance(here.fires)) return false;
  ++buggified_;
  return true;
}

void Simulation::run(Runnable& runnable) {
  const detail::Slot* const slot = slot_of(runnable);
  trace_.add(slot == nullptr ? 0 : slot->number(), "", clock_.now());
  ++activations_;
  ++steps_at_instant_;
  detail::thread_state().stamps_left = 0;
  runnable.run();
  if (fault_random_.chance(faults_[FaultKind::slow_actor])) {
    clock_.move_to(clock_.now() + Duration(fault_random_.below(
                                      static_cast<std::uint64_t>(slow_actor_max.count()))));
    steps_at_instant_ = 0;
  }
}

void Simulation::step_time() noexcept {
  if (clock_.next_due() > clock_.now()) {
    clock_.move_to(clock_.next_due());
    steps_at_instant_ = 0;
  }
  ++timers_;
  ++steps_at_instant_;
  clock_.expire_one();
}

bool Simulation::step_running() {
  if (fault_random_.chance(faults_[FaultKind::stall])) {
    clock_.move_to(clock_.now() +
                   Duration(fault_random_.below(static_cast<std::uint64_t>(stall_max.count()))));
  }
  if (ready_.empty()) {
    if (clock_.armed() == 0) return false;
    step_time();
    return true;
  }
  // What is due may come before or after what is ready.
  if (clock_.any_due() && schedule_random_.below(2) == 0) {
    step_time();
    return true;
  }
  std::size_t index = ready_.size() - 1;
  if (index > 0 && !schedule_random_.chance(faults_[FaultKind::newest_first])) {
    index = schedule_random_.below(ready_.size());
  }
  run(ready_.take(index));
  return true;
}

bool Simulation::step() {
  const Running running(*this);
  return step_running();
}

RunEnd Simulation::run_loop(const std::function<bool()>* condition, TimePoint until) {
  const Running running(*this);
  steps_at_instant_ = 0;
  for (;;) {
    if (condition != nullptr && (*condition)()) return RunEnd::satisfied;
    if (ready_.empty() && clock_.next_due() > until) {
      if (clock_.armed() == 0) return RunEnd::quiet;
      if (until > clock_.now()) clock_.move_to(until);
      return RunEnd::time_over;
    }
    if (clock_.now() > until) return RunEnd::time_over;   // a stall led beyond
    if (steps_at_instant_ > steps_at_instant_max) return RunEnd::livelock;
    step_running();
  }
}

RunEnd Simulation::run_for(Duration time) {
  const TimePoint until = clock_.now() + time;
  const RunEnd end = run_loop(nullptr, until);
  if (end == RunEnd::quiet && until > clock_.now()) clock_.move_to(until);
  return end;
}

RunEnd Simulation::run_until(const std::function<bool()>& condition, Duration within) {
  return run_loop(&condition, clock_.now() + within);
}

RunEnd Simulation::run_until_quiet(Duration within) {
  return run_loop(nullptr, clock_.now() + within);
}

std::optional<Deadlock> Simulation::deadlock() const {
  Deadlock deadlock;
  deadlock.now = clock_.now();
  for (const SimScheduler& scheduler : schedulers_) {
    if (scheduler.core() != nullptr) add_waiters(*scheduler.core(), deadlock);
  }
  if (deadlock.waiters.empty()) return std::nullopt;
  return deadlock;
}

// An actor that waits for messages waits for nobody. One whose answer is to come has something
// pending, or has left word that it waits for something else.
void Simulation::add_waiters(const detail::Core& core, Deadlock& deadlock) const {
  for (detail::Slot* const slot : core.living()) {
    Waiter waiter;
    waiter.wakeup_lost = slot->inbox().active() && !ready_.has(*slot);
    const bool pending = slot->actor()->pending().first() != nullptr;
    waiter.actor = core.snapshot(*slot);
    const std::string& waits_for = waiter.actor.waits_for;
    if (!waiter.wakeup_lost && !pending && (waits_for.empty() || waits_for == "message")) continue;
    waiter.system = core.options().name;
    deadlock.waiters.push_back(std::move(waiter));
  }
}

void Simulation::run_ready(std::size_t index) {
  const Running running(*this);
  run(ready_.take_in_order(index));
}

bool Simulation::expire_one() {
  if (!clock_.any_due()) return false;
  const Running running(*this);
  step_time();
  return true;
}

}   // namespace duet::runtime::simulation
