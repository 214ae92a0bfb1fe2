// duet_pack_audit.cpp: the vendor lists as checks with evidence.
#include "tools/duet_pack_audit.hpp"

#include "device/package/manifest_yaml.hpp"
#include "device/package/package_files.hpp"

#include <algorithm>
#include <functional>

namespace duet::tools {
namespace {

using device::Code;
using device::concat;
using device::Manifest;
using device::Model;
using device::Section;
using device::SectionKind;

/// The first error of one of these codes, as a note; empty: none.
std::string error_of(const Delivered& package, std::initializer_list<Code> codes) {
  for (const device::Finding& finding : package.report.findings.list()) {
    if (finding.severity == device::Severity::error &&
        std::find(codes.begin(), codes.end(), finding.code) != codes.end()) {
      return device::finding_text(finding);
    }
  }
  return "";
}

/// Elements of all tensors: what "1B" counts.
std::uint64_t parameters_of(const Model& model) {
  std::uint64_t sum = 0;
  for (const device::Tensor& tensor : model.tensors) {
    std::uint64_t elements = 1;
    for (const std::uint64_t length : tensor.shape) elements *= length;
    sum += elements;
  }
  return sum;
}

class Audit {
 public:
  explicit Audit(const std::vector<Delivered>& packages) : packages_(packages) {}

  std::vector<AuditItem> run() {
    models();
    origins();
    meaning();
    memory();
    single_chip();
    history();
    return std::move(items_);
  }

 private:
  using Check = std::function<bool(const Delivered&, AuditItem&)>;

  AuditItem& add(std::string id, std::string title) {
    items_.push_back({std::move(id), std::move(title), AuditStatus::missing, {}, {}});
    return items_.back();
  }
  /// Present if `check` finds evidence in one package at least, and none of the codes is an error
  /// there.
  void one_of(std::string id, std::string title, std::initializer_list<Code> codes,
              const std::string& otherwise, const Check& check) {
    AuditItem& item = add(std::move(id), std::move(title));
    for (const Delivered& package : packages_) {
      AuditItem found = {};
      const bool there = check(package, found);
      item.evidence.insert(item.evidence.end(), found.evidence.begin(), found.evidence.end());
      if (!there) continue;
      const std::string error = error_of(package, codes);
      if (error.empty()) item.status = AuditStatus::present;
      if (!error.empty() && item.note.empty()) item.note = error;
    }
    if (item.status == AuditStatus::present) item.note.clear();
    if (item.status == AuditStatus::missing && item.note.empty()) item.note = otherwise;
  }
  /// The same, but every package must have it.
  void every(std::string id, std::string title, std::initializer_list<Code> codes,
             const std::string& otherwise, const Check& check) {
    AuditItem& item = add(std::move(id), std::move(title));
    item.status = AuditStatus::present;
    for (const Delivered& package : packages_) {
      const bool found = check(package, item);
      const std::string error = error_of(package, codes);
      if (found && error.empty()) continue;
      item.status = AuditStatus::missing;
      if (item.note.empty())
        item.note = !error.empty() ? error : package.content.directory + ": " + otherwise;
    }
  }
  void unverifiable(std::string id, std::string title, std::string note) {
    AuditItem& item = add(std::move(id), std::move(title));
    item.status = AuditStatus::unverifiable;
    item.note = std::move(note);
  }

  /// With one package its files need no directory before them.
  [[nodiscard]] std::string file_of(const Delivered& package, const std::string& path) const {
    return packages_.size() == 1 ? path : package.content.directory + "/" + path;
  }
  void say(const Delivered& package, AuditItem& item, const std::string& path, std::string key,
           std::string value) const {
    item.evidence.push_back({file_of(package, path), std::move(key), std::move(value)});
  }
  void say_manifest(const Delivered& package, AuditItem& item, std::string key,
                    std::string value) const {
    say(package, item, device::manifest_file, std::move(key), std::move(value));
  }
  static const Model* on_chip(const Delivered& package, std::uint32_t chip) {
    for (const Model& model : package.content.manifest.models) {
      if (model.chip == chip) return &model;
    }
    return nullptr;
  }

