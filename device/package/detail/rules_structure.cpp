// rules_structure.cpp: names, references and completeness of a manifest (P1xx).
#include "device/package/detail/rules.hpp"
#include "device/package/file_tree.hpp"
#include "device/package/limits.hpp"
#include "device/package/package_files.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace duet::device::detail {
namespace {

using Names = std::set<std::string>;

bool is_filled(SectionKind kind) {
  return kind == SectionKind::program || kind == SectionKind::parameters ||
         kind == SectionKind::parameter_map || kind == SectionKind::command ||
         kind == SectionKind::csr;
}

bool is_graph_kind(SectionKind kind) {
  return kind == SectionKind::program || kind == SectionKind::command || kind == SectionKind::csr;
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Reports names that are malformed or there twice.
template <typename T, typename Name>
void check_names(const Subject& subject, const std::vector<T>& items, const char* list,
                 const Name& name_of) {
  Names seen;
  for (const T& item : items) {
    const std::string& name = name_of(item);
    const std::string key = std::string(list) + "." + in_quotes(name);
    if (!is_plain_name(name)) {
      subject.report(Code::name_malformed, key, in_quotes(name) + " is not a plain name");
    } else if (!seen.insert(name).second) {
      subject.report(Code::name_duplicate, key, in_quotes(name) + " is there twice");
    }
  }
}

void check_head(const Subject& subject) {
  const Manifest& m = subject.manifest;
  if (m.schema != manifest_schema) {
    subject.report(Code::schema_unknown, "schema",
                   concat("the schema ", in_quotes(m.schema), " is not ", manifest_schema));
  }
  const std::size_t models = m.kind == "dual" ? 2 : m.kind == "single" ? 1 : 0;
  if (models == 0 || m.models.size() != models) {
    subject.report(Code::kind_mismatch, "kind",
                   concat("the kind ", in_quotes(m.kind), " does not go with ", m.models.size(),
                          " models (dual: 2, single: 1)"));
  }
  if (m.chips == 0 || m.chips > package_limits::chips_max) {
    subject.report(Code::chip_unknown, "chips",
                   concat(m.chips, " chips; the board has ", package_limits::chips_max));
  }
  if (m.cores_per_chip == 0 || m.cores_per_chip > package_limits::cores_max) {
    subject.report(Code::value_wrong, "cores_per_chip",
                   concat(m.cores_per_chip, " cores; a chip has ", package_limits::cores_max));
  }
  if (m.dram_bytes_per_chip <= package_limits::guard_bytes ||
      m.dram_bytes_per_chip > package_limits::dram_bytes_max) {
    subject.report(Code::value_wrong, "dram_bytes_per_chip",
                   concat(m.dram_bytes_per_chip, " bytes are out of range"));
  }
  const bool bounded = m.graphs.size() <= package_limits::graphs_max &&
                       m.sections.size() <= package_limits::sections_max &&
                       m.dma_routes.size() <= package_limits::routes_max;
  if (!bounded) {
    subject.report(Code::value_wrong, "",
                   "there are more graphs, sections or routes than possible");
  }
}

void check_all_names(const Subject& subject) {
  const Manifest& m = subject.manifest;
  const auto name = [](const auto& item) -> const std::string& { return item.name; };
  check_names(subject, m.models, "models", name);
  check_names(subject, m.models, "models.alias",
              [](const Model& model) -> const std::string& { return model.alias; });
  check_names(subject, m.graphs, "graphs", name);
  check_names(subject, m.sections, "sections", name);
  check_names(subject, m.dma_routes, "dma_routes", name);
}

void check_path(const Subject& subject, const std::string& path, const std::string& key,
                Names& seen) {
  if (!is_tree_path(path)) {
    subject.report(Code::path_escapes, key, in_quotes(path) + " is not a path inside the package");
  } else if (!seen.insert(path).second) {
    subject.report(Code::name_duplicate, key, "the file " + path + " is bound twice");
  } else if (subject.files.count(path) == 0) {
    subject.report(Code::file_missing, key, "the file " + path + " is not there");
  }
}

void check_paths(const Subject& subject) {
  Names seen = {manifest_file,      checksums_file,  signature_file,
                compatibility_file, provenance_file, memory_report_file};
  for (const Section& section : subject.manifest.sections) {
    if (!is_filled(section.kind)) {
      if (!section.path.empty() || !section.sha256.empty()) {
        subject.report(Code::value_wrong, key_of(section, "path"), "reserved memory has no file");
      }
      continue;
    }
    check_path(subject, section.path, key_of(section, "path"), seen);
    if (!is_sha256(section.sha256)) {
      subject.report(Code::value_wrong, key_of(section, "sha256"), "is not a SHA-256 in hex");
    }
  }
  for (const Model& model : subject.manifest.models) {
    check_path(subject, model.tokenizer, key_of(model, "tokenizer"), seen);
    check_path(subject, model.golden, key_of(model, "golden"), seen);
    for (const std::string* hash :
         {&model.tokenizer_sha256, &model.golden_sha256, &model.source_sha256}) {
      if (!is_sha256(*hash)) {
        subject.report(Code::value_wrong, key_of(model, "sha256"),
                       in_quotes(*hash) + " is not a SHA-256 in hex");
      }
    }
  }
  for (const auto& [path, file] : subject.files) {
    if (seen.count(path) == 0) {
      subject.report_file(Code::file_unbound, path, "the manifest does not bind this file");
    }
  }
}

void check_graph_set(const Subject& subject) {
  const Manifest& m = subject.manifest;
  Names used;
  for (const Model& model : m.models) {
    const auto check = [&](const std::string& name, GraphKind kind, const char* field) {
      const Graph* graph = find_graph(m, name);
      if (graph == nullptr) {
        subject.report(Code::reference_unknown, key_of(model, field),
                       "there is no graph " + in_quotes(name));
      } else if (graph->kind != kind || !used.insert(name).second) {
        subject.report(Code::graph_set_wrong, key_of(model, field),
                       "the graph " + in_quotes(name) + " is of the other kind or used twice");
      }
    };
    check(model.prefill, GraphKind::prefill, "prefill");
    check(model.decode, GraphKind::decode, "decode");
  }
  for (const Graph& graph : m.graphs) {
    if (owner_of(m, graph) == nullptr) {
      subject.report(Code::graph_set_wrong, key_of(graph, "name"), "no model uses this graph");
    }
  }
}

/// Reports `name` unless it is a section of this kind, model and graph; remembers it as used.
void check_reference(const Subject& subject, const std::string& name, SectionKind kind,
                     const Model& model, const std::string& graph, const std::string& key,
                     Names& used) {
  const Section* section = owned(subject.manifest, name, kind, model.name);
  if (section == nullptr || section->graph != graph) {
    subject.report(Code::reference_unknown, key,
                   concat("there is no ", name_of(kind), " section ", in_quotes(name), " of model ",
                          in_quotes(model.name), graph.empty() ? "" : " and this graph"));
    return;
  }
  // A workspace may serve both graphs of its model; anything else is used once.
  if (!used.insert(name).second && kind != SectionKind::workspace) {
    subject.report(Code::name_duplicate, key, "the section " + in_quotes(name) + " is used twice");
  }
}

void check_graph_sections(const Subject& subject, const Graph& graph, Names& used) {
  const Model* model = owner_of(subject.manifest, graph);
  if (model == nullptr) return;   // reported by check_graph_set
  for (const std::string& name : graph.programs) {
    check_reference(subject, name, SectionKind::program, *model, graph.name,
                    key_of(graph, "programs"), used);
  }
  std::array<std::array<int, 2>, 2> found = {};   // by processor and engine
  for (const std::string& name : graph.commands) {
    check_reference(subject, name, SectionKind::command, *model, graph.name,
                    key_of(graph, "commands"), used);
    const Section* section = find_section(subject.manifest, name);
    if (section == nullptr || !section->processor || !section->engine ||
        *section->engine == Engine::automatic) {
      continue;
    }
    ++found[*section->processor == Processor::pld][*section->engine == Engine::pong];
  }
  for (const auto& engines : found) {
    if (engines[0] == 1 && engines[1] == 1) continue;
    subject.report(Code::section_set_incomplete, key_of(graph, "commands"),
                   "there must be one command list each for CPU and PLD, ping and pong");
    break;
  }
  check_reference(subject, graph.csr, SectionKind::csr, *model, graph.name, key_of(graph, "csr"),
                  used);
  check_reference(subject, graph.workspace, SectionKind::workspace, *model, "",
                  key_of(graph, "workspace"), used);
}

void check_model_sections(const Subject& subject, const Model& model, Names& used) {
  check_reference(subject, model.parameters, SectionKind::parameters, model, "",
                  key_of(model, "parameters"), used);
  check_reference(subject, model.parameter_map, SectionKind::parameter_map, model, "",
                  key_of(model, "parameter_map"), used);
  check_reference(subject, model.kv.section, SectionKind::kv, model, "",
                  key_of(model, "kv.section"), used);
  for (const SectionKind kind : {SectionKind::input, SectionKind::output}) {
    for (const Engine engine : {Engine::ping, Engine::pong}) {
      const Section* section = staging(subject.manifest, kind, model.name, engine);
      if (section == nullptr) {
        subject.report(
            Code::section_set_incomplete, key_of(model, "name"),
            concat("there is no ", name_of(kind), " section of the engine ", name_of(engine)));
      } else {
        used.insert(section->name);
      }
    }
  }
}

void check_sections(const Subject& subject) {
  Names used;
  for (const Model& model : subject.manifest.models) check_model_sections(subject, model, used);
  for (const Graph& graph : subject.manifest.graphs) check_graph_sections(subject, graph, used);
  for (const Section& section : subject.manifest.sections) {
    if (find_model(subject.manifest, section.model) == nullptr) {
      subject.report(Code::reference_unknown, key_of(section, "model"),
                     "there is no model " + in_quotes(section.model));
    }
    if (is_graph_kind(section.kind) == section.graph.empty()) {
      subject.report(Code::value_wrong, key_of(section, "graph"),
                     concat("a ", name_of(section.kind), " section ",
                            section.graph.empty() ? "needs" : "has no", " graph"));
    }
    if (used.count(section.name) == 0) {
      subject.report(Code::section_unused, key_of(section, "name"),
                     "no model or graph uses this section");
    }
  }
}

}   // namespace

void check_structure(const Subject& subject) {
  check_head(subject);
  check_all_names(subject);
  check_paths(subject);
  check_graph_set(subject);
  check_sections(subject);
}

}   // namespace duet::device::detail
