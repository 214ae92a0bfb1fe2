// duet_sim_workload.cpp: the list of workloads, and a failure in words.
#include "tools/duet_sim_workload.hpp"

#include <array>

namespace duet::tools {
namespace {

constexpr std::array workloads{
    SimWorkload{"bank", "accounts move tokens; crashes; a disk that loses, repeats and delays",
                &run_bank},
    SimWorkload{"day", "a day of 1000 actors with timers and messages", &run_day},
    SimWorkload{"duet", "the application on the emulated board, with faults of the board",
                &run_duet},
};

constexpr std::array plants{Plant::none, Plant::lost_wakeup, Plant::double_delivery,
                            Plant::stale_generation};

}   // namespace

const char* to_string(Plant plant) noexcept {
  switch (plant) {
    case Plant::none:
      return "none";
    case Plant::lost_wakeup:
      return "lost_wakeup";
    case Plant::double_delivery:
      return "double_delivery";
    case Plant::stale_generation:
      return "stale_generation";
  }
  return "unknown";
}

std::optional<Plant> parse_plant(std::string_view text) noexcept {
  for (const Plant plant : plants) {
    if (text == to_string(plant)) return plant;
  }
  return std::nullopt;
}

std::span<const SimWorkload> sim_workloads() noexcept {
  return workloads;
}

const SimWorkload* find_sim_workload(std::string_view name) noexcept {
  for (const SimWorkload& workload : workloads) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

std::string describe_failure(const SimWorkload& workload, const SimOrder& order,
                             const SimOutcome& outcome, std::string_view commit) {
  const std::string seed = std::to_string(order.seed);
  std::string text = "sim failure: seed=" + seed + " commit=" + std::string(commit) +
                     " repeat: duet-sim --workload " + workload.name;
  if (order.plant != Plant::none) text += std::string(" --plant ") + to_string(order.plant);
  if (order.hung_jobs) text += " --hung-jobs";
  text += " --seed " + seed + "\n  faults: " + outcome.faults;
  for (const std::string& violation : outcome.violations) text += "\n  " + violation;
  return text;
}

}   // namespace duet::tools
