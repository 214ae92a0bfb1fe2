// administration.hpp: what the application shows to its operator beyond what clients may see.
#pragma once

#include "device/contract/types.hpp"
#include "device/package/budget.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace duet::actors {

/// What one chip recorded.
struct ChipTrace {
  std::uint32_t chip = 0;
  std::string alias;   ///< of the chip's model.
  device::Trace trace;
  std::string error;   ///< why there is none, "" if there is.
};

/// What one chip's memory holds, beside what its package had planned.
struct ChipMemory {
  std::uint32_t chip = 0;
  std::string alias;              ///< of the chip's model.
  std::uint32_t context = 0;      ///< positions of a planned slot.
  std::uint32_t kv_slots = 0;     ///< planned.
  device::ChipBudget planned;     ///< the package's memory report, judged.
  device::MemoryUsage measured;   ///< by the board's runtime; nothing if there is an error.
  std::string error;              ///< why nothing could be measured, "" if it could.
};

/// For the administration socket alone: it shows chips. Any thread may call; nothing blocks.
class Administration {
 public:
  virtual ~Administration() = default;

  /// Takes the intervals recorded since the last call, so that two readers share them; bounded by
  /// device::limits::trace_events_max a chip. `done` is called once, on any thread, with one entry
  /// a model, or none if the service is stopping.
  virtual void take_traces(std::function<void(std::vector<ChipTrace>)> done) = 0;

  /// Asks the board what its chips hold, on the telemetry queue: no job waits. `done` is called
  /// once, on any thread, with one entry a model, or none if the service is stopping.
  virtual void measure_memory(std::function<void(std::vector<ChipMemory>)> done) = 0;
};

}   // namespace duet::actors