  void models() {
    model_size();
    model_parts();
    one_of("15.1.2", "the same model for chip 1", {Code::section_chip_mismatch},
           "no model of a package is there for chip 0 and for chip 1; name the other package by "
           "--with",
           [this](const Delivered& package, AuditItem& item) {
             const Model* model = on_chip(package, 1);
             if (model == nullptr) return false;
             for (const Delivered& other : packages_) {
               const Model* twin = on_chip(other, 0);
               if (twin == nullptr || twin->source_sha256 != model->source_sha256) continue;
               say_manifest(package, item, "models." + model->name + ".source_sha256",
                            model->source_sha256 + " (chip 1)");
               say_manifest(other, item, "models." + twin->name + ".source_sha256",
                            twin->source_sha256 + " (chip 0)");
               return true;
             }
             return false;
           });
    one_of("15.1.3", "one model twice in a combined package", {Code::models_share_chip},
           "no package holds one model on both chips",
           [this](const Delivered& package, AuditItem& item) { return pair(package, item, true); });
    one_of(
        "15.1.4", "two different models in a combined package", {Code::models_share_chip},
        "no package holds two different models",
        [this](const Delivered& package, AuditItem& item) { return pair(package, item, false); });
  }

  bool pair(const Delivered& package, AuditItem& item, bool same) const {
    const auto& models = package.content.manifest.models;
    if (models.size() != 2 || (models[0].source_sha256 == models[1].source_sha256) != same)
      return false;
    for (const Model& model : models) {
      say_manifest(package, item, "models." + model.name + ".source_sha256",
                   concat(model.source_sha256, " (chip ", model.chip, ")"));
    }
    return true;
  }

  void model_size() {
    one_of("15.1.1.model", "a dense 1B to 3B model on chip 0",
           {Code::config_wrong, Code::tensor_set_wrong, Code::tensor_shape_wrong},
           "no model on chip 0 is of that size", [this](const Delivered& package, AuditItem& item) {
             const Model* model = on_chip(package, 0);
             if (model == nullptr) return false;
             const std::uint64_t parameters = parameters_of(*model);
             say_manifest(package, item, "models." + model->name + ".tensors",
                          concat(parameters, " parameters, ", model->config.architecture));
             // A "1B" and a "3B" of the usual families have 0.9 to 3.9 thousand million.
             return parameters >= 900'000'000 && parameters < 3'900'000'000;
           });
  }

  /// What 15.1.1 asks of the model on chip 0, part by part.
  void model_parts() {
    const auto part = [this](const char* id, const char* title, std::initializer_list<Code> codes,
                             const auto& evidence) {
      one_of(concat("15.1.1.", id), title, codes, "no package has it for chip 0",
             [&](const Delivered& package, AuditItem& item) {
               const Model* model = on_chip(package, 0);
               return model != nullptr && evidence(package, *model, item);
             });
    };
    const auto section_part = [this](const std::string& name, const char* key) {
      return [this, name, key](const Delivered& package, const Model& model, AuditItem& item) {
        const std::string wanted = name == "kv" ? model.kv.section : model.parameters;
        const Section* section = device::find_section(package.content.manifest, wanted);
        if (section == nullptr) return false;
        say_manifest(package, item, "models." + model.name + "." + key,
                     concat(wanted, ", ", section->bytes, " bytes"));
        return true;
      };
    };
    const auto graph_part = [this](bool prefill) {
      return [this, prefill](const Delivered& package, const Model& model, AuditItem& item) {
        const std::string& name = prefill ? model.prefill : model.decode;
        const device::Graph* graph = device::find_graph(package.content.manifest, name);
        if (graph == nullptr) return false;
        say_manifest(package, item, "models." + model.name + (prefill ? ".prefill" : ".decode"),
                     concat(name, ", ", graph->programs.size(), " programs, ",
                            graph->commands.size(), " command lists"));
        return true;
      };
    };
    const auto workspace = [this](const Delivered& package, const Model& model, AuditItem& item) {
      const Manifest& manifest = package.content.manifest;
      const device::Graph* graph = device::find_graph(manifest, model.prefill);
      const Section* section =
          graph == nullptr ? nullptr : device::find_section(manifest, graph->workspace);
      if (section == nullptr) return false;
      say_manifest(package, item, "graphs." + graph->name + ".workspace",
                   concat(section->name, ", ", section->bytes, " bytes"));
      return true;
    };
    const auto file_part = [this](bool golden) {
      return [this, golden](const Delivered& package, const Model& model, AuditItem& item) {
        const std::string& path = golden ? model.golden : model.tokenizer;
        const auto file = package.content.files.find(path);
        if (file == package.content.files.end()) return false;
        const auto read = package.content.goldens.find(model.name);
        if (golden && read == package.content.goldens.end()) return false;
        say(package, item, path, "",
            golden ? concat(read->second.prompts.size(), " prompts with answers")
                   : "sha256 " + file->second.sha256);
        return true;
      };
    };
    part("prefill", "its prefill graph", {Code::graph_set_wrong, Code::program_wrong},
         graph_part(true));
    part("decode", "its decode graph", {Code::graph_set_wrong, Code::program_wrong},
         graph_part(false));
    part("parameters", "its parameters",
         {Code::tensor_place_wrong, Code::weight_not_finite, Code::parameter_map_wrong},
         section_part("parameters", "parameters"));
    part("kv", "its KV memory", {Code::kv_region_wrong}, section_part("kv", "kv.section"));
    part("workspace", "its workspace", {Code::workspace_wrong}, workspace);
    part("golden", "its goldens", {Code::golden_wrong}, file_part(true));
    part("tokenizer", "its tokenizer", {Code::tokenizer_wrong}, file_part(false));
  }

