// rules.hpp: the rules of validation, grouped as their codes are. Internal to device/package/.
#pragma once

#include "device/package/finding.hpp"
#include "device/package/manifest.hpp"
#include "device/package/manifest_yaml.hpp"
#include "device/package/package.hpp"
#include "device/program/command.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device::detail {

/// A mapped file and the hash of its bytes; empty: too large to be read.
struct LoadedFile {
  std::shared_ptr<const MappedFile> file;
  std::string sha256;
};

/// What the rules look at. Contents that could not be read are absent: their own finding exists
/// already.
struct Subject {
  const Manifest& manifest;
  const std::map<std::string, LoadedFile>& files;   ///< by path.
  Findings& findings;
  std::map<std::string, ElfFile> programs;       ///< by section.
  std::map<std::string, CommandList> commands;   ///< by section.
  std::map<std::string, CsrList> csrs;           ///< by section.
  std::map<std::string, Golden> goldens;         ///< by model.

  /// Bytes of a file, or nothing.
  [[nodiscard]] std::optional<std::span<const std::byte>> bytes(const std::string& path) const;
  /// A finding about a key of the manifest.
  void report(Code code, const std::string& key, std::string message) const;
  /// A finding about another file.
  void report_file(Code code, const std::string& file, std::string message) const;
};

/// "sections.NAME.", "graphs.NAME.", "models.NAME.".
[[nodiscard]] std::string key_of(const Section& section, const char* field);
[[nodiscard]] std::string key_of(const Graph& graph, const char* field);
[[nodiscard]] std::string key_of(const Model& model, const char* field);

/// The model that names this graph as its prefill or decode; null if none does.
[[nodiscard]] const Model* owner_of(const Manifest& manifest, const Graph& graph);
/// A section by name if it exists, is of `kind` and belongs to `model`; null otherwise.
[[nodiscard]] const Section* owned(const Manifest& manifest, const std::string& name,
                                   SectionKind kind, const std::string& model);
/// The staging section of a model and engine; null if there is none.
[[nodiscard]] const Section* staging(const Manifest& manifest, SectionKind kind,
                                     const std::string& model, Engine engine);

void check_structure(const Subject& subject);   // P1xx
void check_targets(const Subject& subject);     // P201..P206, P208, P210, P211, P213, P214
void check_addresses(const Subject& subject);   // P301..P303, P305..P307
void check_files(Subject& subject);             // P304, P405, reads programs, commands, registers
void check_programs(const Subject& subject);    // P207, P209, P212, P215, P604
void check_tensors(const Subject& subject);     // P501..P507, P512
void check_profiles(Subject& subject);          // P308, P508..P511
void check_compatibility_files(const Subject& subject);   // P306, P601..P605

}   // namespace duet::device::detail
