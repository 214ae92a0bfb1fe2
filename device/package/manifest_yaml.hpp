// manifest_yaml.hpp: Manifest ↔ manifest.yaml.
#pragma once

#include "device/package/finding.hpp"
#include "device/package/manifest.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace duet::device {

inline constexpr const char* manifest_file = "manifest.yaml";
inline constexpr const char* manifest_schema = "duet-package/v1";

/// Reads strictly: unknown, doubled and missing keys and values of a wrong type each add a finding
/// with line and key. Nothing if there was any. What the values mean is the validator's question.
[[nodiscard]] std::optional<Manifest> read_manifest(std::string_view text, Findings& findings);

/// The same manifest gives the same bytes; read_manifest of them gives the same manifest.
[[nodiscard]] std::string write_manifest(const Manifest& manifest);

/// Spellings of the enumerations, as in the manifest.
[[nodiscard]] std::string_view name_of(SectionKind kind);
[[nodiscard]] std::string_view name_of(GraphKind kind);
[[nodiscard]] std::string_view name_of(Engine engine);
[[nodiscard]] std::string_view name_of(Processor processor);
[[nodiscard]] std::string_view name_of(ChipMode mode);
[[nodiscard]] std::string_view name_of(TaskKind task);

}   // namespace duet::device