  /// 15.1.5: each package.
  void origins() {
    every("15.1.5.source", "hash of the model file", {Code::provenance_wrong},
          "build-provenance.json names no source",
          [this](const Delivered& package, AuditItem& item) {
            const auto& from = package.content.provenance;
            if (!from || from->sources.empty()) return false;
            for (const auto& source : from->sources) {
              say(package, item, device::provenance_file, "sources." + source.model + ".sha256",
                  source.sha256);
            }
            return true;
          });
    every("15.1.5.quantization", "configuration of the quantisation", {Code::quantization_unknown},
          "a model says nothing about its quantisation",
          [this](const Delivered& package, AuditItem& item) {
            for (const Model& model : package.content.manifest.models) {
              say_manifest(package, item, "models." + model.name + ".quantization",
                           concat(model.quantization, ", KV ", model.kv.dtype, ", numerics ",
                                  package.content.manifest.numerics));
            }
            return std::none_of(package.content.manifest.models.begin(),
                                package.content.manifest.models.end(),
                                [](const Model& model) { return model.quantization.empty(); });
          });
    every("15.1.5.compiler", "compiler and its version", {Code::provenance_wrong},
          "build-provenance.json names no packer",
          [this](const Delivered& package, AuditItem& item) {
            const auto& from = package.content.provenance;
            if (!from || from->packer.empty()) return false;
            say(package, item, device::provenance_file, "packer",
                concat(from->packer, " ", from->packer_version, ", build ", from->build_id));
            return true;
          });
    every("15.1.5.commit", "the compiler's container or commit", {},
          "the format of build-provenance.json has no place for it",
          [](const Delivered&, AuditItem&) { return false; });
    every("15.1.5.command", "the complete command of the build", {},
          "the format of build-provenance.json has no place for it",
          [](const Delivered&, AuditItem&) { return false; });
    every("15.1.5.compatibility", "compatibility matrix of the formats",
          {Code::compatibility_malformed, Code::format_unsupported, Code::numerics_unsupported},
          "compatibility.json is not there", [this](const Delivered& package, AuditItem& item) {
            const auto file = package.content.files.find(device::compatibility_file);
            if (file == package.content.files.end()) return false;
            say(package, item, device::compatibility_file, "", "sha256 " + file->second.sha256);
            return true;
          });
  }

  /// 15.1.6.
  void meaning() {
    every("15.1.6", "manifest schema that says SCHIP, tarChipN, chipMask and calc_mchip",
          {Code::schema_unknown, Code::chip_mode_mismatch, Code::graph_target_mismatch,
           Code::mask_not_single},
          "the manifest has no graphs or sections",
          [this](const Delivered& package, AuditItem& item) {
            const Manifest& manifest = package.content.manifest;
            say_manifest(package, item, "schema",
                         manifest.schema + " (duet-pack schema, docs/package.md)");
            for (const device::Graph& graph : manifest.graphs) {
              std::string chips;
              for (const std::uint32_t chip : graph.target_chips)
                chips += concat(chips.empty() ? "" : ", ", chip);
              say_manifest(package, item, "graphs." + graph.name,
                           concat("mode ", device::name_of(graph.mode), ", target_chips [", chips,
                                  "], task ", device::name_of(graph.task), ", calc_mchip ",
                                  graph.calc_mchip ? "true" : "false"));
            }
            return !manifest.graphs.empty() && !manifest.sections.empty();
          });
  }

