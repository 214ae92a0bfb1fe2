// package_files.hpp: the small files of a package that are not the manifest: checksums,
// compatibility, provenance, memory.
#pragma once

#include "device/package/manifest.hpp"
#include "device/program/elf.hpp"
#include "device/program/message.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

inline constexpr const char* checksums_file = "checksums.sha256";
inline constexpr const char* signature_file = "checksums.sha256.sig";
inline constexpr const char* compatibility_file = "compatibility.json";
inline constexpr const char* provenance_file = "build-provenance.json";
inline constexpr const char* memory_report_file = "model_memory_reserved_info.txt";

inline constexpr std::uint64_t small_file_bytes_max = 4U << 20;

/// Path → SHA-256 (lower-case hex). Written as `sha256sum` does, sorted by path.
using Checksums = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] std::string write_checksums(const Checksums& checksums);
/// Strict: one entry a line, sorted, no path twice, only paths inside the package.
[[nodiscard]] Result<Checksums> read_checksums(std::string_view text);

/// The formats that this program writes and reads; the file must say exactly these.
[[nodiscard]] std::string compatibility_text();
/// Errors: malformed (code 601) or another format (602) or numerics (603): the number is in `code`.
[[nodiscard]] Result<void> check_compatibility(std::string_view text, unsigned& code);

/// Where a package comes from. Holds nothing that differs between two builds of the same input.
struct Provenance {
  struct Source {
    std::string model;
    std::string sha256;          ///< of the model file.
    std::string golden_sha256;   ///< of the golden file it was given, or empty.
  };
  std::string build_id;
  std::string packer;   ///< "duet-pack".
  std::uint32_t packer_version = 0;
  std::vector<Source> sources;
};
[[nodiscard]] std::string write_provenance(const Provenance& provenance);
[[nodiscard]] Result<Provenance> read_provenance(std::string_view text);

/// The memory report of a chip in use, from the sections: weights, kv, workspace, code, io,
/// metadata; fragmentation (gaps between sections) and guard (everything below the lowest legal
/// address). The sum is the top of what is used.
[[nodiscard]] std::vector<MemoryLine> memory_lines(const Manifest& manifest);
/// The line of that report that a section of this kind counts in.
[[nodiscard]] const char* memory_line_of(SectionKind kind) noexcept;
/// model_memory_reserved_info.txt.
[[nodiscard]] std::string memory_report(const Manifest& manifest);

}   // namespace duet::device
