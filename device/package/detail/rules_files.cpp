// rules_files.cpp: reads programs, command lists and register words, and compares them with the
// manifest.
#include "device/package/detail/rules.hpp"
#include "device/package/limits.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace duet::device::detail {
namespace {

void check_file(const Subject& subject, const std::string& path, const std::string& sha256,
                const std::string& key) {
  const auto found = subject.files.find(path);
  if (found == subject.files.end() || found->second.sha256.empty()) return;   // P102, P304
  if (found->second.sha256 != sha256) {
    subject.report(Code::manifest_hash_wrong, key,
                   concat("the file ", path, " has the hash ", found->second.sha256));
  }
}

/// Keeps what could be read, reports what could not.
template <typename T>
void keep(const Subject& subject, const Section& section, Result<T> read,
          std::map<std::string, T>& into) {
  if (read.has_value()) {
    into.emplace(section.name, std::move(*read));
  } else {
    subject.report_file(Code::file_malformed, section.path, read.error().message);
  }
}

void check_build_id(const Subject& subject, const BuildId& id, const std::string& path) {
  if (build_id_text(id) != subject.manifest.build_id) {
    subject.report_file(Code::build_id_mismatch, path,
                        concat("was made by build ", build_id_text(id), ", the manifest by ",
                               in_quotes(subject.manifest.build_id)));
  }
}

std::uint32_t chip_of(const Subject& subject, const Section& section) {
  const Model* model = find_model(subject.manifest, section.model);
  return model == nullptr ? 0 : model->chip;
}

void check_program_note(const Subject& subject, const Section& section, const ElfFile& elf) {
  const Program& program = elf.program;
  const Graph* graph = find_graph(subject.manifest, section.graph);
  if (graph == nullptr) return;   // P113
  check_build_id(subject, elf.build_id, section.path);
  const auto differs = [&](const char* what, const auto& note, const auto& manifest) {
    if (note == manifest) return;
    subject.report_file(
        Code::program_note_mismatch, section.path,
        concat("was compiled for ", what, " ", note, ", the manifest says ", manifest));
  };
  differs("graph", program.graph, graph->name);
  differs("the kind", name_of(program.kind), name_of(graph->kind));
  differs("chip", program.chip, chip_of(subject, section));
  differs("core", program.core, section.core.value_or(no_buffer));
  differs("a number of cores of", program.cores, subject.manifest.cores_per_chip);
  differs("numerics", program.numerics, subject.manifest.numerics);
}

/// The operands that the four steps of a job use.
struct ListCheck {
  const Subject& subject;
  const Section& section;
  const CommandList& list;
  const Graph& graph;
  const Model& model;

