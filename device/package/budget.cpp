// budget.cpp: sums and limits.
#include "device/package/budget.hpp"

#include "device/program/byte_reader.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace duet::device {

namespace {

constexpr std::uint64_t reserve_bytes_min = std::uint64_t{1} << 30U;

/// "1.5 GiB".
std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> units = {"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text.data();
}

/// floor(dram * percent / 100) without overflow.
std::uint64_t part_of(std::uint64_t dram, std::uint64_t percent) {
  return dram / 100 * percent + dram % 100 * percent / 100;
}

std::uint64_t reserve_of(std::uint64_t dram) {
  return std::max(reserve_bytes_min, part_of(dram, 15));
}

void judge(ChipBudget& budget) {
  const std::uint64_t go_max = part_of(budget.dram, 75);
  const std::uint64_t warn_max = part_of(budget.dram, 80);
  budget.reserve = reserve_of(budget.dram);
  const std::uint64_t free = budget.dram - std::min(budget.dram, budget.used);
  if (budget.used > warn_max) {
    budget.verdict = BudgetVerdict::no_go;
    budget.reason =
        "it takes " + size_text(budget.used - warn_max) + " more than 80 % of the chip's DRAM";
  } else if (free < budget.reserve) {
    budget.verdict = BudgetVerdict::no_go;
    budget.reason = "only " + size_text(free) + " would stay free; " + size_text(budget.reserve) +
                    " must (the larger of 1 GiB and 15 %)";
  } else if (budget.used > go_max) {
    budget.verdict = BudgetVerdict::warn;
    budget.reason =
        "it takes " + size_text(budget.used - go_max) + " more than 75 % of the chip's DRAM";
  }
}

}   // namespace

const char* to_string(BudgetVerdict verdict) noexcept {
  switch (verdict) {
    case BudgetVerdict::go:
      return "go";
    case BudgetVerdict::warn:
      return "warn";
    case BudgetVerdict::no_go:
      return "no-go";
  }
  return "no-go";
}

std::vector<ChipBudget> chip_budgets(const Manifest& manifest) {
  std::vector<ChipBudget> budgets;
  for (std::uint32_t chip = 0; chip < manifest.chips; ++chip) {
    ChipBudget budget;
    budget.chip = chip;
    budget.dram = manifest.dram_bytes_per_chip;
    for (const MemoryLine& line : manifest.memory) {
      if (line.chip != chip) continue;
      budget.lines.push_back(line);
      if (line.what == "guard") continue;   // part of what stays free
      // The lines may be of a package that was never validated: their sum must not wrap.
      budget.used = checked_add(budget.used, line.bytes).value_or(~std::uint64_t{0});
    }
    if (budget.lines.empty()) continue;
    judge(budget);
    budgets.push_back(std::move(budget));
  }
  return budgets;
}

std::uint64_t go_bytes_max(std::uint64_t dram) {
  const std::uint64_t reserve = reserve_of(dram);
  return dram <= reserve ? 0 : std::min(part_of(dram, 75), dram - reserve);
}

std::string budget_text(const ChipBudget& budget) {
  std::array<char, 32> percent{};
  std::snprintf(percent.data(), percent.size(), "%.1f %%",
                budget.dram == 0
                    ? 0.0
                    : 100.0 * static_cast<double>(budget.used) / static_cast<double>(budget.dram));
  std::string text = "chip " + std::to_string(budget.chip) + ": " + to_string(budget.verdict) +
                     ": " + size_text(budget.used) + " of " + size_text(budget.dram) + " (" +
                     percent.data() + ")";
  const char* separator = ": ";
  for (const MemoryLine& line : budget.lines) {
    if (line.bytes == 0) continue;
    text += separator + line.what + " " + size_text(line.bytes);
    separator = ", ";
  }
  if (!budget.reason.empty()) text += "; " + budget.reason;
  return text;
}

}   // namespace duet::device
