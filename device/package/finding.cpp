// finding.cpp: the table of codes and the texts of findings.
#include "device/package/finding.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace duet::device {

const std::vector<CodeInfo>& code_table() {
  static constexpr std::string_view rebuild = "build the package again with duet-pack";
  static constexpr std::string_view fetch = "copy the package again from where it was built";
  static const std::vector<CodeInfo> table = {
      {Code::directory_unreadable, "The package directory cannot be read.",
       "check path and rights"},
      {Code::file_missing, "A file that every package has is not there.", fetch},
      {Code::manifest_malformed, "The manifest is not the bounded YAML that the format allows.",
       rebuild},
      {Code::key_unknown, "A key is not part of the format.",
       "remove the key or use the tool version that knows it"},
      {Code::key_duplicate, "A key is there twice.", "keep one of the two"},
      {Code::value_wrong, "A value has the wrong type or is out of its range.", rebuild},
      {Code::key_missing, "A required key is missing.", rebuild},
      {Code::schema_unknown, "The manifest's schema is not known.",
       "use the tool version that made the package"},
      {Code::kind_mismatch, "The kind of package and its number of models disagree.", rebuild},
      {Code::name_duplicate, "A name is there twice.", "give each its own name"},
      {Code::name_malformed, "A name has other characters than letters, digits, '.', '_' and '-'.",
       "rename it"},
      {Code::path_escapes, "A path leaves the package or is not a regular file.",
       "put the file itself into the package"},
      {Code::reference_unknown,
       "A name refers to nothing, or to something of another kind or model.", rebuild},
      {Code::graph_set_wrong, "A model has not exactly its prefill and its decode graph.", rebuild},
      {Code::section_unused, "A section belongs to no model or graph that uses it.",
       "remove it or bind it"},
      {Code::file_unbound, "A file of the package is bound by nothing in the manifest.",
       "remove the file"},
      {Code::section_set_incomplete,
       "A section that a model or graph needs is missing or there twice.", rebuild},
      {Code::file_malformed, "A file is not of the format that its section says.", rebuild},
      {Code::mask_not_single, "A chip mask has not exactly one bit.",
       "compile the model for one chip; a mask cannot be edited into shape"},
      {Code::chip_unknown, "A chip is named that the board does not have.", rebuild},
      {Code::section_chip_mismatch, "A section lies on another chip than its model.", rebuild},
      {Code::graph_target_mismatch, "A graph's target chips are not the one chip of its model.",
       rebuild},
      {Code::chip_mode_mismatch,
       "SCHIP/MCHIP, calc_mchip and the task kind disagree, or are multi-chip.",
       "compile the graph for a single chip"},
      {Code::models_share_chip, "Two models of a dual package are bound to one chip.",
       "build each model for its own chip"},
      {Code::program_note_mismatch,
       "A program was compiled for another graph, chip or core than the manifest says.", rebuild},
      {Code::program_cores_wrong, "A graph has not exactly one program a CalCore.", rebuild},
      {Code::command_header_mismatch,
       "A command list is for another graph, chip, engine or processor.", rebuild},
      {Code::sync_unit_conflict,
       "A sync unit is used by two graphs, twice, or without being declared.", rebuild},
      {Code::route_wrong,
       "A DMA route crosses chips, misses its model's chip, or shares a host window.", rebuild},
      {Code::command_wrong,
       "A command leaves its model's staging, route or cores, or their order is wrong.", rebuild},
      {Code::writable_wrong, "A section is writable that must not be, or the other way round.",
       rebuild},
      {Code::sequence_range_wrong,
       "The sequence-id ranges of two models overlap, or a range is empty.", rebuild},
      {Code::csr_mismatch, "Register words disagree with the manifest.", rebuild},
      {Code::address_misaligned, "An address is not a multiple of 4096.", rebuild},
      {Code::address_overlap, "Two sections overlap in a chip's memory.", rebuild},
      {Code::address_beyond_dram, "A section ends beyond the chip's memory.",
       "build with less context, fewer slots or a smaller model"},
      {Code::size_mismatch, "A section's size is not that of its file, or is 0.", rebuild},
      {Code::kv_region_wrong, "The KV region does not hold its slots as the model needs them.",
       rebuild},
      {Code::memory_report_wrong, "The memory report disagrees with the sections.", rebuild},
      {Code::staging_too_small,
       "An input or output staging does not hold a job's tokens or logits.", rebuild},
      {Code::workspace_wrong, "A workspace is shared between models or too small for its programs.",
       rebuild},
      {Code::checksums_malformed, "The checksum list is missing or not in its format.", fetch},
      {Code::hash_wrong, "A file is not the one that was hashed.", fetch},
      {Code::listed_file_missing, "A file of the checksum list is not there.", fetch},
      {Code::file_not_listed, "A file is not in the checksum list.", "remove the file"},
      {Code::manifest_hash_wrong, "A file's hash is not the one in the manifest.", rebuild},
      {Code::signature_missing, "The package is not signed.",
       "sign it (duet-pack sign) or set allow_unsigned"},
      {Code::signature_wrong,
       "The signature is of none of the trusted keys, or the list was changed.",
       "trust the signer's key or fetch the package again"},
      {Code::signature_malformed, "The signature file is not 64 bytes.", fetch},
      {Code::signature_unverifiable, "The package is signed but no key is trusted.",
       "name the signer's public key as trusted"},
      {Code::signature_revoked, "The signature is by a revoked key.",
       "do not use it; fetch a package that a trusted key signed"},
      {Code::package_changed, "The package changed while it was read.",
       "let the copy end and try again"},
      {Code::config_wrong, "A model's hyper-parameters are out of range.", rebuild},
      {Code::tensor_set_wrong,
       "A tensor is missing, doubled or unexpected for the model's configuration.",
       "compile the whole model, not a shard"},
      {Code::tensor_shape_wrong, "A tensor's shape is not what the model's configuration asks for.",
       "compile the whole model, not a shard"},
      {Code::tensor_type_wrong, "A tensor's element type is not the one of the quantisation.",
       rebuild},
      {Code::tensor_place_wrong, "A tensor is misaligned, overlaps another or leaves its section.",
       rebuild},
      {Code::parameter_map_wrong, "The device's parameter map disagrees with the manifest.",
       rebuild},
      {Code::weight_not_finite, "A weight or a block's scale is NaN or infinite.",
       "fetch the model file again and rebuild"},
      {Code::program_wrong,
       "A program does something that its model, buffers or partner do not allow.", rebuild},
      {Code::profile_wrong,
       "A graph's ports, batch, context or token count disagree with its model.", rebuild},
      {Code::tokenizer_wrong, "The tokenizer document is malformed or does not fit the model.",
       rebuild},
      {Code::golden_wrong, "The golden file is malformed, too small or does not fit the model.",
       rebuild},
      {Code::quantization_unknown, "The quantisation or KV type is not known.",
       "use W8A8 with bf16 KV"},
      {Code::compatibility_malformed, "compatibility.json is malformed.", rebuild},
      {Code::format_unsupported, "The package format is not the one of this program.",
       "use the tool version that made the package"},
      {Code::numerics_unsupported, "The package's arithmetic is not the one of this program.",
       "build the package again with this version"},
      {Code::build_id_mismatch, "Parts of the package come from different builds.",
       "never join packages by hand; build again"},
      {Code::provenance_wrong, "build-provenance.json is malformed or disagrees with the manifest.",
       rebuild},
  };
  return table;
}

