// budget_plan.cpp: the memory of the same models for another context and number of sequences.
#include "device/package/budget.hpp"
#include "device/package/detail/pack_model.hpp"
#include "device/package/limits.hpp"
#include "device/package/package.hpp"
#include "device/package/package_files.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>

namespace duet::device {
namespace {

constexpr std::uint32_t context_step = 256;   // of contexts that are proposed

/// Address plans of what no chip can hold are made in a memory of this size.
constexpr std::uint64_t unlimited = std::uint64_t{1} << 60U;

std::uint64_t aligned(std::uint64_t bytes) {
  constexpr std::uint64_t unit = package_limits::section_alignment;
  return (bytes + unit - 1) / unit * unit;
}

/// What the functions below divide by, index with and multiply.
Result<void> check_manifest(const Manifest& manifest) {
  if (manifest.chips == 0 || manifest.chips > package_limits::chips_max) {
    return failure("the manifest has ", manifest.chips, " chips; 1 to ", package_limits::chips_max,
                   " are possible");
  }
  for (const Model& model : manifest.models) {
    const std::string where = concat("model ", in_quotes(model.name));
    if (model.chip >= manifest.chips) return failure(where, ": there is no chip ", model.chip);
    const auto sound = check_config(model.config, where);
    if (sound.has_error()) return sound.error();
  }
  for (const Section& section : manifest.sections) {
    const Model* owner = find_model(manifest, section.model);
    if (owner == nullptr || section.chip_mask != std::uint32_t{1} << owner->chip) {
      return failure("section ", in_quotes(section.name), " is of no model on its chip; see ",
                     "duet-pack validate");
    }
    if (section.bytes > package_limits::dram_bytes_max) {
      return failure("section ", in_quotes(section.name), " has ", section.bytes, " bytes, more ",
                     "than any chip");
    }
  }
  return {};
}

/// The largest number in [low, high] for which `fits`, which holds up to some number and not above
/// it; nothing if not even `low` does.
template <typename Fits>
std::optional<std::uint32_t> largest(std::uint32_t low, std::uint32_t high, Fits fits) {
  if (low > high || !fits(low)) return std::nullopt;
  while (low < high) {   // halves the range: at most 32 rounds
    const std::uint32_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}   // namespace

Result<Manifest> replanned(const Manifest& manifest, std::uint32_t context, std::uint32_t sequences,
                           std::uint64_t dram) {
  if (context == 0 || sequences == 0 || sequences > package_limits::kv_slots_max) {
    return failure("a budget needs a context of at least 1 and 1 to ", package_limits::kv_slots_max,
                   " sequences");
  }
  const auto sound = check_manifest(manifest);
  if (sound.has_error()) return sound.error();
  Manifest out = manifest;
  for (Model& model : out.models) {
    const std::uint32_t tokens = std::min(context, model.config.context);
    model.kv.slots = sequences;
    model.kv.tokens_per_slot = tokens;
    model.kv.bytes_per_slot = kv_layout_of(model.config, tokens).bytes(Arithmetic::w8a8);
    const auto kv_bytes = checked_multiply(model.kv.bytes_per_slot, sequences);
    if (!kv_bytes || *kv_bytes > unlimited / 2) {
      return failure("model ", in_quotes(model.name), ": ", sequences, " sequences of ", tokens,
                     " tokens overflow any memory");
    }
    for (Section& section : out.sections) {
      if (section.model != model.name) continue;
      if (section.kind == SectionKind::kv) section.bytes = aligned(*kv_bytes);
      if (section.kind == SectionKind::input) section.bytes = aligned(std::uint64_t{4} * tokens);
    }
  }
  for (Graph& graph : out.graphs) {
    for (const Model& model : out.models) {
      if (graph.name != model.prefill && graph.name != model.decode) continue;
      graph.context = model.kv.tokens_per_slot;
      if (graph.kind == GraphKind::prefill) graph.tokens_max = graph.context;
    }
  }
  out.dram_bytes_per_chip = unlimited;
  const auto placed = detail::place_sections(out);
  if (placed.has_error()) return placed.error();
  out.dram_bytes_per_chip = dram;
  out.memory = memory_lines(out);
  return out;
}

Fit find_fit(const Manifest& manifest, std::uint32_t chip, std::uint32_t context,
             std::uint32_t sequences, std::uint64_t dram) {
  const auto goes = [&](std::uint32_t tokens, std::uint32_t slots) {
    const auto plan = replanned(manifest, tokens, slots, dram);
    if (plan.has_error()) return false;
    for (const ChipBudget& budget : chip_budgets(*plan)) {
      if (budget.chip == chip) return budget.verdict == BudgetVerdict::go;
    }
    return false;
  };
  std::uint32_t limit = 0;   // the longest context that a model of this chip has
  for (const Model& model : manifest.models) {
    if (model.chip == chip) limit = std::max(limit, model.config.context);
  }
  Fit fit;
  const std::uint32_t step = std::min(context_step, std::max(limit, 1U));
  const auto steps =
      largest(1, limit / step, [&](std::uint32_t n) { return goes(n * step, sequences); });
  if (steps) fit.context = *steps * step;
  fit.sequences =
      largest(1, package_limits::kv_slots_max, [&](std::uint32_t n) { return goes(context, n); });
  return fit;
}

}   // namespace duet::device
