// finding.hpp: what validation says about a package: a stable code, a place, a sentence and what to
// do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

/// The hundreds say what kind: 1 structure, 2 masks and targets, 3 addresses, 4 hashes and
/// signature, 5 tensors and profiles, 6 compatibility. A code is never used for something else
/// again. docs/findings.md is the same table.
enum class Code : std::uint16_t {
  directory_unreadable = 101,
  file_missing = 102,
  manifest_malformed = 103,
  key_unknown = 104,
  key_duplicate = 105,
  value_wrong = 106,
  key_missing = 107,
  schema_unknown = 108,
  kind_mismatch = 109,
  name_duplicate = 110,
  name_malformed = 111,
  path_escapes = 112,
  reference_unknown = 113,
  graph_set_wrong = 114,
  section_unused = 115,
  file_unbound = 116,
  section_set_incomplete = 117,
  file_malformed = 118,

  mask_not_single = 201,
  chip_unknown = 202,
  section_chip_mismatch = 203,
  graph_target_mismatch = 204,
  chip_mode_mismatch = 205,
  models_share_chip = 206,
  program_note_mismatch = 207,
  program_cores_wrong = 208,
  command_header_mismatch = 209,
  sync_unit_conflict = 210,
  route_wrong = 211,
  command_wrong = 212,
  writable_wrong = 213,
  sequence_range_wrong = 214,
  csr_mismatch = 215,

  address_misaligned = 301,
  address_overlap = 302,
  address_beyond_dram = 303,
  size_mismatch = 304,
  kv_region_wrong = 305,
  memory_report_wrong = 306,
  staging_too_small = 307,
  workspace_wrong = 308,

  checksums_malformed = 401,
  hash_wrong = 402,
  listed_file_missing = 403,
  file_not_listed = 404,
  manifest_hash_wrong = 405,
  signature_missing = 406,
  signature_wrong = 407,
  signature_malformed = 408,
  signature_unverifiable = 409,
  signature_revoked = 410,
  package_changed = 411,

  config_wrong = 501,
  tensor_set_wrong = 502,
  tensor_shape_wrong = 503,
  tensor_type_wrong = 504,
  tensor_place_wrong = 505,
  parameter_map_wrong = 506,
  weight_not_finite = 507,
  program_wrong = 508,
  profile_wrong = 509,
  tokenizer_wrong = 510,
  golden_wrong = 511,
  quantization_unknown = 512,

  compatibility_malformed = 601,
  format_unsupported = 602,
  numerics_unsupported = 603,
  build_id_mismatch = 604,
  provenance_wrong = 605,
};

enum class Severity : std::uint8_t { warning, error };

/// One row of the table of codes.
struct CodeInfo {
  Code code;
  std::string_view title;
  std::string_view action;   ///< what to do.
};

/// The whole table in order of the numbers.
[[nodiscard]] const std::vector<CodeInfo>& code_table();

/// "P101".
[[nodiscard]] std::string code_text(Code code);
[[nodiscard]] std::string_view code_action(Code code);

struct Finding {
  Code code = Code::directory_unreadable;
  Severity severity = Severity::error;
  std::string file;         ///< relative to the package; empty: the package as a whole.
  std::string key;          ///< "sections.model-a.kv.chip_mask"; empty: the file as a whole.
  std::uint32_t line = 0;   ///< in `file`, from 1; 0: unknown.
  std::string message;      ///< one sentence.
};

/// Findings of one validation. Bounded: a hostile package must not fill the memory with its own
/// errors.
class Findings {
 public:
  static constexpr std::size_t count_max = 1000;   // nobody reads more; the count goes on

  void add(Code code, std::string file, std::string key, std::string message,
           Severity severity = Severity::error, std::uint32_t line = 0);

  [[nodiscard]] const std::vector<Finding>& list() const { return list_; }
  [[nodiscard]] std::size_t errors() const { return errors_; }
  [[nodiscard]] std::size_t warnings() const { return warnings_; }
  /// True if a finding of this code was added, kept in list() or not.
  [[nodiscard]] bool has(Code code) const { return codes_.count(code) != 0; }
  /// The same for any code from `first` to `last`.
  [[nodiscard]] bool has_any(Code first, Code last) const;
  /// Sorts by code, file, key and text, so that the order does not depend on the order of the
  /// checks.
  void sort();

 private:
  std::vector<Finding> list_;
  std::set<Code> codes_;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
};

/// "P201 error manifest.yaml:41 sections.x.chip_mask: message; what to do".
[[nodiscard]] std::string finding_text(const Finding& finding);

}   // namespace duet::device
