// duet_pack_audit.hpp: what of the vendor lists a delivered package holds.
#pragma once

#include "device/package/validator.hpp"
#include "tools/duet_pack_diff.hpp"

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace duet::tools {

enum class AuditStatus : std::uint8_t {
  present,        ///< read in the package.
  missing,        ///< a package could hold it and none of those given does.
  unverifiable,   ///< no package can show it: to be asked for beside it.
};

/// Where something was read, or looked for.
struct Evidence {
  std::string file;    ///< "DIRECTORY/PATH"; empty: no file.
  std::string key;     ///< empty: the file as a whole.
  std::string value;   ///< what stands there.
};

struct AuditItem {
  std::string id;   ///< "15.1.1.kv": the list, its item, what of it.
  std::string title;
  AuditStatus status = AuditStatus::missing;
  std::vector<Evidence> evidence;   ///< at least one if present.
  std::string note;                 ///< why it is missing or unverifiable.
};

/// A package to be audited: what it says and what validation says of it.
struct Delivered {
  PackageContent content;
  device::ValidationReport report;
};

/// The lists of §15.1 (compiler and calbin) and §20 (history and versions) over all packages of a
/// delivery, in the order of the lists. A package with errors still counts, item by item, unless an
/// error is about the item itself; then that error is the note.
[[nodiscard]] std::vector<AuditItem> audit(const std::vector<Delivered>& packages);

[[nodiscard]] std::string_view name_of(AuditStatus status);
[[nodiscard]] std::size_t count(const std::vector<AuditItem>& items, AuditStatus status);

/// Markdown: a head, then a table a list.
void print_audit(const std::vector<Delivered>& packages, const std::vector<AuditItem>& items,
                 std::ostream& out);
/// One JSON object, without a line end.
[[nodiscard]] std::string audit_json(const std::vector<Delivered>& packages,
                                     const std::vector<AuditItem>& items);

}   // namespace duet::tools
