// reference.cpp: puts a key's type, bounds and default into words.
#include "config/key_table.hpp"
#include "config/values.hpp"

namespace duet::config {
namespace {

std::string print(ValueKind kind, std::uint64_t value) {
  switch (kind) {
    case ValueKind::duration:
      return print_duration(value);
    case ValueKind::size:
      return print_size(value);
    default:
      return std::to_string(value);
  }
}

std::string range(const Key& key) {
  return print(key.kind, key.min) + " to " + print(key.kind, key.max);
}

std::string choices(const Key& key) {
  std::string text;
  for (std::size_t i = 0; i < key.choices.size(); ++i) {
    if (i > 0) text += i + 1 == key.choices.size() ? " or " : ", ";
    // Plain, YAML reads it as no value at all.
    text += key.choices[i] == "null" ? "\"null\" (in quotes)" : std::string(key.choices[i]);
  }
  return text;
}

/// What holds without the key, read from a fresh Config.
std::string default_of(const Key& key) {
  if (key.required) return "required";
  if (!key.absent.empty()) return std::string(key.absent);
  if (key.get == nullptr) return "";
  Config config;
  actors::ModelOptions model;
  const Value value = key.get({&config, &model});
  switch (key.kind) {
    case ValueKind::boolean:
      return value.number != 0 ? "`true`" : "`false`";
    case ValueKind::choice: {
      if (!value.text.empty()) return "`" + value.text + "`";
      if (value.number >= key.choices.size()) return "none";
      return "`" + std::string(key.choices[value.number]) + "`";
    }
    case ValueKind::number:
    case ValueKind::size:
    case ValueKind::duration:
      return "`" + print(key.kind, value.number) + "`";
    default:
      return value.text.empty() ? "none" : "`" + value.text + "`";
  }
}

}   // namespace

std::string describe(const Key& key) {
  switch (key.kind) {
    case ValueKind::block:
      return "a block of keys";
    case ValueKind::blocks:
      return "a list of " + range(key) + " blocks of keys";
    case ValueKind::text:
      return "a text of " + range(key) + " bytes";
    case ValueKind::name:
      return "a name of " + range(key) + " letters, digits and . _ - / :";
    case ValueKind::path:
      return "a path of " + range(key) + " bytes";
    case ValueKind::hash:
      return "64 hexadecimal digits in lower case";
    case ValueKind::choice:
      return choices(key);
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::number:
      return "a whole number from " + range(key);
    case ValueKind::size:
      return "a size from " + range(key) + " (bytes, or with KiB, MiB, GiB)";
    case ValueKind::duration:
      return "a duration from " + range(key) + " (with ms, s, m or h" +
             (key.step > 1 ? "; whole seconds)" : ")");
    case ValueKind::paths:
      return "a list of " + range(key) + " paths";
    case ValueKind::numbers:
      return "a list of whole numbers from " + range(key);
    case ValueKind::reserved:
      return "not in this version";
  }
  return {};
}

std::string reference_row(const Key& key) {
  return "| `" + path_of(key) + "` | " + describe(key) + " | " + default_of(key) + " | " +
         std::string(key.help) + " |";
}

}   // namespace duet::config