  /// 15.1.7: the lines of the report; commands are a part of "metadata" there, and are summed here.
  void memory() {
    for (const char* line : {"weights", "kv", "workspace", "code", "io", "metadata", "guard"}) {
      every(concat("15.1.7.", line), concat("memory report: ", line), {Code::memory_report_wrong},
            "the report has no such line", [this, line](const Delivered& package, AuditItem& item) {
              bool found = false;
              for (const device::MemoryLine& entry : package.content.manifest.memory) {
                if (entry.what != line) continue;
                found = true;
                say(package, item, device::memory_report_file,
                    concat("chip", entry.chip, " ", line), concat(entry.bytes, " bytes"));
              }
              return found;
            });
    }
    every("15.1.7.command", "memory report: command", {Code::memory_report_wrong},
          "there are no command lists", [this](const Delivered& package, AuditItem& item) {
            std::uint64_t bytes = 0;
            for (const Section& section : package.content.manifest.sections) {
              if (section.kind == SectionKind::command) bytes += section.bytes;
            }
            say_manifest(package, item, "sections",
                         concat(bytes, " bytes of command lists, within the line metadata"));
            return bytes != 0;
          });
    unverifiable("15.1.7.peak", "measured peak of the memory",
                 "a package tells what is reserved; the peak is measured on a device");
  }

  /// 15.1.8: instead of a compiler's report, all programs, lists and routes were read.
  void single_chip() {
    every("15.1.8", "no cross-chip D2D, gather or reduce",
          {Code::chip_mode_mismatch, Code::section_chip_mismatch, Code::program_note_mismatch,
           Code::command_header_mismatch, Code::command_wrong, Code::route_wrong,
           Code::program_wrong, Code::file_malformed, Code::mask_not_single},
          "the package is not valid, so that not every program, command list and route was read",
          [this](const Delivered& package, AuditItem& item) {
            const Manifest& manifest = package.content.manifest;
            std::size_t programs = 0;
            std::size_t lists = 0;
            for (const Section& section : manifest.sections) {
              programs += section.kind == SectionKind::program ? 1 : 0;
              lists += section.kind == SectionKind::command ? 1 : 0;
            }
            if (package.report.package == nullptr) return false;
            say_manifest(package, item, "sections, dma_routes",
                         concat(programs, " programs, ", lists, " command lists and ",
                                manifest.dma_routes.size(),
                                " routes read: each stays between the host and its one chip"));
            return true;
          });
  }

  void history() {
    const char* outside = "not a part of a package: ask the vendor";
    unverifiable("20.1", "the driver 1.0.0 with its whole Git history", outside);
    unverifiable("20.2", "what changed from driver 0.9.0 to 1.0.0", outside);
    unverifiable("20.3", "pull requests, issues and CI of those changes", outside);
    every("20.4", "compatibility matrix of runtime, driver and firmware", {},
          "compatibility.json names formats and arithmetic, but no runtime, driver or firmware",
          [](const Delivered&, AuditItem&) { return false; });
    unverifiable("20.5", "the cal-llm SDK and its ABI", outside);
  }

  const std::vector<Delivered>& packages_;
  std::vector<AuditItem> items_;
};

}   // namespace

std::vector<AuditItem> audit(const std::vector<Delivered>& packages) {
  return Audit{packages}.run();
}

std::string_view name_of(AuditStatus status) {
  switch (status) {
    case AuditStatus::present:
      return "present";
    case AuditStatus::missing:
      return "missing";
    case AuditStatus::unverifiable:
      break;
  }
  return "unverifiable";
}

std::size_t count(const std::vector<AuditItem>& items, AuditStatus status) {
  return static_cast<std::size_t>(
      std::count_if(items.begin(), items.end(),
                    [status](const AuditItem& item) { return item.status == status; }));
}

}   // namespace duet::tools