  void fail(std::size_t index, const std::string& message) const {
    subject.report_file(Code::command_wrong, section.path,
                        concat("command ", index, ": ", message));
  }
  void check_order() const {
    using enum CommandOpcode;
    static const std::vector<CommandOpcode> cpu = {dma_in, signal, wait, dma_out, complete};
    static const std::vector<CommandOpcode> pld = {wait, run_cores, signal, end};
    const auto& order = list.processor == Processor::cpu ? cpu : pld;
    const bool equal = std::equal(
        order.begin(), order.end(), list.commands.begin(), list.commands.end(),
        [](CommandOpcode opcode, const Command& command) { return opcode == command.opcode; });
    if (!equal) fail(0, "the list is not the sequence of a job of its processor");
  }
  void check_dma(std::size_t index, const Command& command, bool in) const {
    const auto& routes = subject.manifest.dma_routes;
    const std::string chip = concat("chip", model.chip);
    if (command.route >= routes.size() || routes[command.route].model != model.name ||
        routes[command.route].from != (in ? "host" : chip) ||
        routes[command.route].to != (in ? chip : "host")) {
      fail(index, concat("route ", command.route, " is not its model's way ", in ? "in" : "out"));
    }
    const Section* memory = staging(subject.manifest, in ? SectionKind::input : SectionKind::output,
                                    model.name, list.engine);
    if (memory == nullptr) return;   // P117
    if (command.address < memory->address || command.bytes > memory->bytes ||
        command.address - memory->address > memory->bytes - command.bytes) {
      fail(index, concat(command.bytes, " bytes at ", command.address, " leave the staging of ",
                         name_of(list.engine)));
    }
    const std::uint64_t needed =
        (in ? graph.tokens_max : model.config.vocabulary) * std::uint64_t{4};
    if (command.bytes < needed) {
      fail(index, concat(command.bytes, " bytes are fewer than the ", needed, " of a job"));
    }
  }
  void check_operands() const {
    for (std::size_t i = 0; i < list.commands.size(); ++i) {
      const Command& command = list.commands[i];
      switch (command.opcode) {
        case CommandOpcode::dma_in:
          check_dma(i, command, true);
          break;
        case CommandOpcode::dma_out:
          check_dma(i, command, false);
          break;
        case CommandOpcode::run_cores:
          if (command.core_mask != (1U << subject.manifest.cores_per_chip) - 1) {
            fail(i, concat("the core mask ", command.core_mask, " is not all cores of the chip"));
          }
          break;
        case CommandOpcode::wait:
        case CommandOpcode::signal:
          if (std::count(graph.sync_units.begin(), graph.sync_units.end(), command.sync_unit) !=
              1) {
            fail(i, concat("the sync unit ", command.sync_unit, " is not one of its graph"));
          }
          break;
        case CommandOpcode::complete:
        case CommandOpcode::end:
          break;
      }
    }
  }
};

void check_command_list(const Subject& subject, const Section& section, const CommandList& list) {
  const Graph* graph = find_graph(subject.manifest, section.graph);
  const Model* model = graph == nullptr ? nullptr : owner_of(subject.manifest, *graph);
  if (model == nullptr) return;   // P113, P114
  check_build_id(subject, list.build_id, section.path);
  if (list.graph != graph->name || list.chip != model->chip || section.engine != list.engine ||
      section.processor != list.processor) {
    subject.report_file(Code::command_header_mismatch, section.path,
                        concat("is for graph ", in_quotes(list.graph), ", chip ", list.chip, ", ",
                               name_of(list.processor), ", ", name_of(list.engine)));
    return;
  }
  const ListCheck check{subject, section, list, *graph, *model};
  check.check_order();
  check.check_operands();
}

/// The unit that the first command of this opcode names.
std::optional<std::uint32_t> unit_of(const CommandList& list, CommandOpcode opcode) {
  for (const Command& command : list.commands) {
    if (command.opcode == opcode) return command.sync_unit;
  }
  return std::nullopt;
}

/// CPU and PLD list of an engine must meet, and the engines must not meet each other.
void check_meetings(const Subject& subject, const Graph& graph) {
  std::vector<std::uint32_t> used;
  for (const Engine engine : {Engine::ping, Engine::pong}) {
    std::array<const CommandList*, 2> lists = {};
    for (const std::string& name : graph.commands) {
      const auto found = subject.commands.find(name);
      if (found == subject.commands.end() || found->second.engine != engine) continue;
      lists[found->second.processor == Processor::pld] = &found->second;
    }
    if (lists[0] == nullptr || lists[1] == nullptr) return;   // P117, P118
    const auto started = unit_of(*lists[0], CommandOpcode::signal);
    const auto done = unit_of(*lists[0], CommandOpcode::wait);
    if (!started || !done || started != unit_of(*lists[1], CommandOpcode::wait) ||
        done != unit_of(*lists[1], CommandOpcode::signal)) {
      subject.report(Code::command_wrong, key_of(graph, "commands"),
                     concat("CPU and PLD list of ", name_of(engine), " do not meet"));
      return;
    }
    used.push_back(*started);
    used.push_back(*done);
  }
  std::sort(used.begin(), used.end());
  if (std::adjacent_find(used.begin(), used.end()) != used.end()) {
    subject.report(Code::command_wrong, key_of(graph, "commands"),
                   "two meetings of the graph use the same sync unit");
  }
}

void check_registers(const Subject& subject, const Graph& graph) {
  const Model* model = owner_of(subject.manifest, graph);
  const auto found = subject.csrs.find(graph.csr);
  if (model == nullptr || found == subject.csrs.end()) return;
  const CsrList& list = found->second;
  const Section* section = find_section(subject.manifest, graph.csr);
  const Section* parameters = find_section(subject.manifest, model->parameters);
  const Section* workspace = find_section(subject.manifest, graph.workspace);
  const Section* kv = find_section(subject.manifest, model->kv.section);
  if (section == nullptr || parameters == nullptr || workspace == nullptr || kv == nullptr) return;
  check_build_id(subject, list.build_id, section->path);
  const auto fail = [&](const std::string& message) {
    subject.report_file(Code::csr_mismatch, section->path, message);
  };
  if (list.graph != graph.name || list.chip != model->chip) {
    fail(concat("is for graph ", in_quotes(list.graph), ", chip ", list.chip));
  }
  const std::map<CsrRegister, std::uint64_t> expected = {
      {CsrRegister::parameters_base, parameters->address},
      {CsrRegister::workspace_base, workspace->address},
      {CsrRegister::kv_base, kv->address},
      {CsrRegister::kv_slots, model->kv.slots},
      {CsrRegister::kv_bytes_per_slot, model->kv.bytes_per_slot},
      {CsrRegister::context, graph.context},
      {CsrRegister::tokens_max, graph.tokens_max},
      {CsrRegister::batch, graph.batch},
  };
  if (list.words.size() != expected.size()) fail("does not set every register");
  for (const CsrWord& word : list.words) {
    const auto wanted = expected.find(word.number);
    if (wanted != expected.end() && wanted->second != word.value) {
      fail(concat("register ", static_cast<std::uint32_t>(word.number), " is ", word.value,
                  ", the manifest says ", wanted->second));
    }
  }
}

}   // namespace

