// budget.hpp: whether what a package reserves fits each chip's DRAM with room to spare (R-8.1,
//
#pragma once

#include "device/package/manifest.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace duet::device {

enum class BudgetVerdict : std::uint8_t {
  go,      ///< at most 75 % of the DRAM, and the reserve stays free.
  warn,    ///< up to 80 %.
  no_go,   ///< above, or less than the reserve would stay free.
};
[[nodiscard]] const char* to_string(BudgetVerdict verdict) noexcept;

/// One chip, never the board: each is judged by itself.
struct ChipBudget {
  std::uint32_t chip = 0;
  std::vector<MemoryLine> lines;   ///< of the manifest, in its order; bytes.
  std::uint64_t used = 0;          ///< their sum without the guard, bytes.
  std::uint64_t dram = 0;          ///< bytes.
  std::uint64_t reserve = 0;       ///< must stay free: the larger of 1 GiB and 15 % of the DRAM.
  BudgetVerdict verdict = BudgetVerdict::go;
  std::string reason;   ///< why not go, by how many bytes; "" if go.
};

/// The chips that the manifest uses, in their order. Pure.
[[nodiscard]] std::vector<ChipBudget> chip_budgets(const Manifest& manifest);

/// "chip 0: go: 21.3 MiB of 16.0 GiB (0.1 %): weights 1.4 MiB, kv 16.0 MiB, ...".
[[nodiscard]] std::string budget_text(const ChipBudget& budget);

}   // namespace duet::device
