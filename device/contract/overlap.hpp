// overlap.hpp: how much two chips computed at the same time, from a trace alone.
#pragma once

#include "device/contract/types.hpp"

#include <cstdint>
#include <span>

namespace duet::device {

/// Sums of compute time in chip time. Overlapping intervals of one chip count once.
struct Overlap {
  ChipNanoseconds first_busy = 0;    ///< time in which the first chip computed.
  ChipNanoseconds second_busy = 0;   ///< the same of the second chip.
  ChipNanoseconds both_busy = 0;     ///< time in which both did; at most the shorter of the two.
  double ratio = 0;                  ///< both_busy / the shorter of the two; 0 if one never did.
};

/// Looks at the compute intervals of two chips; the other kinds and chips are ignored. The events
/// may stand in any order. An interval that ends before it begins counts as empty. `first` and
/// `second` must differ. Pure; any thread.
[[nodiscard]] Overlap compute_overlap(std::span<const TraceEvent> trace, std::uint32_t first,
                                      std::uint32_t second);

}   // namespace duet::device
