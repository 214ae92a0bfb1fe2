// duet_sim_workload.hpp: what duet-sim can run, and what a run tells.
#pragma once

#include "runtime/time.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::tools {

/// Bugs that are planted to see that they are found; in the workload or the simulator, never in
/// production code.
enum class Plant : std::uint8_t {
  none,
  lost_wakeup,       ///< Now and then the scheduler forgets an actor that became ready.
  double_delivery,   ///< What comes twice is applied twice.
  stale_generation   ///< What a former life began is applied in a later one.
};
[[nodiscard]] const char* to_string(Plant plant) noexcept;
[[nodiscard]] std::optional<Plant> parse_plant(std::string_view text) noexcept;

struct SimOrder {
  std::uint64_t seed = 1;
  Plant plant = Plant::none;
  runtime::Duration day = std::chrono::hours(24);   ///< of the workload of that name
  std::string package;                              ///< directory; of the workload duet
  /// Of the workload duet: jobs may also never end, and their calls never return or very late. The
  /// application does not bear all of that yet.
  bool hung_jobs = false;
  /// Told what happens, a line at a time, if it is set: of the workload duet.
  std::function<void(const std::string& line)> tell;
};

struct SimOutcome {
  std::uint64_t hash = 0;
  runtime::Duration simulated{};
  std::uint64_t activations = 0;
  std::uint64_t handled = 0;   ///< messages and completions
  std::string faults;          ///< what this run's swarm drew
  std::string figures;         ///< of the workload, for people
  /// Each begins with what kind it is: "conservation: ...", "deadlock: ...".
  std::vector<std::string> violations;
};

/// One that can be named on the command line.
struct SimWorkload {
  const char* name;
  const char* what;
  SimOutcome (*run)(const SimOrder& order);
};

[[nodiscard]] std::span<const SimWorkload> sim_workloads() noexcept;
/// Null if there is none of that name.
[[nodiscard]] const SimWorkload* find_sim_workload(std::string_view name) noexcept;

/// What a person needs to repeat a failure:
///   sim failure: seed=17 commit=1a2b3c repeat: duet-sim --workload bank --seed 17
/// and the violations, a line each.
[[nodiscard]] std::string describe_failure(const SimWorkload& workload, const SimOrder& order,
                                           const SimOutcome& outcome, std::string_view commit);

// Accounts that move tokens, on a disk that loses, repeats and delays; killed and started again.
// Conservation: no token is made or lost, and in the end every transfer is settled.
[[nodiscard]] SimOutcome run_bank(const SimOrder& order);

// A thousand actors with timers and messages over a simulated day.
[[nodiscard]] SimOutcome run_day(const SimOrder& order);

// The application on the emulated board in virtual time: requests, cancels, slow and vanishing
// readers, faults of the board. Each request ends once; what it says is the beginning of the only
// right answer, and all of it if it ended well; the books close. Throws std::runtime_error if the
// package is not valid.
[[nodiscard]] SimOutcome run_duet(const SimOrder& order);

}   // namespace duet::tools