void check_files(Subject& subject) {
  for (const Section& section : subject.manifest.sections) {
    if (section.path.empty()) continue;
    check_file(subject, section.path, section.sha256, key_of(section, "sha256"));
    const auto bytes = subject.bytes(section.path);
    if (!bytes) continue;
    if (bytes->size() != section.bytes) {
      subject.report(Code::size_mismatch, key_of(section, "bytes"),
                     concat("says ", section.bytes, " but the file has ", bytes->size()));
    }
    if (section.kind == SectionKind::program) {
      keep(subject, section, read_elf(*bytes, section.path), subject.programs);
    } else if (section.kind == SectionKind::command) {
      keep(subject, section, read_commands(*bytes, section.path), subject.commands);
    } else if (section.kind == SectionKind::csr) {
      keep(subject, section, read_csr(*bytes, section.path), subject.csrs);
    }
  }
  for (const Model& model : subject.manifest.models) {
    check_file(subject, model.tokenizer, model.tokenizer_sha256, key_of(model, "tokenizer_sha256"));
    check_file(subject, model.golden, model.golden_sha256, key_of(model, "golden_sha256"));
  }
}

void check_programs(const Subject& subject) {
  for (const Section& section : subject.manifest.sections) {
    const auto program = subject.programs.find(section.name);
    if (program != subject.programs.end()) check_program_note(subject, section, program->second);
    const auto list = subject.commands.find(section.name);
    if (list != subject.commands.end()) check_command_list(subject, section, list->second);
  }
  for (const Graph& graph : subject.manifest.graphs) {
    check_meetings(subject, graph);
    check_registers(subject, graph);
  }
}

}   // namespace duet::device::detail
