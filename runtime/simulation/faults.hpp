// faults.hpp: what a simulation may do to a program, and how often.
#pragma once

#include "runtime/simulation/sim_random.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace duet::runtime::simulation {

enum class FaultKind : std::uint8_t {
  call_delayed,    ///< A blocking call takes up to a hundred times as long as usual.
  call_late,       ///< It takes seconds: most have given up on it when it comes back.
  call_lost,       ///< It never comes back; made or not.
  call_repeated,   ///< Its result comes twice, the second time up to seconds later.
  newest_first,    ///< The actor that became ready last runs next, not any of them.
  slow_actor,      ///< An activation takes up to a millisecond.
  stall,           ///< The whole process stands still for up to 200 ms.
  buggify,         ///< A place of buggify() is on; how often it fires is drawn for each.
};
inline constexpr std::size_t fault_kinds = 8;

[[nodiscard]] const char* to_string(FaultKind kind) noexcept;

/// A probability for each kind: of calls, of picks, of activations, of places. 0 is off.
class Faults {
 public:
  /// None.
  Faults() = default;

  /// A swarm: each kind is off in half of all runs; where it is on, its probability is drawn over
  /// orders of magnitude. So some runs see one kind alone, often, which a fixed mixture never does.
  [[nodiscard]] static Faults swarm(std::uint64_t seed);

  [[nodiscard]] double operator[](FaultKind kind) const noexcept {
    return probability_[static_cast<std::size_t>(kind)];
  }
  /// 0..1.
  void set(FaultKind kind, double probability) noexcept;

  /// "call_lost 0.012, stall 0.0004", or "none".
  [[nodiscard]] std::string text() const;

 private:
  std::array<double, fault_kinds> probability_{};
};

}   // namespace duet::runtime::simulation
