// yaml_tree.hpp: a YAML document as a plain tree, read under fixed bounds; the only user of
// yaml-cpp in device/.
#pragma once

#include "device/program/message.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

namespace yaml_limits {
inline constexpr std::uint64_t bytes_max = 4U << 20;   // a model of 1137 tensors takes 200 KB
inline constexpr std::uint32_t depth_max = 12;         // six are used
inline constexpr std::uint32_t nodes_max = 1U << 20;   // four bytes a node is dense YAML
inline constexpr std::uint32_t line_bytes_max =
    65536;   // the scanner looks back along the line for each key
inline constexpr std::uint32_t brackets_max = 1U << 18;
}   // namespace yaml_limits

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };
  Kind kind = Kind::null;
  bool is_quoted = false;          ///< scalar: in quotes, so it is a text whatever it looks like.
  std::uint32_t line = 0;          ///< from 1.
  std::string text;                ///< scalar.
  std::vector<std::string> keys;   ///< map: in order, doubles kept; keys[i] belongs to children[i].
  std::vector<YamlNode> children;
};

/// One document of at most bytes_max bytes of UTF-8. Anchors, aliases, tags, tabs, several
/// documents and keys that are not plain text are refused. Errors name `name`, and the line where
/// there is one.
[[nodiscard]] Result<YamlNode> read_yaml(std::string_view text, const std::string& name);

}   // namespace duet::device
