// duet_pack_show.hpp: manifests and findings as text and as JSON.
#pragma once

#include "device/package/finding.hpp"
#include "device/package/manifest.hpp"

#include <iosfwd>
#include <string>

namespace duet::tools {

/// A readable summary: models, graphs, sections, memory.
void print_manifest(const device::Manifest& m, std::ostream& out);

/// One JSON object, without a line end.
[[nodiscard]] std::string manifest_json(const device::Manifest& m);
[[nodiscard]] std::string finding_json(const device::Finding& finding);

}   // namespace duet::tools
