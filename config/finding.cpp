// finding.cpp: prints, bounds and orders findings.
#include "config/finding.hpp"

#include "config/limits.hpp"
#include "device/program/message.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace duet::config {
namespace {

void add(std::vector<Finding>& list, Finding finding) {
  if (list.size() < limits::findings_max) {
    list.push_back(std::move(finding));
  } else if (list.size() == limits::findings_max) {
    list.push_back({std::move(finding.file),
                    finding.at,
                    {},
                    "there is more like this; correct what is listed and check again"});
  }
}

}   // namespace

std::string to_string(const Finding& finding) {
  std::string text = finding.file;
  if (finding.at.line > 0) {
    text += ":" + std::to_string(finding.at.line) + ":" + std::to_string(finding.at.column);
  }
  text += ": ";
  if (!finding.key.empty()) text += finding.key + ": ";
  text += finding.message;
  // A path may hold anything but a null byte, and messages of yaml-cpp repeat a character of the
  // file; a report has one line a finding.
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

void Findings::error(const std::string& file, Location at, std::string key, std::string message) {
  add(errors, {file, at, std::move(key), std::move(message)});
}

void Findings::warning(const std::string& file, Location at, std::string key, std::string message) {
  add(warnings, {file, at, std::move(key), std::move(message)});
}

void Findings::sort(const std::string& first_file) {
  const auto by_place = [&first_file](const Finding& a, const Finding& b) {
    return std::tuple(a.file != first_file, a.at.line, a.at.column) <
           std::tuple(b.file != first_file, b.at.line, b.at.column);
  };
  std::stable_sort(errors.begin(), errors.end(), by_place);
  std::stable_sort(warnings.begin(), warnings.end(), by_place);
}

std::string printable_key(std::string_view key) {
  return device::is_plain_name(key) ? std::string(key) : device::in_quotes(key);
}

}   // namespace duet::config
