// fill.cpp: walks the YAML tree along the table of keys and fills a configuration.
#include "actors/limits.hpp"
#include "config/detail/draft.hpp"
#include "config/key_table.hpp"
#include "config/limits.hpp"
#include "config/spelling.hpp"
#include "config/values.hpp"
#include "device/program/message.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

namespace duet::config::detail {
namespace {

using device::concat;
using device::in_quotes;
using Kind = YamlNode::Kind;

std::string shown(const YamlNode& node) {
  switch (node.kind) {
    case Kind::null:
      return "nothing";
    case Kind::sequence:
      return "a list";
    case Kind::map:
      return "a block of keys";
    default:
      return in_quotes(node.text) + (node.quoted ? " (a text, because it is in quotes)" : "");
  }
}

bool is_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:").find(c) != std::string_view::npos;
  });
}

bool is_hash(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

class Filler {
 public:
  explicit Filler(Draft& draft) : draft_(draft) {
    directory_ = std::filesystem::path(draft.config.file).parent_path();
  }

  /// A map whose keys have the parent `parent` in the table and `path` in the file.
  void block(const YamlNode& node, std::string_view parent, const std::string& path,
             const Target& target) {
    std::map<std::string, Location, std::less<>> seen;
    for (const YamlEntry& entry : node.entries) {
      const std::string entry_path =
          path.empty() ? printable_key(entry.key) : path + "." + printable_key(entry.key);
      const auto [first, is_new] = seen.emplace(entry.key, entry.at);
      if (!is_new) {
        error(entry.at, entry_path,
              concat("is there twice, first in line ", first->second.line, "; remove one"));
        continue;
      }
      const Key* key = find_key(parent, entry.key);
      if (key == nullptr) {
        error(entry.at, entry_path, unknown(parent, entry.key));
        continue;
      }
      take(*key, entry, entry_path, target);
    }
    for (const Key& key : key_table()) {
      if (key.parent != parent || !key.required || seen.contains(key.name)) continue;
      const std::string missing =
          path.empty() ? std::string(key.name) : path + "." + std::string(key.name);
      error(node.at, missing, concat("is missing; it must be ", describe(key)));
    }
  }

 private:
  void error(Location at, std::string key, std::string message) {
    draft_.findings.error(draft_.config.file, at, std::move(key), std::move(message));
  }

  /// What to do about a key that is not in the table.
  static std::string unknown(std::string_view parent, const std::string& word) {
    std::vector<std::string_view> siblings;
    std::string elsewhere;
    for (const Key& key : key_table()) {
      if (key.parent == parent) {
        siblings.push_back(key.name);
      } else if (elsewhere.empty() && (key.name == word || path_of(key) == word)) {
        elsewhere = key.parent;
      }
    }
    if (!elsewhere.empty()) {
      return concat("is not a key of this block; it belongs below ", in_quotes(elsewhere));
    }
    const std::string_view near = nearest_key(word, siblings);
    if (!near.empty()) return concat("is not a known key; did you mean ", in_quotes(near), "?");
    return "is not a known key; docs/configuration.md lists them all";
  }

  void take(const Key& key, const YamlEntry& entry, const std::string& path, const Target& target) {
    const YamlNode& node = entry.value;
    const Location at = node.kind == Kind::null ? entry.at : node.at;
    draft_.config.locations.emplace(path, key.kind == ValueKind::block ? entry.at : at);
    if (node.kind == Kind::refused) {
      draft_.refused.insert(path);
      return;
    }
    if (key.kind == ValueKind::reserved) {
      error(entry.at, path, std::string(key.help));
    } else if (key.kind == ValueKind::block) {
      if (node.kind != Kind::map) return mistyped(key, at, path, node);
      block(node, path_of(key), path, target);
    } else if (key.kind == ValueKind::blocks) {
      models(key, node, at, path, target);
    } else if (const auto value = convert(key, node, at, path)) {
      key.set(target, *value);
    } else {
      draft_.refused.insert(path);
    }
  }

  void models(const Key& key, const YamlNode& node, Location at, const std::string& path,
              const Target& target) {
    if (node.kind != Kind::sequence) return mistyped(key, at, path, node);
    if (node.items.empty()) return error(at, path, "is empty; name at least one model");
    auto& models = draft_.config.service.models;
    for (const YamlNode& item : node.items) {
      const std::string item_path = concat(path, "[", models.size(), "]");
      if (models.size() == limits::models_max) {
        return error(item.at, item_path,
                     concat("there are at most ", limits::models_max,
                            " models, one a chip; remove the others"));
      }
      models.emplace_back();
      if (item.kind == Kind::refused) continue;
      draft_.config.locations.emplace(item_path, item.kind == Kind::null ? at : item.at);
      if (item.kind != Kind::map) {
        error(item.kind == Kind::null ? at : item.at, item_path,
              concat("must be a block of keys, not ", shown(item)));
        continue;
      }
      block(item, path + "[]", item_path, {target.config, &models.back()});
    }
  }

  void mistyped(const Key& key, Location at, const std::string& path, const YamlNode& node) {
    error(at, path, concat("must be ", describe(key), ", not ", shown(node)));
  }

  std::optional<Value> convert(const Key& key, const YamlNode& node, Location at,
                               const std::string& path) {
    if (key.kind == ValueKind::paths || key.kind == ValueKind::numbers) {
      return convert_list(key, node, at, path);
    }
    Value value;
    if (node.kind != Kind::scalar || !convert_scalar(key, node, value)) {
      mistyped(key, at, path, node);
      return std::nullopt;
    }
    return value;
  }

  std::optional<Value> convert_list(const Key& key, const YamlNode& node, Location at,
                                    const std::string& path) {
    if (node.kind != Kind::sequence || node.items.size() > limits::list_items_max ||
        (key.kind == ValueKind::paths && node.items.size() < key.min)) {
      mistyped(key, at, path, node);
      return std::nullopt;
    }
    Value list;
    bool good = true;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const YamlNode& item = node.items[i];
      if (item.kind == Kind::refused) continue;
      Value value;
      if (item.kind == Kind::scalar && convert_item(key, item, value)) {
        draft_.config.locations.emplace(concat(path, "[", i, "]"), item.at);
        if (key.kind == ValueKind::paths) list.texts.push_back(value.text);
        if (key.kind == ValueKind::numbers) list.numbers.push_back(value.number);
        continue;
      }
      error(item.kind == Kind::null ? at : item.at, concat(path, "[", i, "]"),
            concat("must be an item of ", describe(key), ", not ", shown(item)));
      good = false;
    }
    return good ? std::optional(list) : std::nullopt;
  }

  bool convert_item(const Key& key, const YamlNode& node, Value& value) const {
    if (key.kind == ValueKind::paths) return convert_path(node, limits::text_bytes_max, value);
    return convert_number(key, node, parse_number(node.text), value);
  }

  bool convert_scalar(const Key& key, const YamlNode& node, Value& value) const {
    const std::string& text = node.text;
    const bool fits = text.size() >= key.min && text.size() <= key.max;
    switch (key.kind) {
      case ValueKind::text:
        value.text = text;
        return fits;
      case ValueKind::name:
        value.text = text;
        return fits && is_name(text);
      case ValueKind::hash:
        value.text = text;
        return is_hash(text);
      case ValueKind::path:
        return convert_path(node, key.max, value);
      case ValueKind::choice: {
        const auto found = std::find(key.choices.begin(), key.choices.end(), text);
        value.text = text;
        value.number = static_cast<std::uint64_t>(found - key.choices.begin());
        return found != key.choices.end();
      }
      case ValueKind::boolean:
        value.number = text == "true" ? 1 : 0;
        return !node.quoted && (text == "true" || text == "false");
      case ValueKind::number:
        return convert_number(key, node, parse_number(text), value);
      case ValueKind::size:
        return convert_number(key, node, parse_size(text), value);
      case ValueKind::duration:
        return convert_number(key, node, parse_duration(text), value) &&
               value.number % key.step == 0;
      default:
        return false;
    }
  }

  static bool convert_number(const Key& key, const YamlNode& node,
                             std::optional<std::uint64_t> number, Value& value) {
    value.number = number.value_or(0);
    return !node.quoted && number && *number >= key.min && *number <= key.max;
  }

  /// Relative paths are relative to the file.
  bool convert_path(const YamlNode& node, std::size_t bytes_max, Value& value) const {
    const bool plain = std::none_of(node.text.begin(), node.text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;   // escapes of a quoted text
    });
    if (node.text.empty() || !plain) return false;
    value.text = (directory_ / node.text).lexically_normal().string();
    return value.text.size() <= bytes_max;
  }

  Draft& draft_;
  std::filesystem::path directory_;
};

}   // namespace

void fill(Draft& draft, const YamlNode& root) {
  if (root.kind != Kind::map) {
    draft.findings.error(draft.config.file, {1, 1}, {},
                         concat("must be a block of keys such as 'schema:', not ", shown(root)));
    return;
  }
  Filler{draft}.block(root, "", "", {&draft.config, nullptr});
}

}   // namespace duet::config::detail
