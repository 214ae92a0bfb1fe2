// key_table.hpp: every key of a configuration: its type, bounds, default and meaning. The loader,
// the hints at misspelled keys and docs/configuration.md all come from this table.
#pragma once

#include "config/config.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::config {

enum class ValueKind : std::uint8_t {
  block,      ///< a map of further keys.
  blocks,     ///< a list of such maps.
  text,       ///< number range: bytes.
  name,       ///< text of letters, digits and . _ - / : alone.
  path,       ///< text; relative to the file's directory.
  hash,       ///< 64 lower-case hex digits.
  choice,     ///< one of `choices`.
  boolean,    ///< true or false.
  number,     ///< whole.
  size,       ///< bytes.
  duration,   ///< milliseconds inside.
  paths,      ///< list of path; number range: items.
  numbers,    ///< list of whole numbers; number range: of each item.
  reserved,   ///< a key of a later version: refused, with `help` as the reason.
};

/// A value on its way from the file to a field.
struct Value {
  std::string text;           ///< text, name, path, hash, choice.
  std::uint64_t number = 0;   ///< boolean (0, 1), number, size, duration, choice (its index).
  std::vector<std::string> texts;
  std::vector<std::uint64_t> numbers;
};

/// Whose field is meant: keys under "models[]" go to `model`, all others to `config`.
struct Target {
  Config* config = nullptr;
  actors::ModelOptions* model = nullptr;
};

struct Key {
  std::string_view parent;   ///< "" or "http.limits" or "models[]".
  std::string_view name;
  ValueKind kind = ValueKind::block;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  std::uint64_t step = 1;   ///< duration: the field's unit in milliseconds.
  std::span<const std::string_view> choices;
  bool required = false;
  std::string_view absent;   ///< what holds without the key, where that is no value.
  std::string_view help;
  void (*set)(const Target& target, const Value& value) = nullptr;
  Value (*get)(const Target& target) = nullptr;
};

/// In the order of the documentation. A block stands before its keys.
[[nodiscard]] const std::vector<Key>& key_table();

/// Exact; nullptr if there is none.
[[nodiscard]] const Key* find_key(std::string_view parent, std::string_view name);

/// "http.limits.body_bytes", "models[].alias".
[[nodiscard]] std::string path_of(const Key& key);

/// For messages and the documentation: "a whole number from 0 to 65535".
[[nodiscard]] std::string describe(const Key& key);

/// The line of docs/configuration.md's table for this key.
[[nodiscard]] std::string reference_row(const Key& key);

}   // namespace duet::config
