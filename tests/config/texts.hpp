// texts.hpp: files and findings as the tests of config/ need them.
#pragma once

#include "config/config.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace duet::config::test {

/// `path` is relative to the root of the source tree.
inline std::string read_source(const std::string& path) {
  std::ifstream file(std::string(DUET_SOURCE_DIR) + "/" + path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

inline std::string printed(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += "\n  " + to_string(finding);
  return text;
}

inline const Finding* find(const std::vector<Finding>& findings, const std::string& key) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.key == key; });
  return found == findings.end() ? nullptr : &*found;
}

/// `text` with the one occurrence of `from` replaced.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    throw std::logic_error("not there exactly once: " + from);
  }
  return text.replace(at, from.size(), to);
}

}   // namespace duet::config::test
