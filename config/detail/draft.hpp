// draft.hpp: a configuration on its way through the steps of the loader; inside config/ alone.
#pragma once

#include "config/config.hpp"
#include "config/yaml_document.hpp"

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace duet::config::detail {

struct Draft {
  Config config;
  Findings findings;
  std::set<std::string, std::less<>> refused;   ///< keys whose values were not taken.

  /// True if the file holds this key with a value that was taken: rules between keys speak of no
  /// other, so that one mistake gives one error.
  [[nodiscard]] bool has(std::string_view key) const {
    return config.given(key) && !refused.contains(key);
  }
  /// Notes an error at the place of `key`.
  void error(std::string key, std::string message);
  void warning(std::string key, std::string message);
};

/// Fills the draft from the tree by the table of keys: unknown, doubled, missing and mistyped keys
/// are findings.
void fill(Draft& draft, const YamlNode& root);

/// What no single key can say: keys that need or exclude each other, and the safe default.
void apply_rules(Draft& draft);

/// "models[1].chip_id".
[[nodiscard]] std::string model_key(std::size_t index, std::string_view name);

}   // namespace duet::config::detail
