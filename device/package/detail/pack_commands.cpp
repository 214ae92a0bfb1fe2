// pack_commands.cpp: command lists and register words of placed graphs.
#include "device/package/detail/pack_model.hpp"
#include "device/package/detail/rules.hpp"
#include "device/program/command.hpp"
#include "runtime/assert.hpp"

namespace duet::device::detail {
namespace {

/// The index of a model's route in or out.
std::uint32_t route_index(const Manifest& manifest, const std::string& model, bool in) {
  for (std::uint32_t i = 0; i < manifest.dma_routes.size(); ++i) {
    const DmaRoute& route = manifest.dma_routes[i];
    if (route.model == model && (route.from == "host") == in) return i;
  }
  DUET_UNREACHABLE();
}

CommandList make_list(const Manifest& manifest, const BuildId& build_id, const Graph& graph,
                      const Model& model, const Section& section) {
  using enum CommandOpcode;
  const std::size_t unit = *section.engine == Engine::ping ? 0 : 2;
  const std::uint32_t started = graph.sync_units[unit];
  const std::uint32_t done = graph.sync_units[unit + 1];
  CommandList list{graph.name, model.chip, *section.engine, *section.processor, build_id, {}};
  if (*section.processor == Processor::pld) {
    const std::uint32_t cores = (1U << manifest.cores_per_chip) - 1;
    list.commands = {{wait, 0, started, 0, 0, 0, 0},
                     {run_cores, 0, 0, cores, 0, 0, 0},
                     {signal, 0, done, 0, 0, 0, 0},
                     {end, 0, 0, 0, 0, 0, 0}};
    return list;
  }
  const Section* input = staging(manifest, SectionKind::input, model.name, *section.engine);
  const Section* output = staging(manifest, SectionKind::output, model.name, *section.engine);
  DUET_ASSERT(input != nullptr && output != nullptr, model.name);
  const std::uint64_t logits = std::uint64_t{4} * model.config.vocabulary;
  list.commands = {
      {dma_in, 0, 0, 0, route_index(manifest, model.name, true), input->address,
       std::uint64_t{4} * graph.tokens_max},
      {signal, 0, started, 0, 0, 0, 0},
      {wait, 0, done, 0, 0, 0, 0},
      {dma_out, 0, 0, 0, route_index(manifest, model.name, false), output->address, logits},
      {complete, 0, 0, 0, 0, 0, 0}};
  return list;
}

CsrList make_registers(const Manifest& manifest, const BuildId& build_id, const Graph& graph,
                       const Model& model) {
  const auto address = [&](const std::string& name) {
    const Section* section = find_section(manifest, name);
    DUET_ASSERT(section != nullptr, name);
    return section->address;
  };
  CsrList list{graph.name, model.chip, build_id, {}};
  list.words = {{CsrRegister::parameters_base, address(model.parameters)},
                {CsrRegister::workspace_base, address(graph.workspace)},
                {CsrRegister::kv_base, address(model.kv.section)},
                {CsrRegister::kv_slots, model.kv.slots},
                {CsrRegister::kv_bytes_per_slot, model.kv.bytes_per_slot},
                {CsrRegister::context, graph.context},
                {CsrRegister::tokens_max, graph.tokens_max},
                {CsrRegister::batch, graph.batch}};
  return list;
}

}   // namespace

Result<void> write_command_files(const BuildId& build_id, OutputTree& out, Manifest& manifest) {
  for (Section& section : manifest.sections) {
    if (section.kind != SectionKind::command && section.kind != SectionKind::csr) continue;
    const Graph* graph = find_graph(manifest, section.graph);
    const Model* model = graph == nullptr ? nullptr : owner_of(manifest, *graph);
    DUET_ASSERT(model != nullptr, section.graph);
    const auto bytes = section.kind == SectionKind::csr
                           ? write_csr(make_registers(manifest, build_id, *graph, *model))
                           : write_commands(make_list(manifest, build_id, *graph, *model, section));
    // The address plan was made with the size that the section was promised.
    DUET_ASSERT(bytes.size() == section.bytes, section.name, bytes.size(), section.bytes);
    const auto written = out.put(section.path, bytes);
    if (written.has_error()) return written.error();
    section.sha256 = written->sha256;
  }
  return {};
}

}   // namespace duet::device::detail
