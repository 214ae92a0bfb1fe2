// sim_scheduler.hpp: the scheduler of one simulated system.
#pragma once

#include "runtime/scheduler.hpp"
#include "runtime/simulation/ready_set.hpp"
#include "runtime/simulation/sim_random.hpp"

#include <cstdint>

namespace duet::runtime::detail {
class Core;
}   // namespace duet::runtime::detail

namespace duet::runtime::simulation {

/// Puts what becomes ready into the simulation's set; the simulation picks. One thread.
class SimScheduler final : public Scheduler {
 public:
  explicit SimScheduler(ReadySet& ready) noexcept : ready_(ready) {}

  void post(Runnable& runnable) noexcept override;
  void close() noexcept override;
  void work_started() noexcept override { ++work_; }
  void work_finished() noexcept override;

  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// Asks, computations and blocking calls that have not ended.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }
  /// Of the system, once it has spawned an actor and until it has ended; else null.
  [[nodiscard]] detail::Core* core() const noexcept { return core_; }

  /// A planted bug, to try the detectors with: a post is forgotten with `probability`.
  void lose_posts(double probability, SimRandom& random) noexcept {
    lost_ = probability;
    random_ = &random;
  }

 private:
  ReadySet& ready_;
  detail::Core* core_ = nullptr;
  SimRandom* random_ = nullptr;   // of the planted bug
  double lost_ = 0;
  std::uint64_t work_ = 0;
  bool closed_ = false;
};

}   // namespace duet::runtime::simulation
