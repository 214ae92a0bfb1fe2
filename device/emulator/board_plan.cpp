// board_plan.cpp: turns a manifest into the board's own tables, refusing what does not add up.
#include "device/emulator/board_plan.hpp"

#include "device/contract/device.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace duet::device::emulator {
namespace {

// Limits that keep the products below in 64 bits and the board's tables small.
constexpr std::uint32_t tokens_max = 1U << 20U;
constexpr std::uint32_t vocabulary_max = 1U << 24U;
constexpr std::uint64_t work_max = std::uint64_t{1} << 60U;   // sums of three do not wrap

Failure invalid(std::string sentence) {
  return {errc::package_invalid, std::move(sentence)};
}

std::string quoted(const std::string& name) {
  return "\"" + name + "\"";
}

/// The section of that name if it is of `kind` and belongs to `model`.
result<const Section*> owned_section(const Manifest& manifest, const std::string& name,
                                     SectionKind kind, const Model& model, const char* what) {
  const Section* section = find_section(manifest, name);
  if (section == nullptr || section->kind != kind || section->model != model.name) {
    return invalid("model " + quoted(model.name) + ": " + what + " section " + quoted(name) +
                   " is missing or belongs elsewhere");
  }
  return section;
}

result<void> check_staging(const Manifest& manifest, const Model& model, const Graph& graph) {
  for (const SectionKind kind : {SectionKind::input, SectionKind::output}) {
    const std::uint64_t elements =
        kind == SectionKind::input ? graph.tokens_max : model.config.vocabulary;
    for (const Engine engine : {Engine::ping, Engine::pong}) {
      const bool found = std::any_of(
          manifest.sections.begin(), manifest.sections.end(), [&](const Section& section) {
            return section.kind == kind && section.model == model.name &&
                   section.engine == engine &&
                   (section.graph.empty() || section.graph == graph.name) &&
                   section.bytes >= elements * 4;
          });
      if (!found) {
        return invalid("graph " + quoted(graph.name) + ": no " +
                       (kind == SectionKind::input ? "input" : "output") + " section of the " +
                       to_string(engine) + " engine holds " + std::to_string(elements) +
                       " elements");
      }
    }
  }
  return {};
}

result<PoolPlan> plan_pool(const Manifest& manifest, const Model& model) {
  const KvRegion& kv = model.kv;
  const auto section = owned_section(manifest, kv.section, SectionKind::kv, model, "kv");
  if (section.has_error()) return section.error();
  const std::string where = "model " + quoted(model.name) + ": kv ";
  if (kv.dtype != "bf16") return invalid(where + "dtype " + quoted(kv.dtype) + " is not bf16");
  if (kv.slots == 0 || kv.slots > limits::kv_slots_max) {
    return invalid(where + "slots must be 1 to " + std::to_string(limits::kv_slots_max));
  }
  if (kv.tokens_per_slot == 0 || kv.tokens_per_slot > tokens_max) {
    return invalid(where + "tokens_per_slot must be 1 to " + std::to_string(tokens_max));
  }
  if (kv.bytes_per_slot < kv_slot_bytes(model.config, kv.tokens_per_slot) ||
      kv.bytes_per_slot == 0) {
    return invalid(where + "slot is smaller than its positions");
  }
  // Division, because the product may overflow.
  if (section.value()->bytes / kv.slots < kv.bytes_per_slot) {
    return invalid(where + "section is smaller than its slots");
  }
  if (kv.sequence_id_first > kv.sequence_id_last) return invalid(where + "sequence range is empty");
  PoolPlan pool;
  pool.model = model.name;
  pool.chip = model.chip;
  pool.slots = kv.slots;
  pool.tokens_per_slot = kv.tokens_per_slot;
  pool.bytes_per_slot = kv.bytes_per_slot;
  pool.sequence_first = kv.sequence_id_first;
  pool.sequence_last = kv.sequence_id_last;
  return pool;
}

/// What one job of the graph reads and computes, for the roofline of a timed board.
void measure_work(GraphPlan& plan, const Model& model) {
  plan.kv_bytes_per_token = std::min(work_max, kv_slot_bytes(model.config, 1));
  for (const Tensor& tensor : model.tensors) {
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : tensor.shape) {
      elements = extent == 0 ? 0 : std::min(elements, work_max / extent) * extent;
    }
    plan.weight_bytes = std::min(work_max, plan.weight_bytes + std::min(work_max, tensor.bytes));
    plan.operations_per_token = std::min(work_max, plan.operations_per_token + 2 * elements);
  }
}

