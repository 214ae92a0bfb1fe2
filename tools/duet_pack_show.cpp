// duet_pack_show.cpp: manifests and findings as text and as JSON.
#include "tools/duet_pack_show.hpp"

#include "device/package/json_text.hpp"
#include "device/package/manifest_yaml.hpp"

#include <ostream>

namespace duet::tools {

using device::json_array;
using device::json_string;
using device::number_text;

void print_manifest(const device::Manifest& m, std::ostream& out) {
  out << m.kind << " package, build " << m.build_id << ", numerics " << m.numerics << "\n";
  for (const device::Model& model : m.models) {
    const device::ModelConfig& c = model.config;
    out << "model " << model.name << " (alias " << model.alias << ") on chip " << model.chip << ": "
        << c.architecture << ", " << c.layers << " layers, embedding " << c.embedding << ", "
        << c.heads << "/" << c.kv_heads << " heads of " << c.head_dim << ", feed-forward "
        << c.feed_forward << ", vocabulary " << c.vocabulary << ", " << model.quantization << ", "
        << model.tensors.size() << " tensors\n  kv: " << model.kv.slots << " slots of "
        << model.kv.tokens_per_slot << " tokens, " << model.kv.bytes_per_slot << " bytes each\n";
  }
  for (const device::Graph& graph : m.graphs) {
    out << "graph " << graph.name << ": " << device::name_of(graph.kind) << ", context "
        << graph.context << ", up to " << graph.tokens_max << " tokens a job\n";
  }
  for (const device::Section& section : m.sections) {
    out << "section chip mask " << section.chip_mask << " at " << section.address << ", "
        << section.bytes << " bytes, " << device::name_of(section.kind) << " " << section.name
        << (section.path.empty() ? "" : " <- ") << section.path << "\n";
  }
  for (const device::MemoryLine& line : m.memory) {
    out << "memory chip " << line.chip << " " << line.what << " " << line.bytes << "\n";
  }
}

std::string manifest_json(const device::Manifest& m) {
  return "{\"kind\": " + json_string(m.kind) + ", \"build_id\": " + json_string(m.build_id) +
         ", \"numerics\": " + number_text(m.numerics) + ", \"models\": " +
         json_array(m.models,
                    [](const device::Model& model) {
                      return "{\"name\": " + json_string(model.name) +
                             ", \"alias\": " + json_string(model.alias) +
                             ", \"chip\": " + number_text(model.chip) +
                             ", \"architecture\": " + json_string(model.config.architecture) +
                             ", \"vocabulary\": " + number_text(model.config.vocabulary) +
                             ", \"kv_slots\": " + number_text(model.kv.slots) +
                             ", \"context\": " + number_text(model.kv.tokens_per_slot) +
                             ", \"prefill\": " + json_string(model.prefill) +
                             ", \"decode\": " + json_string(model.decode) + "}";
                    }) +
         ", \"sections\": " +
         json_array(m.sections,
                    [](const device::Section& section) {
                      return "{\"name\": " + json_string(section.name) +
                             ", \"kind\": " + json_string(device::name_of(section.kind)) +
                             ", \"chip_mask\": " + number_text(section.chip_mask) +
                             ", \"address\": " + number_text(section.address) +
                             ", \"bytes\": " + number_text(section.bytes) + "}";
                    }) +
         ", \"memory\": " +
         json_array(m.memory,
                    [](const device::MemoryLine& line) {
                      return "{\"chip\": " + number_text(line.chip) +
                             ", \"what\": " + json_string(line.what) +
                             ", \"bytes\": " + number_text(line.bytes) + "}";
                    }) +
         "}";
}

std::string finding_json(const device::Finding& finding) {
  return "{\"code\": " + json_string(device::code_text(finding.code)) + ", \"severity\": " +
         (finding.severity == device::Severity::error ? "\"error\"" : "\"warning\"") +
         ", \"file\": " + json_string(finding.file) + ", \"line\": " + number_text(finding.line) +
         ", \"key\": " + json_string(finding.key) +
         ", \"message\": " + json_string(finding.message) +
         ", \"action\": " + json_string(device::code_action(finding.code)) + "}";
}

}   // namespace duet::tools
