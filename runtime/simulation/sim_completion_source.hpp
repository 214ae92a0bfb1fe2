// sim_completion_source.hpp: blocking calls that take virtual time, and go wrong when asked to.
#pragma once

#include "runtime/completion_source.hpp"
#include "runtime/simulation/faults.hpp"
#include "runtime/simulation/sim_clock.hpp"
#include "runtime/simulation/sim_random.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace duet::runtime::simulation {

class SimLane;

/// How long calls take, in virtual time.
struct CallTimes {
  Duration usual_min = std::chrono::microseconds(10);
  Duration usual_max = std::chrono::milliseconds(1);
  Duration late_max = std::chrono::seconds(30);   ///< of call_late and of a second result
};

struct CallCounters {
  std::uint64_t calls = 0;
  std::uint64_t late = 0;   ///< with call_delayed
  std::uint64_t lost = 0;
  std::uint64_t repeated = 0;
  std::uint64_t after_abandon = 0;    ///< came back after their lane was left
  std::uint64_t closed_on_lost = 0;   ///< close() that would have waited for ever
};

/// Lanes whose calls are made one at a time, each at some moment of the time it takes; what comes
/// back on different lanes comes in any order. A lane lives on the simulation's one thread; its
/// result reaches an actor as from a completion thread.
///
/// close() cannot wait here: it makes the running call come back at once. If that call is lost, a
/// real thread would hang; it is counted, and the simulation calls it a violation.
class SimCompletionSource final : public CompletionSource {
 public:
  /// All outlive it. `faults` may change during the run.
  SimCompletionSource(SimClock& clock, const Faults& faults, std::uint64_t seed);
  /// No lane is open any more. Calls that were lost or left end now, unheard.
  ~SimCompletionSource() override;

  [[nodiscard]] std::unique_ptr<CompletionLane> open_lane(std::string_view name,
                                                          std::size_t queued_max) override;
  [[nodiscard]] std::uint64_t abandoned() const noexcept override { return abandoned_; }

  void set_times(const CallTimes& times) noexcept { times_ = times; }
  [[nodiscard]] const CallCounters& counters() const noexcept { return counters_; }

  /// Calls may stand still in the middle of run(), by block_until(). Costs a stack a call.
  void let_calls_block() noexcept { calls_block_ = true; }
  /// For run() of a call, if calls may block: blocks it in virtual time until `ready` says so:
  /// true. False at `deadline`, or when its lane is closed or the simulation ends. `ready` is asked
  /// at once and after each wake_blocked().
  bool block_until(const std::function<bool()>& ready, TimePoint deadline);
  /// What blocked calls wait for may have happened.
  void wake_blocked();

  /// Lanes whose name begins so are our own compute threads: slow at times, but faithful.
  void spare(std::string prefix) { spared_.push_back(std::move(prefix)); }

 private:
  friend class SimLane;
  class ActiveCall;

  SimClock& clock_;
  const Faults& faults_;
  SimRandom random_;
  CallTimes times_;
  CallCounters counters_;
  std::vector<std::string> spared_;
  ActiveCall* calls_ = nullptr;      // all that began and have not ended
  ActiveCall* on_fiber_ = nullptr;   // whose run() runs just now, if calls may block
  bool calls_block_ = false;
  std::uint64_t abandoned_ = 0;
};

}   // namespace duet::runtime::simulation
