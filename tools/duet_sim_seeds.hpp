// duet_sim_seeds.hpp: the file of seeds that once found a bug.
#pragma once

#include "tools/duet_sim_workload.hpp"

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace duet::tools {

struct SimSeed {
  const SimWorkload* workload;
  std::uint64_t seed;
  std::string reason;
};

/// Lines "WORKLOAD SEED # reason"; empty ones and those that begin with '#' are skipped. A wrong
/// line ends it: `error` is then "LINE: what".
[[nodiscard]] std::vector<SimSeed> read_sim_seeds(std::istream& in, std::string& error);

}   // namespace duet::tools
