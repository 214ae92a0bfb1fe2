// administration.hpp: what the application shows to its operator beyond what clients may see.
#pragma once

#include "device/contract/types.hpp"

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

/// For the administration socket alone: it shows chips. Any thread may call; nothing blocks.
class Administration {
 public:
  virtual ~Administration() = default;

  /// Takes the intervals recorded since the last call, so that two readers share them; bounded by
  /// device::limits::trace_events_max a chip. `done` is called once, on any thread, with one entry
  /// a model, or none if the service is stopping.
  virtual void take_traces(std::function<void(std::vector<ChipTrace>)> done) = 0;
};

}   // namespace duet::actors
