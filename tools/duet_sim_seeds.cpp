// duet_sim_seeds.cpp: reads the file of seeds, strictly: a line that is skipped tests nothing.
#include "tools/duet_sim_seeds.hpp"

#include <charconv>
#include <cstddef>
#include <sstream>

namespace duet::tools {

std::vector<SimSeed> read_sim_seeds(std::istream& in, std::string& error) {
  std::vector<SimSeed> seeds;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const std::size_t hash = line.find('#');
    std::istringstream words(line.substr(0, hash));
    std::string name;
    std::string seed;
    std::string more;
    words >> name >> seed >> more;
    if (name.empty()) continue;
    const SimWorkload* const workload = find_sim_workload(name);
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(seed.data(), seed.data() + seed.size(), value);
    std::string reason = hash == std::string::npos ? "" : line.substr(hash + 1);
    reason.erase(0, reason.find_first_not_of(' '));
    if (workload == nullptr) {
      error = std::to_string(number) + ": there is no workload '" + name + "'";
    } else if (code != std::errc() || end != seed.data() + seed.size()) {
      error = std::to_string(number) + ": '" + seed + "' is no seed";
    } else if (!more.empty() || reason.empty()) {
      error = std::to_string(number) + ": a line is WORKLOAD SEED # reason";
    }
    if (!error.empty()) return {};
    seeds.push_back(SimSeed{workload, value, std::move(reason)});
  }
  return seeds;
}

}   // namespace duet::tools
