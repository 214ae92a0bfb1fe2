// duet_pack_show.cpp: manifests and findings as text and as JSON.
#include "tools/duet_pack_show.hpp"

#include "device/package/json_text.hpp"
#include "device/package/manifest_yaml.hpp"
#include "device/package/package_files.hpp"

#include <array>
#include <ostream>

namespace duet::tools {

using device::json_array;
using device::json_string;
using device::number_text;

namespace {

/// "1.5 MiB", "640 bytes": for people; the JSON has the bytes.
std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 3> units = {"KiB", "MiB", "GiB"};
  if (bytes < 1024) return number_text(bytes) + " bytes";
  std::size_t unit = 0;
  std::uint64_t tenths = bytes * 10 / 1024;
  for (; tenths >= 10240 && unit + 1 < units.size(); ++unit) tenths /= 1024;
  return number_text(tenths / 10) + "." + number_text(tenths % 10) + " " + units[unit];
}

std::uint64_t reserved_on(const device::Manifest& manifest, std::uint32_t chip) {
  std::uint64_t sum = 0;
  for (const device::MemoryLine& line : manifest.memory) sum += line.chip == chip ? line.bytes : 0;
  return sum;
}

void print_model(const PackageContent& content, const device::Model& model, std::ostream& out) {
  const device::ModelConfig& c = model.config;
  out << "model " << model.name << " (alias " << model.alias << ") on chip " << model.chip << ": "
      << c.architecture << ", " << c.layers << " layers, embedding " << c.embedding << ", "
      << c.heads << "/" << c.kv_heads << " heads of " << c.head_dim << ", feed-forward "
      << c.feed_forward << ", vocabulary " << c.vocabulary << "\n  weights " << model.quantization
      << ", " << model.tensors.size() << " tensors; kv: " << model.kv.slots << " slots of "
      << model.kv.tokens_per_slot << " tokens, " << size_text(model.kv.bytes_per_slot) << " each\n";
  const auto golden = content.goldens.find(model.name);
  out << "  golden: ";
  if (golden == content.goldens.end()) {
    out << "cannot be read";
  } else {
    out << golden->second.prompts.size() << " prompts, of " << golden->second.source;
  }
  out << "; rule " << model.golden_rule.kind << "\n  from " << model.source_sha256 << "\n";
  for (const std::string& name : {model.prefill, model.decode}) {
    const device::Graph* graph = device::find_graph(content.manifest, name);
    if (graph == nullptr) continue;
    out << "  graph " << graph->name << ": " << device::name_of(graph->kind) << ", context "
        << graph->context << ", up to " << graph->tokens_max << " tokens a job, "
        << graph->programs.size() << " programs, " << graph->commands.size() << " command lists\n";
  }
}

}   // namespace

void print_content(const PackageContent& content, std::ostream& out) {
  const device::Manifest& m = content.manifest;
  std::uint64_t bytes = 0;
  for (const auto& [path, file] : content.files) bytes += file.bytes;
  const auto list = content.files.find(device::checksums_file);
  out << m.kind << " package, build " << m.build_id << ", numerics " << m.numerics << "\nhash "
      << (list == content.files.end() ? "none: no checksum list" : list->second.sha256) << ", "
      << (content.files.count(device::signature_file) != 0 ? "signed" : "not signed")
      << " (not verified here)\n"
      << content.files.size() << " files, " << size_text(bytes) << "; " << m.graphs.size()
      << " graphs, " << m.sections.size() << " sections, " << m.dma_routes.size() << " routes\n";
  for (const device::Model& model : m.models) print_model(content, model, out);
  for (std::uint32_t chip = 0; chip < m.chips; ++chip) {
    const std::uint64_t sum = reserved_on(m, chip);
    out << "chip " << chip << ": ";
    if (sum == 0) {
      out << "idle\n";
      continue;
    }
    out << size_text(sum) << " of " << size_text(m.dram_bytes_per_chip) << ":";
    for (const device::MemoryLine& line : m.memory) {
      if (line.chip == chip) out << " " << line.what << " " << size_text(line.bytes) << ";";
    }
    out << "\n";
  }
}

void print_sections(const device::Manifest& m, std::ostream& out) {
  for (const device::Section& section : m.sections) {
    out << "section chip mask " << section.chip_mask << " at " << section.address << ", "
        << section.bytes << " bytes, " << device::name_of(section.kind) << " " << section.name
        << (section.path.empty() ? "" : " <- ") << section.path << "\n";
  }
}

std::string content_json(const PackageContent& content) {
  const device::Manifest& m = content.manifest;
  const auto model_json = [&](const device::Model& model) {
    const auto golden = content.goldens.find(model.name);
    return "{\"name\": " + json_string(model.name) + ", \"alias\": " + json_string(model.alias) +
           ", \"chip\": " + number_text(model.chip) +
           ", \"architecture\": " + json_string(model.config.architecture) +
           ", \"layers\": " + number_text(model.config.layers) +
           ", \"vocabulary\": " + number_text(model.config.vocabulary) +
           ", \"quantization\": " + json_string(model.quantization) +
           ", \"source_sha256\": " + json_string(model.source_sha256) +
           ", \"tensors\": " + number_text(model.tensors.size()) +
           ", \"kv_slots\": " + number_text(model.kv.slots) +
           ", \"context\": " + number_text(model.kv.tokens_per_slot) +
           ", \"prefill\": " + json_string(model.prefill) +
           ", \"decode\": " + json_string(model.decode) + ", \"golden_prompts\": " +
           (golden == content.goldens.end() ? "null" : number_text(golden->second.prompts.size())) +
           "}";
  };
  const auto section_json = [](const device::Section& section) {
    return "{\"name\": " + json_string(section.name) +
           ", \"kind\": " + json_string(device::name_of(section.kind)) +
           ", \"chip_mask\": " + number_text(section.chip_mask) +
           ", \"address\": " + number_text(section.address) +
           ", \"bytes\": " + number_text(section.bytes) + "}";
  };
  const auto memory_json = [](const device::MemoryLine& line) {
    return "{\"chip\": " + number_text(line.chip) + ", \"what\": " + json_string(line.what) +
           ", \"bytes\": " + number_text(line.bytes) + "}";
  };
  const auto list = content.files.find(device::checksums_file);
  return "{\"kind\": " + json_string(m.kind) + ", \"build_id\": " + json_string(m.build_id) +
         ", \"hash\": " +
         (list == content.files.end() ? "null" : json_string(list->second.sha256)) +
         ", \"signed\": " + (content.files.count(device::signature_file) != 0 ? "true" : "false") +
         ", \"numerics\": " + number_text(m.numerics) +
         ", \"models\": " + json_array(m.models, model_json) +
         ", \"sections\": " + json_array(m.sections, section_json) +
         ", \"memory\": " + json_array(m.memory, memory_json) + "}";
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
