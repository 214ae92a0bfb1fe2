// duet_pack_budget.hpp: the command `duet-pack budget`: what fits a chip's memory.
#pragma once

#include "device/program/message.hpp"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace duet::tools {

/// "16GiB", "14.075GiB", "512MiB", "4KiB" or a number of bytes; a fraction of a byte is cut off. At
/// most 1 TiB.
[[nodiscard]] device::Result<std::uint64_t> parse_size(std::string_view text);

struct BudgetQuestion {
  /// One package directory, or one or two model files for chips 0 and 1; empty with `reserved`.
  std::vector<std::string> paths;
  /// Absent: the package's own numbers, or 4096, 8 and 16 GiB for model files.
  std::optional<std::uint32_t> context;
  std::optional<std::uint32_t> sequences;
  std::optional<std::uint64_t> dram;   ///< bytes a chip.
  /// What someone else's address plan reserves: chip and bytes.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> reserved;
  std::string svg;   ///< a file to draw to, replaced if there; empty: none.
  bool json = false;
};

/// Writes the budget of every chip to `out`, as text or as one JSON object. True if every chip is
/// go or warn, false if one is no-go. Blocking. Errors: what cannot be read, numbers out of range.
[[nodiscard]] device::Result<bool> answer_budget(const BudgetQuestion& question, std::ostream& out);

}   // namespace duet::tools