result<GraphPlan> plan_graph(const Manifest& manifest, const Graph& graph) {
  const std::string where = "graph " + quoted(graph.name) + ": ";
  const Model* owner = nullptr;
  std::uint32_t pool = 0;
  for (std::uint32_t i = 0; i < manifest.models.size(); ++i) {
    const Model& model = manifest.models[i];
    if (model.prefill != graph.name && model.decode != graph.name) continue;
    if (owner != nullptr || model.prefill == model.decode) {
      return invalid(where + "it is used twice");
    }
    owner = &model;
    pool = i;
  }
  if (owner == nullptr) return invalid(where + "no model uses it");
  const GraphKind kind = owner->prefill == graph.name ? GraphKind::prefill : GraphKind::decode;
  if (graph.kind != kind) return invalid(where + "its kind is not the one its model names");
  if (graph.target_chips.size() != 1 || graph.target_chips[0] != owner->chip ||
      graph.mode != ChipMode::schip || graph.task != TaskKind::single_chip || graph.calc_mchip) {
    return invalid(where + "it is not compiled for chip " + std::to_string(owner->chip) + " alone");
  }
  if (graph.batch != 1) return invalid(where + "batch must be 1");
  if (graph.context == 0 || graph.context > owner->kv.tokens_per_slot) {
    return invalid(where + "context does not fit a kv slot");
  }
  if (graph.tokens_max == 0 || graph.tokens_max > graph.context) {
    return invalid(where + "tokens_max must be 1 to its context");
  }
  if (kind == GraphKind::decode && graph.tokens_max != 1) {
    return invalid(where + "a decode job has one token");
  }
  if (auto staging = check_staging(manifest, *owner, graph); staging.has_error()) {
    return staging.error();
  }
  const auto workspace =
      owned_section(manifest, graph.workspace, SectionKind::workspace, *owner, "workspace");
  if (workspace.has_error()) return workspace.error();
  GraphPlan plan;
  plan.name = graph.name;
  plan.kind = kind;
  plan.chip = owner->chip;
  plan.pool = pool;
  plan.tokens_max = graph.tokens_max;
  plan.context = graph.context;
  plan.vocabulary = owner->config.vocabulary;
  plan.split_prefill = graph.split_prefill;
  measure_work(plan, *owner);
  return plan;
}

result<SectionPlan> plan_section(const Manifest& manifest, const Section& section) {
  const std::string where = "section " + quoted(section.name) + ": ";
  const auto owner = std::find_if(manifest.models.begin(), manifest.models.end(),
                                  [&](const Model& model) { return model.name == section.model; });
  if (owner == manifest.models.end()) return invalid(where + "its model does not exist");
  if (section.chip_mask != std::uint32_t{1} << owner->chip) {
    return invalid(where + "chip mask " + std::to_string(section.chip_mask) +
                   " is not its model's chip " + std::to_string(owner->chip) + " alone");
  }
  if (section.bytes == 0) return invalid(where + "it is empty");
  SectionPlan plan;
  plan.name = section.name;
  plan.owner = section.model;
  plan.kind = section.kind;
  plan.chip = owner->chip;
  plan.address = section.address;
  plan.bytes = section.bytes;
  return plan;
}

