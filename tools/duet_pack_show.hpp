// duet_pack_show.hpp: packages and findings as text and as JSON.
#pragma once

#include "device/package/finding.hpp"
#include "device/package/manifest.hpp"
#include "tools/duet_pack_diff.hpp"

#include <iosfwd>
#include <string>

namespace duet::tools {

/// A summary of one screen: models with graphs and goldens, memory of each chip.
void print_content(const PackageContent& content, std::ostream& out);
/// One line a section.
void print_sections(const device::Manifest& m, std::ostream& out);

/// One JSON object, without a line end.
[[nodiscard]] std::string content_json(const PackageContent& content);
[[nodiscard]] std::string finding_json(const device::Finding& finding);

}   // namespace duet::tools
