// finding.hpp: what is wrong with a configuration, where, and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::config {

/// Both from 1; 0 where there is no place in a file. Columns count bytes.
struct Location {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct Finding {
  std::string file;   ///< as the caller named it.
  Location at;
  std::string key;       ///< "models[1].chip_id"; "" only if the file as a whole is meant.
  std::string message;   ///< one sentence: what is wrong and what to do. Never a secret.
};

/// "FILE:LINE:COLUMN: KEY: MESSAGE"; parts that there are not are left out. One line of text,
/// whatever the file held.
[[nodiscard]] std::string to_string(const Finding& finding);

/// Errors stop the start; warnings are printed. Each list is bounded: what is dropped is counted in
/// a last finding.
struct Findings {
  std::vector<Finding> errors;
  std::vector<Finding> warnings;

  void error(const std::string& file, Location at, std::string key, std::string message);
  void warning(const std::string& file, Location at, std::string key, std::string message);
  /// In the order of the lines; findings of other files than the first stay behind it.
  void sort(const std::string& first_file);
};

/// A foreign key as it may be shown: itself if it is a plain name, else quoted and escaped.
[[nodiscard]] std::string printable_key(std::string_view key);

}   // namespace duet::config
