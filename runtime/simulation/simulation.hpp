// simulation.hpp: one run of a program of actors on one thread, in virtual time, from a seed.
#pragma once

#include "runtime/detail/observer.hpp"
#include "runtime/simulation/deadlock.hpp"
#include "runtime/simulation/faults.hpp"
#include "runtime/simulation/ready_set.hpp"
#include "runtime/simulation/sim_clock.hpp"
#include "runtime/simulation/sim_completion_source.hpp"
#include "runtime/simulation/sim_executor.hpp"
#include "runtime/simulation/sim_random.hpp"
#include "runtime/simulation/sim_scheduler.hpp"
#include "runtime/simulation/trace_hash.hpp"
#include "runtime/system_options.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::runtime::simulation {

struct SimulationOptions {
  std::uint64_t seed = 1;
  /// Until end_faults(); Faults::swarm(seed) draws them.
  Faults faults;
  CallTimes call_times;
  /// Messages and completions an activation handles, 1..64; 0: drawn, often 1. With 1 every message
  /// is a step of its own.
  std::uint32_t activation_messages = 0;
  /// A planted bug, to try the detectors with: the probability that a wake-up is forgotten.
  double lost_wakeups = 0;
};

/// Why a run returned.
enum class RunEnd : std::uint8_t {
  quiet,   ///< Nothing is ready and nothing is due. deadlock() says if somebody still waits.
  time_over,
  satisfied,   ///< The condition became true.
  livelock     ///< Simulation::steps_at_instant_max steps without time going on.
};

[[nodiscard]] const char* to_string(RunEnd end) noexcept;

/// Owns the four seams and the execution context. A system is built over them:
///
///   Simulation simulation{{.seed = 7, .faults = Faults::swarm(7)}};
///   System system(simulation.executor(), simulation.system_options("bank"));
///   ...
///   simulation.run_for(1min);
///   simulation.end_faults();
///   RunEnd end = simulation.run_until_quiet(1h);
///
/// The same program with the same options and seed does the same, and hash() says so; unless it
/// reads something from outside, a generation for instance, which counts all lives of the process.
/// Several systems may live one after the other or at the same time. A system that outlives its
/// simulation is ended by it. One thread.
class Simulation final : private detail::Observer {
 public:
  /// Steps at one instant after which a run is a livelock: more than any burst of messages that
  /// ends by itself.
  static constexpr std::uint64_t steps_at_instant_max = 5'000'000;

  explicit Simulation(SimulationOptions options);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  [[nodiscard]] boost::asio::any_io_executor executor() noexcept { return SimExecutor(context_); }

  /// The seams of a new system; `name` is what it and its deadlocks are called.
  [[nodiscard]] SystemOptions system_options(std::string_view name);

  /// For the workload's own decisions: a stream beside those of the scheduler, the faults and the
  /// system.
  [[nodiscard]] SimRandom& workload_random() noexcept { return workload_random_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return options_.seed; }

  [[nodiscard]] SimClock& clock() noexcept { return clock_; }
  [[nodiscard]] TimePoint now() const noexcept { return clock_.now(); }
  [[nodiscard]] SimCompletionSource& completions() noexcept { return completions_; }
  [[nodiscard]] ReadySet& ready() noexcept { return ready_; }
  [[nodiscard]] const ReadySet& ready() const noexcept { return ready_; }

  /// `action` runs after `delay`, between two activations, as a host's handler.
  void after(Duration delay, std::function<void()> action);

  /// One thing happens: something ready runs, or a timer expires, or time goes on to the next one.
  /// False: nothing is ready and nothing is due.
  bool step();

  RunEnd run_for(Duration time);
  /// At most for `within`; looks at `condition` before each step.
  RunEnd run_until(const std::function<bool()>& condition, Duration within);
  RunEnd run_until_quiet(Duration within);

  /// The safety phase is over: from now on nothing goes wrong any more, and all that was begun must
  /// come to its end. Calls that are lost stay lost; late ones stay late.
  void end_faults() noexcept { faults_ = Faults(); }
  /// Of the safety phase.
  [[nodiscard]] const Faults& faults_drawn() const noexcept { return options_.faults; }

  /// Meaningful when nothing is ready and nothing is due.
  [[nodiscard]] std::optional<Deadlock> deadlock() const;

  /// Over every activation, message, completion and host's handler until now.
  [[nodiscard]] std::uint64_t hash() const noexcept { return trace_.value(); }
  void fold(std::uint64_t word) noexcept { trace_.add(word); }   ///< results of the workload

  [[nodiscard]] std::uint64_t activations() const noexcept { return activations_; }
  [[nodiscard]] std::uint64_t handled() const noexcept { return handled_; }
  [[nodiscard]] std::uint64_t timers() const noexcept { return timers_; }
  /// Places of buggify() that fired.
  [[nodiscard]] std::uint64_t buggified() const noexcept { return buggified_; }

  // What a script chooses by hand.

  /// Runs the `index`th that is ready; the order of the others stays.
  void run_ready(std::size_t index);
  /// The earliest timer expires if it is due. False: none is.
  bool expire_one();

 private:
  class Running;
  class Action;
  struct Place;

  void handling(const detail::Slot& slot, const detail::Node& node) noexcept override;
  bool buggify(const char* place) noexcept override;
  void run(Runnable& runnable);
  bool step_running();
  void step_time() noexcept;
  RunEnd run_loop(const std::function<bool()>* condition, TimePoint until);
  void add_waiters(const detail::Core& core, Deadlock& deadlock) const;

  const SimulationOptions options_;
  Faults faults_;
  SimRandom schedule_random_;
  SimRandom fault_random_;
  SimRandom system_random_;
  SimRandom workload_random_;
  SimClock clock_;
  ReadySet ready_;
  SimCompletionSource completions_;
  std::deque<SimScheduler> schedulers_;   // one a system; they stay where they are
  std::map<std::string, std::unique_ptr<Place>, std::less<>> places_;
  std::list<Action> actions_;   // of after(), until they are due
  TraceHash trace_;
  std::uint32_t activation_messages_;
  bool branchless_;
  std::uint64_t activations_ = 0;
  std::uint64_t handled_ = 0;
  std::uint64_t timers_ = 0;
  std::uint64_t buggified_ = 0;
  std::uint64_t steps_at_instant_ = 0;
  SimContext context_;   // destroyed first: it ends the systems
};

}   // namespace duet::runtime::simulation
