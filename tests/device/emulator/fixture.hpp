// fixture.hpp: a small hand-made package of two models for the emulator's tests.
#pragma once

#include "device/package/manifest.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace duet::device::emulator::fixture {

inline constexpr std::uint32_t vocabulary = 16;
inline constexpr std::uint32_t context = 32;
inline constexpr std::uint64_t slot_bytes = 4 * 2 * 1 * 4 * context;   // 2 layers, 1 head of 4
inline constexpr std::uint32_t slots = 2;
inline const std::string hash(64, 'a');

// Graph handles: the order below.
inline constexpr std::uint32_t a_prefill = 0, a_decode = 1, b_prefill = 2, b_decode = 3;

inline void add_model(Manifest& manifest, const std::string& name, std::uint32_t chip) {
  std::uint64_t address = 4096;
  const auto add = [&](const std::string& what, SectionKind kind, std::uint64_t bytes) -> Section& {
    Section section;
    section.name = name + "." + what;
    section.kind = kind;
    section.model = name;
    section.chip_mask = 1U << chip;
    section.address = address;
    section.bytes = bytes;
    address += (bytes + 4095) / 4096 * 4096;
    manifest.sections.push_back(section);
    return manifest.sections.back();
  };
  add("parameters", SectionKind::parameters, 8192);
  add("kv", SectionKind::kv, slots * slot_bytes);
  add("workspace", SectionKind::workspace, 1 << 16);
  for (const Engine engine : {Engine::ping, Engine::pong}) {
    const std::string suffix = engine == Engine::ping ? "0" : "1";
    add("input" + suffix, SectionKind::input, context * 4).engine = engine;
    add("output" + suffix, SectionKind::output, vocabulary * 4).engine = engine;
  }
  Model model;
  model.name = name;
  model.alias = name;
  model.chip = chip;
  model.config.architecture = "llama";
  model.config.layers = 2;
  model.config.kv_heads = 1;
  model.config.heads = 1;
  model.config.head_dim = 4;
  model.config.vocabulary = vocabulary;
  model.parameters = name + ".parameters";
  model.prefill = name + ".prefill";
  model.decode = name + ".decode";
  model.kv.section = name + ".kv";
  model.kv.slots = slots;
  model.kv.tokens_per_slot = context;
  model.kv.bytes_per_slot = slot_bytes;
  model.kv.sequence_id_first = chip * 1000 + 1;
  model.kv.sequence_id_last = chip * 1000 + 1000;
  for (const GraphKind kind : {GraphKind::prefill, GraphKind::decode}) {
    Graph graph;
    graph.name = kind == GraphKind::prefill ? model.prefill : model.decode;
    graph.kind = kind;
    graph.target_chips = {chip};
    graph.context = context;
    graph.tokens_max = kind == GraphKind::prefill ? context : 1;
    graph.workspace = name + ".workspace";
    manifest.graphs.push_back(graph);
  }
  manifest.models.push_back(model);
}

/// "a" on chip 0 (sequences 1 to 1000) and "b" on chip 1 (1001 to 2000).
inline Manifest manifest() {
  Manifest manifest;
  manifest.chips = 2;
  manifest.dram_bytes_per_chip = 1 << 20;
  add_model(manifest, "a", 0);
  add_model(manifest, "b", 1);
  return manifest;
}

inline Section& section(Manifest& manifest, const std::string& name) {
  for (Section& each : manifest.sections) {
    if (each.name == name) return each;
  }
  throw std::out_of_range{name};
}

}   // namespace duet::device::emulator::fixture
