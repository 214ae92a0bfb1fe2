// duet_pack_diff.hpp: what changed between two packages.
#pragma once

#include "device/package/golden.hpp"
#include "device/package/manifest.hpp"
#include "device/package/package_files.hpp"
#include "device/program/message.hpp"

#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace duet::tools {

/// What a package holds, read without judging it: a refused one is what one wants to compare.
struct PackageContent {
  std::string directory;
  device::Manifest manifest;
  /// SHA-256 and size of every file as it lies there; no hash of one that is absurdly large.
  struct File {
    std::string sha256;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, File> files;
  std::optional<device::Provenance> provenance;    ///< nothing if it is missing or malformed.
  std::map<std::string, device::Golden> goldens;   ///< by model; those that can be read.
};

/// Fails if the directory or its manifest cannot be read. Hashes every file once, mapped.
[[nodiscard]] device::Result<PackageContent> read_content(const std::string& directory);

/// One difference. An empty side: there is nothing of this name on it, or it is empty.
struct Difference {
  std::string group;   ///< "files", "package", "models", "graphs", "sections", "dma_routes",
                       ///< "memory", "goldens", "provenance".
  std::string key;     ///< "sections.model-a.kv.bytes", "model-a/golden/golden.json".
  std::string a;
  std::string b;
};

/// Sorted by group as listed above, then by key; empty: the same bytes in every file but the
/// checksum list and its signature, which follow from the others and the key.
[[nodiscard]] std::vector<Difference> compare(const PackageContent& a, const PackageContent& b);

void print_differences(const std::vector<Difference>& differences, std::ostream& out);
/// One JSON object, without a line end.
[[nodiscard]] std::string differences_json(const PackageContent& a, const PackageContent& b,
                                           const std::vector<Difference>& differences);

}   // namespace duet::tools
