// faults.cpp: the kinds of faults and the range of each one's probability.
#include "runtime/simulation/faults.hpp"

#include "runtime/assert.hpp"

#include <cstdio>

namespace duet::runtime::simulation {
namespace {

struct Kind {
  const char* name;
  double min;   // of the probability in a swarm
  double max;
};

// A lost call costs its caller a whole timeout, a stall costs everybody one: too many of them and a
// run does nothing else. A place of buggify() that is never on finds nothing.
constexpr std::array<Kind, fault_kinds> kinds{{
    {"call_delayed", 0.01, 0.5},
    {"call_late", 0.001, 0.1},
    {"call_lost", 0.001, 0.1},
    {"call_repeated", 0.001, 0.3},
    {"newest_first", 0.05, 0.95},
    {"slow_actor", 0.001, 0.2},
    {"stall", 0.00001, 0.002},
    {"buggify", 0.1, 0.5},
}};

}   // namespace

const char* to_string(FaultKind kind) noexcept {
  return kinds[static_cast<std::size_t>(kind)].name;
}

Faults Faults::swarm(std::uint64_t seed) {
  Faults faults;
  SimRandom random(seed, "swarm");
  for (std::size_t i = 0; i < fault_kinds; ++i) {
    const bool on = random.below(2) == 1;
    const double probability = random.magnitude(kinds[i].min, kinds[i].max);
    if (on) faults.probability_[i] = probability;
  }
  return faults;
}

void Faults::set(FaultKind kind, double probability) noexcept {
  DUET_ASSERT(probability >= 0 && probability <= 1, probability);
  probability_[static_cast<std::size_t>(kind)] = probability;
}

std::string Faults::text() const {
  std::string text;
  for (std::size_t i = 0; i < fault_kinds; ++i) {
    if (probability_[i] == 0) continue;
    std::array<char, 48> one{};
    std::snprintf(one.data(), one.size(), "%s%s %.3g", text.empty() ? "" : ", ", kinds[i].name,
                  probability_[i]);
    text += one.data();
  }
  return text.empty() ? "none" : text;
}

}   // namespace duet::runtime::simulation
