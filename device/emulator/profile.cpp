// profile.cpp: checks a profile and says what it promises.
#include "device/emulator/profile.hpp"

#include <stdexcept>

namespace duet::device::emulator {

std::optional<Profile> find_profile(std::string_view name) {
  Profile profile;
  profile.name = name;
  if (name == "combined") return profile;
  if (name == "timed" || name == "null") {
    profile.compute = name == "timed" ? Compute::timed : Compute::null;
    profile.transfers = TransferTiming::modelled;
    return profile;
  }
  return std::nullopt;
}

void check_profile(const Profile& profile) {
  const auto require = [](bool condition, const char* what) {
    if (!condition) throw std::invalid_argument{std::string{"emulator profile: "} + what};
  };
  require(profile.chips >= 1 && profile.chips <= limits::chips_max, "chips must be 1 or 2");
  require(profile.cores_per_chip >= 1 && profile.cores_per_chip <= 2,
          "cores_per_chip must be 1 or 2");
  require(profile.dram_bytes_per_chip > 0, "dram_bytes_per_chip must not be 0");
  require(profile.pcie_bytes_per_second > 0, "pcie_bytes_per_second must not be 0");
  require(profile.dram_bytes_per_second > 0, "dram_bytes_per_second must not be 0");
  require(profile.operations_per_second > 0, "operations_per_second must not be 0");
  require(profile.compute == Compute::real || profile.transfers == TransferTiming::modelled,
          "timed and null boards have modelled transfers");
  require(profile.jobs_per_chip_max >= 1 && profile.jobs_per_chip_max <= limits::jobs_per_chip_max,
          "jobs_per_chip_max must be 1 to 16");
  require(profile.trace_events_max >= 1 &&
              profile.trace_events_max <= ::duet::device::limits::trace_events_max,
          "trace_events_max must be 1 to 65536");
  require(profile.combined && profile.independent_queues && !profile.session_reset,
          "only combined boards with independent queues and without session reset are offered");
}

Topology topology_of(const Profile& profile) {
  Topology topology;
  topology.runtime = "duet-emulator/" + profile.name;
  topology.chips = profile.chips;
  topology.cores_per_chip = profile.cores_per_chip;
  topology.engines_per_chip = engines_per_chip;
  topology.dram_bytes_per_chip = profile.dram_bytes_per_chip;
  topology.combined = profile.combined;
  topology.independent_queues = profile.independent_queues;
  topology.session_reset = profile.session_reset;
  topology.ccu_reset = profile.ccu_reset;
  topology.chip_reset = profile.chip_reset;
  topology.independent_load = false;
  topology.sessions_per_chip_max = 1;
  topology.cancel_stops_execution = false;
  topology.wait_deadline = true;
  topology.real_outputs = profile.compute == Compute::real;
  topology.per_chip_memory = profile.per_chip_memory;
  topology.inflight_per_chip_max = ::duet::device::limits::inflight_per_chip_max;
  return topology;
}

}   // namespace duet::device::emulator
