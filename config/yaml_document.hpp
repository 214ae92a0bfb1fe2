// yaml_document.hpp: a YAML file as a bounded tree in which every key and value knows its place.
#pragma once

#include "config/finding.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::config {

struct YamlEntry;

struct YamlNode {
  enum class Kind : std::uint8_t {
    null,
    scalar,
    sequence,
    map,
    refused,   ///< an alias: already reported, to be passed over.
  };
  Kind kind = Kind::null;
  bool quoted = false;              ///< scalar: in quotes, so it is a text whatever it looks like.
  Location at;                      ///< null: of whatever follows, so use the key's place instead.
  std::string text;                 ///< scalar.
  std::vector<YamlEntry> entries;   ///< map: in order, doubles kept.
  std::vector<YamlNode> items;      ///< sequence.
};

struct YamlEntry {
  std::string key;
  Location at;
  YamlNode value;
};

/// One document of UTF-8. Anchors, aliases, tags, tabs, several documents, keys that are not plain
/// text, and what is beyond limits.hpp are findings; each names its key where one is known. Nothing
/// if no tree could be built; a tree may come with findings. Throws nothing but lack of memory.
[[nodiscard]] std::optional<YamlNode> read_yaml(std::string_view text, const std::string& file,
                                                Findings& findings);

}   // namespace duet::config