std::string code_text(Code code) {
  return "P" + std::to_string(static_cast<unsigned>(code));
}

std::string_view code_action(Code code) {
  const auto& table = code_table();
  const auto found = std::lower_bound(table.begin(), table.end(), code,
                                      [](const CodeInfo& info, Code c) { return info.code < c; });
  DUET_ASSERT(found != table.end() && found->code == code, static_cast<unsigned>(code));
  return found->action;
}

void Findings::add(Code code, std::string file, std::string key, std::string message,
                   Severity severity, std::uint32_t line) {
  ++(severity == Severity::error ? errors_ : warnings_);
  codes_.insert(code);
  if (list_.size() >= count_max) return;
  list_.push_back({code, severity, std::move(file), std::move(key), line, std::move(message)});
}

bool Findings::has_any(Code first, Code last) const {
  const auto found = codes_.lower_bound(first);
  return found != codes_.end() && *found <= last;
}

void Findings::sort() {
  std::sort(list_.begin(), list_.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.code, a.file, a.line, a.key, a.message) <
           std::tie(b.code, b.file, b.line, b.key, b.message);
  });
}

std::string finding_text(const Finding& finding) {
  std::string out = code_text(finding.code);
  out += finding.severity == Severity::error ? " error " : " warning ";
  out += finding.file.empty() ? "package" : finding.file;
  if (finding.line != 0) out += ":" + std::to_string(finding.line);
  if (!finding.key.empty()) out += " " + finding.key;
  return out + ": " + finding.message + "; " + std::string(code_action(finding.code));
}

}   // namespace duet::device
