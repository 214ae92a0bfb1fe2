// rules_addresses.cpp: the address plan of each chip (P3xx).
#include "device/package/detail/rules.hpp"
#include "device/package/limits.hpp"
#include "device/package/package_files.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>

namespace duet::device::detail {
namespace {

constexpr std::uint64_t token_bytes = 4;   // I32
constexpr std::uint64_t logit_bytes = 4;   // F32

/// False if the section's place is not sound; then it takes no part in the search for overlaps.
bool check_place(const Subject& subject, const Section& section) {
  const std::uint64_t dram = subject.manifest.dram_bytes_per_chip;
  bool sound = true;
  if (section.address % package_limits::section_alignment != 0) {
    subject.report(Code::address_misaligned, key_of(section, "address"),
                   concat("the address ", section.address, " is not a multiple of ",
                          package_limits::section_alignment));
    sound = false;
  }
  if (section.bytes == 0) {
    subject.report(Code::size_mismatch, key_of(section, "bytes"), "the section has no bytes");
    sound = false;
  }
  const auto end = checked_add(section.address, section.bytes);
  if (section.address < package_limits::guard_bytes || !end || *end > dram) {
    subject.report(Code::address_beyond_dram, key_of(section, "address"),
                   concat("from ", section.address, ", ", section.bytes, " bytes: outside of ",
                          package_limits::guard_bytes, "..", dram));
    sound = false;
  }
  return sound;
}

void check_overlaps(const Subject& subject, std::vector<const Section*> sections,
                    std::uint32_t chip) {
  std::sort(sections.begin(), sections.end(),
            [](const Section* a, const Section* b) { return a->address < b->address; });
  const Section* last = nullptr;   // the one that reaches farthest so far
  for (const Section* section : sections) {
    if (last != nullptr && section->address < last->address + last->bytes) {
      subject.report(Code::address_overlap, key_of(*section, "address"),
                     concat("overlaps section ", in_quotes(last->name), " on chip ", chip));
    }
    if (last == nullptr || section->address + section->bytes > last->address + last->bytes) {
      last = section;
    }
  }
}

void check_kv(const Subject& subject, const Model& model) {
  const KvRegion& kv = model.kv;
  const ModelConfig& config = model.config;
  const Section* section = owned(subject.manifest, kv.section, SectionKind::kv, model.name);
  if (section == nullptr) return;   // P113
  if (kv.slots == 0 || kv.slots > package_limits::kv_slots_max) {
    subject.report(Code::kv_region_wrong, key_of(model, "kv.slots"),
                   concat(kv.slots, " slots are not 1 to ", package_limits::kv_slots_max));
    return;
  }
  // K and V in BF16: 2 * 2 bytes an element.
  auto needed = checked_multiply(std::uint64_t{4} * config.layers, kv.tokens_per_slot);
  if (needed) needed = checked_multiply(*needed, std::uint64_t{config.kv_heads} * config.head_dim);
  if (!needed || *needed == 0 || kv.bytes_per_slot < *needed) {
    subject.report(Code::kv_region_wrong, key_of(model, "kv.bytes_per_slot"),
                   concat("a slot of ", kv.tokens_per_slot, " tokens needs ", needed.value_or(0),
                          " bytes, not ", kv.bytes_per_slot));
  }
  const auto total = checked_multiply(kv.bytes_per_slot, kv.slots);
  if (!total || *total > section->bytes) {
    subject.report(
        Code::kv_region_wrong, key_of(model, "kv.slots"),
        concat(kv.slots, " slots of ", kv.bytes_per_slot, " bytes do not fit ", section->bytes));
  }
}

void check_staging_sizes(const Subject& subject, const Graph& graph) {
  const Model* model = owner_of(subject.manifest, graph);
  if (model == nullptr) return;
  for (const Engine engine : {Engine::ping, Engine::pong}) {
    const Section* in = staging(subject.manifest, SectionKind::input, model->name, engine);
    const Section* out = staging(subject.manifest, SectionKind::output, model->name, engine);
    if (in != nullptr && in->bytes < graph.tokens_max * token_bytes) {
      subject.report(Code::staging_too_small, key_of(*in, "bytes"),
                     concat(in->bytes, " bytes do not hold ", graph.tokens_max, " tokens"));
    }
    if (out != nullptr && out->bytes < model->config.vocabulary * logit_bytes) {
      subject.report(
          Code::staging_too_small, key_of(*out, "bytes"),
          concat(out->bytes, " bytes do not hold ", model->config.vocabulary, " logits"));
    }
  }
}

void check_memory_lines(const Subject& subject) {
  const auto expected = memory_lines(subject.manifest);
  const auto& lines = subject.manifest.memory;
  const bool equal = std::equal(expected.begin(), expected.end(), lines.begin(), lines.end(),
                                [](const MemoryLine& a, const MemoryLine& b) {
                                  return a.chip == b.chip && a.what == b.what && a.bytes == b.bytes;
                                });
  if (!equal) {
    subject.report(Code::memory_report_wrong, "memory",
                   "the memory lines are not the sums of the sections");
  }
}

}   // namespace

void check_addresses(const Subject& subject) {
  const Manifest& m = subject.manifest;
  bool sound = true;
  std::vector<const Section*> placed;
  for (const Section& section : m.sections) {
    if (check_place(subject, section)) {
      placed.push_back(&section);
    } else {
      sound = false;
    }
  }
  for (std::uint32_t chip = 0; chip < std::min(m.chips, package_limits::chips_max); ++chip) {
    std::vector<const Section*> here;
    for (const Section* section : placed) {
      if ((section->chip_mask >> chip & 1) != 0) here.push_back(section);
    }
    check_overlaps(subject, std::move(here), chip);
  }
  for (const Model& model : m.models) check_kv(subject, model);
  for (const Graph& graph : m.graphs) check_staging_sizes(subject, graph);
  // The sums may overflow where a place is wrong, and would only repeat that finding.
  if (sound) check_memory_lines(subject);
}

}   // namespace duet::device::detail
