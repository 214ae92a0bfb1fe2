// sim_random.cpp: SplitMix64, and how a stream gets its state.
#include "runtime/simulation/sim_random.hpp"

#include "runtime/assert.hpp"

#include <cmath>

namespace duet::runtime::simulation {
namespace {

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15ULL;

std::uint64_t mix(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}   // namespace

std::uint64_t hash_text(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Mixed twice: neighbouring seeds must not give streams that are shifted copies of each other.
SimRandom::SimRandom(std::uint64_t seed, std::string_view stream) noexcept
    : state_(mix(mix(seed + golden_gamma) ^ hash_text(stream))) {}

std::uint64_t SimRandom::next() noexcept {
  state_ += golden_gamma;
  return mix(state_);
}

double SimRandom::magnitude(double min, double max) noexcept {
  DUET_ASSERT(min > 0 && min <= max, min, max);
  return min * std::pow(max / min, unit());
}

}   // namespace duet::runtime::simulation