result<void> check_models(const Manifest& manifest, const Profile& profile) {
  if (manifest.models.empty()) return invalid("the package holds no model");
  std::set<std::string> names;
  for (const Model& model : manifest.models) {
    const std::string where = "model " + quoted(model.name) + ": ";
    if (model.name.empty() || !names.insert(model.name).second) {
      return invalid(where + "its name is empty or there twice");
    }
    if (model.chip >= profile.chips) {
      return invalid(where + "chip " + std::to_string(model.chip) + " does not exist");
    }
    if (model.config.vocabulary == 0 || model.config.vocabulary > vocabulary_max) {
      return invalid(where + "vocabulary must be 1 to " + std::to_string(vocabulary_max));
    }
    for (const Model& other : manifest.models) {
      const bool apart = model.kv.sequence_id_last < other.kv.sequence_id_first ||
                         other.kv.sequence_id_last < model.kv.sequence_id_first;
      if (&model != &other && !apart) {
        return invalid(where + "its sequence ids are also model " + quoted(other.name) + "'s");
      }
    }
  }
  return {};
}

template <typename Item>
std::optional<std::string> repeated_name(const std::vector<Item>& items) {
  std::set<std::string> names;
  for (const Item& item : items) {
    if (item.name.empty() || !names.insert(item.name).second) return item.name;
  }
  return std::nullopt;
}

}   // namespace

bool filled_at_load(SectionKind kind) noexcept {
  switch (kind) {
    case SectionKind::program:
    case SectionKind::parameters:
    case SectionKind::parameter_map:
    case SectionKind::command:
    case SectionKind::csr:
      return true;
    case SectionKind::kv:
    case SectionKind::workspace:
    case SectionKind::input:
    case SectionKind::output:
      return false;
  }
  return false;
}

std::uint64_t kv_slot_bytes(const ModelConfig& config, std::uint32_t tokens) noexcept {
  std::uint64_t bytes = 4;   // K and V, two bytes each.
  for (const std::uint64_t factor : {std::uint64_t{config.layers}, std::uint64_t{config.kv_heads},
                                     std::uint64_t{config.head_dim}, std::uint64_t{tokens}}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) {
      return std::numeric_limits<std::uint64_t>::max();
    }
  }
  return bytes;
}

result<BoardPlan> plan_board(const Manifest& manifest, std::string hash, const Profile& profile) {
  if (manifest.chips > profile.chips || manifest.cores_per_chip > profile.cores_per_chip) {
    return invalid("it was made for a board with more chips or cores");
  }
  if (manifest.dram_bytes_per_chip > profile.dram_bytes_per_chip) {
    return Failure{errc::out_of_memory, "its addresses were planned for chips of " +
                                            std::to_string(manifest.dram_bytes_per_chip) +
                                            " bytes; this board's have " +
                                            std::to_string(profile.dram_bytes_per_chip)};
  }
  if (manifest.sections.size() > limits::sections_max) {
    return invalid("it has more than " + std::to_string(limits::sections_max) + " sections");
  }
  if (auto models = check_models(manifest, profile); models.has_error()) return models.error();
  if (const auto name = repeated_name(manifest.graphs)) {
    return invalid("graph name " + quoted(*name) + " is empty or there twice");
  }
  if (const auto name = repeated_name(manifest.sections)) {
    return invalid("section name " + quoted(*name) + " is empty or there twice");
  }
  BoardPlan plan;
  plan.hash = std::move(hash);
  for (const Section& section : manifest.sections) {
    auto planned = plan_section(manifest, section);
    if (planned.has_error()) return planned.error();
    plan.sections.push_back(std::move(planned).value());
  }
  for (const Model& model : manifest.models) {
    auto pool = plan_pool(manifest, model);
    if (pool.has_error()) return pool.error();
    plan.pools.push_back(std::move(pool).value());
    for (const std::string& graph : {model.prefill, model.decode}) {
      if (find_graph(manifest, graph) == nullptr) {
        return invalid("model " + quoted(model.name) + ": graph " + quoted(graph) +
                       " does not exist");
      }
    }
  }
  for (const Graph& graph : manifest.graphs) {
    auto planned = plan_graph(manifest, graph);
    if (planned.has_error()) return planned.error();
    plan.graphs.push_back(std::move(planned).value());
  }
  return plan;
}

}   // namespace duet::device::emulator
