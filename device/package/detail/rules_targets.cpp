// rules_targets.cpp: chips, masks, cores, routes and what models may not share (P2xx).
#include "device/package/detail/rules.hpp"
#include "device/package/limits.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace duet::device::detail {
namespace {

/// "chip0" → 0; nothing for other texts.
std::optional<std::uint32_t> chip_number(const std::string& text) {
  if (text.size() != 5 || text.compare(0, 4, "chip") != 0 || text[4] < '0' || text[4] > '9')
    return {};
  return static_cast<std::uint32_t>(text[4] - '0');
}

void check_section_target(const Subject& subject, const Section& section) {
  const Manifest& m = subject.manifest;
  const std::uint32_t mask = section.chip_mask;
  const std::string key = key_of(section, "chip_mask");
  if (!std::has_single_bit(mask)) {
    subject.report(Code::mask_not_single, key,
                   concat("the mask ", mask, " names ", std::popcount(mask),
                          " chips; a section lies on exactly one"));
  }
  if (mask >> std::min(m.chips, 31U) != 0) {
    subject.report(
        Code::chip_unknown, key,
        concat("the mask ", mask, " names a chip that a board of ", m.chips, " has not"));
  }
  const Model* model = find_model(m, section.model);
  if (model != nullptr && std::has_single_bit(mask) &&
      static_cast<std::uint32_t>(std::countr_zero(mask)) != model->chip) {
    subject.report(Code::section_chip_mismatch, key,
                   concat("the section lies on chip ", std::countr_zero(mask), " but model ",
                          in_quotes(model->name), " on chip ", model->chip));
  }
  const bool writable = section.kind == SectionKind::kv || section.kind == SectionKind::workspace ||
                        section.kind == SectionKind::input || section.kind == SectionKind::output;
  if (section.writable != writable) {
    subject.report(Code::writable_wrong, key_of(section, "writable"),
                   concat("a ", name_of(section.kind), " section must ", writable ? "" : "not ",
                          "be writable"));
  }
}

void check_graph_target(const Subject& subject, const Graph& graph) {
  const Model* model = owner_of(subject.manifest, graph);
  for (const std::uint32_t chip : graph.target_chips) {
    if (chip >= subject.manifest.chips) {
      subject.report(Code::chip_unknown, key_of(graph, "target_chips"),
                     concat("the board has no chip ", chip));
    }
  }
  if (model != nullptr &&
      (graph.target_chips.size() != 1 || graph.target_chips[0] != model->chip)) {
    subject.report(Code::graph_target_mismatch, key_of(graph, "target_chips"),
                   concat("the targets are not [", model->chip, "], the chip of model ",
                          in_quotes(model->name)));
  }
  if (graph.mode != ChipMode::schip || graph.task != TaskKind::single_chip || graph.calc_mchip) {
    subject.report(Code::chip_mode_mismatch, key_of(graph, "mode"),
                   concat("mode ", name_of(graph.mode), ", task ", name_of(graph.task),
                          ", calc_mchip ", graph.calc_mchip ? "true" : "false",
                          ": a model that lives on one chip is schip, single_chip, false"));
  }
}

void check_cores(const Subject& subject, const Graph& graph) {
  std::set<std::uint32_t> cores;
  bool sound = graph.programs.size() == subject.manifest.cores_per_chip;
  for (const std::string& name : graph.programs) {
    const Section* section = find_section(subject.manifest, name);
    if (section == nullptr) return;   // P113
    sound = sound && section->core && *section->core < subject.manifest.cores_per_chip &&
            cores.insert(*section->core).second;
  }
  if (!sound) {
    subject.report(Code::program_cores_wrong, key_of(graph, "programs"),
                   concat("there must be one program for each of the ",
                          subject.manifest.cores_per_chip, " CalCores"));
  }
}

void check_sync_units(const Subject& subject) {
  std::map<std::uint32_t, const Graph*> owner;
  for (const Graph& graph : subject.manifest.graphs) {
    if (graph.sync_units.size() != package_limits::sync_units_per_graph) {
      subject.report(Code::sync_unit_conflict, key_of(graph, "sync_units"),
                     concat(graph.sync_units.size(), " sync units; a graph has ",
                            package_limits::sync_units_per_graph));
    }
    for (const std::uint32_t unit : graph.sync_units) {
      const auto [at, fresh] = owner.emplace(unit, &graph);
      if (!fresh) {
        subject.report(Code::sync_unit_conflict, key_of(graph, "sync_units"),
                       concat("the sync unit ", unit, " is used by graph ",
                              in_quotes(at->second->name), " already"));
      }
    }
  }
}

void check_routes(const Subject& subject) {
  std::map<std::string, std::string> window_owner;
  for (const DmaRoute& route : subject.manifest.dma_routes) {
    const std::string key = "dma_routes." + route.name;
    const Model* model = find_model(subject.manifest, route.model);
    if (model == nullptr) {
      subject.report(Code::reference_unknown, key + ".model",
                     "there is no model " + in_quotes(route.model));
      continue;
    }
    const bool in = route.from == "host";
    const auto chip = chip_number(in ? route.to : route.from);
    if (in == (route.to == "host") || !chip) {
      subject.report(Code::route_wrong, key,
                     concat("from ", in_quotes(route.from), " to ", in_quotes(route.to),
                            ": a route joins the host and one chip"));
    } else if (*chip != model->chip) {
      subject.report(Code::route_wrong, key,
                     concat("the route reaches chip ", *chip, " but model ", in_quotes(model->name),
                            " lives on chip ", model->chip));
    }
    const auto [at, fresh] = window_owner.emplace(route.window, route.model);
    if (!is_plain_name(route.window) || (!fresh && at->second != route.model)) {
      subject.report(Code::route_wrong, key + ".window",
                     "the host window " + in_quotes(route.window) + " is shared between models");
    }
  }
}

void check_models(const Subject& subject) {
  const auto& models = subject.manifest.models;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const KvRegion& kv = models[i].kv;
    if (models[i].chip >= subject.manifest.chips) {
      subject.report(Code::chip_unknown, key_of(models[i], "chip"),
                     concat("the board has no chip ", models[i].chip));
    }
    if (kv.sequence_id_first > kv.sequence_id_last) {
      subject.report(Code::sequence_range_wrong, key_of(models[i], "kv.sequence_id_first"),
                     "the range of sequence ids is empty");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (models[i].chip == models[j].chip) {
        subject.report(Code::models_share_chip, key_of(models[i], "chip"),
                       concat("chip ", models[i].chip, " is the chip of model ",
                              in_quotes(models[j].name), " already"));
      }
      const KvRegion& other = models[j].kv;
      if (kv.sequence_id_first <= other.sequence_id_last &&
          other.sequence_id_first <= kv.sequence_id_last) {
        subject.report(Code::sequence_range_wrong, key_of(models[i], "kv.sequence_id_first"),
                       "the sequence ids overlap those of model " + in_quotes(models[j].name));
      }
    }
  }
}

}   // namespace

void check_targets(const Subject& subject) {
  check_models(subject);
  for (const Section& section : subject.manifest.sections) check_section_target(subject, section);
  for (const Graph& graph : subject.manifest.graphs) {
    check_graph_target(subject, graph);
    check_cores(subject, graph);
  }
  check_sync_units(subject);
  check_routes(subject);
}

}   // namespace duet::device::detail
