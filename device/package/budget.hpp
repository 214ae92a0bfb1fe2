// budget.hpp: whether what a package reserves fits each chip's DRAM with room to spare (R-8.1,
//
#pragma once

#include "device/package/manifest.hpp"
#include "device/program/message.hpp"

#include <cstdint>
#include <optional>
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

/// What a chip whose memory is `dram` bytes may hold at most for the verdict go, in bytes.
[[nodiscard]] std::uint64_t go_bytes_max(std::uint64_t dram);

/// The same models for another context, number of sequences and DRAM a chip: sizes and addresses
/// follow, and the memory lines. A model keeps its own limit of the context. The DRAM does not
/// limit it. Pure. Errors: a manifest that no packer writes (it may come from a package that was
/// never validated).
[[nodiscard]] Result<Manifest> replanned(const Manifest& manifest, std::uint32_t context,
                                         std::uint32_t sequences, std::uint64_t dram);

/// What would be go on a chip when one number is kept and the other is the largest possible.
/// Nothing: not even the smallest fits.
struct Fit {
  std::optional<std::uint32_t> context;     ///< with the given sequences; a multiple of 256, or
                                            ///< the model's own limit if that is below.
  std::optional<std::uint32_t> sequences;   ///< with the given context.
};
[[nodiscard]] Fit find_fit(const Manifest& manifest, std::uint32_t chip, std::uint32_t context,
                           std::uint32_t sequences, std::uint64_t dram);

/// A picture (SVG) of each chip's DRAM to scale: what takes it, the limits of 75 and 80 %, and what
/// must stay free. Pure; the same budgets give the same bytes.
[[nodiscard]] std::string budget_svg(const std::vector<ChipBudget>& budgets);

/// "chip 0: go: 21.3 MiB of 16.0 GiB (0.1 %): weights 1.4 MiB, kv 16.0 MiB, ...".
[[nodiscard]] std::string budget_text(const ChipBudget& budget);

}   // namespace duet::device
