// duet_pack_audit_text.cpp: an audit as Markdown and as JSON.
#include "tools/duet_pack_audit.hpp"

#include "device/package/json_text.hpp"

#include <ostream>

namespace duet::tools {
namespace {

using device::json_array;
using device::json_string;

/// A cell of a Markdown table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

std::string evidence_text(const Evidence& evidence) {
  return evidence.file + (evidence.key.empty() ? "" : " `" + evidence.key + "`") + ": " +
         evidence.value;
}

}   // namespace

void print_audit(const std::vector<Delivered>& packages, const std::vector<AuditItem>& items,
                 std::ostream& out) {
  out << "# Audit\n\n";
  for (const Delivered& package : packages) {
    const bool valid = package.report.package != nullptr;
    out << "* " << package.content.directory << ": build " << package.content.manifest.build_id
        << ", " << (valid ? "valid" : "**not valid**") << ", " << package.report.findings.errors()
        << " errors, " << device::signature_text(package.report) << "\n";
  }
  out << "\n"
      << count(items, AuditStatus::present) << " present, " << count(items, AuditStatus::missing)
      << " missing, " << count(items, AuditStatus::unverifiable) << " unverifiable.\n";
  std::string list;
  for (const AuditItem& item : items) {
    const std::string of = item.id.rfind("15.1", 0) == 0 ? "15.1" : "20";
    if (of != list) {
      out << "\n## §" << of
          << "\n\n| item | what | status | evidence |\n| --- | --- | --- | --- |\n";
      list = of;
    }
    std::string evidence;
    for (const Evidence& one : item.evidence)
      evidence += (evidence.empty() ? "" : "<br>") + cell(evidence_text(one));
    if (!item.note.empty()) evidence += (evidence.empty() ? "" : "<br>") + cell(item.note);
    out << "| " << item.id << " | " << cell(item.title) << " | " << name_of(item.status) << " | "
        << evidence << " |\n";
  }
}

std::string audit_json(const std::vector<Delivered>& packages,
                       const std::vector<AuditItem>& items) {
  const auto package_json = [](const Delivered& package) {
    return "{\"directory\": " + json_string(package.content.directory) +
           ", \"build_id\": " + json_string(package.content.manifest.build_id) +
           ", \"valid\": " + (package.report.package != nullptr ? "true" : "false") +
           ", \"errors\": " + device::number_text(package.report.findings.errors()) +
           ", \"signature\": " + json_string(device::name_of(package.report.signature)) + "}";
  };
  const auto evidence_json = [](const Evidence& one) {
    return "{\"file\": " + json_string(one.file) + ", \"key\": " + json_string(one.key) +
           ", \"value\": " + json_string(one.value) + "}";
  };
  const auto item_json = [&](const AuditItem& item) {
    return "{\"id\": " + json_string(item.id) + ", \"title\": " + json_string(item.title) +
           ", \"status\": " + json_string(name_of(item.status)) +
           ", \"evidence\": " + json_array(item.evidence, evidence_json) +
           ", \"note\": " + json_string(item.note) + "}";
  };
  return "{\"packages\": " + json_array(packages, package_json) +
         ", \"items\": " + json_array(items, item_json) +
         ", \"present\": " + device::number_text(count(items, AuditStatus::present)) +
         ", \"missing\": " + device::number_text(count(items, AuditStatus::missing)) +
         ", \"unverifiable\": " + device::number_text(count(items, AuditStatus::unverifiable)) +
         "}";
}

}   // namespace duet::tools
