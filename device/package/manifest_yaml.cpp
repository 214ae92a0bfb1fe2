// manifest_yaml.cpp: reads and writes manifest.yaml through the fields of manifest_fields.hpp.
#include "device/package/manifest_yaml.hpp"

#include "device/package/json_text.hpp"
#include "device/package/manifest_fields.hpp"
#include "device/package/model_source.hpp"
#include "device/package/yaml_tree.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

namespace duet::device {
namespace {

using manifest_limits::items_max;
using manifest_limits::text_bytes_max;

template <typename T>
concept Named = requires {
  EnumNames<T>::names;
};
template <typename T>
concept Number = std::unsigned_integral<T> && !std::same_as<T, bool>;

/// Fills one struct from one map. Reports what is wrong and goes on with the next key.
class MapReader {
 public:
  MapReader(const YamlNode& node, std::string path, Findings& findings)
      : node_(node), path_(std::move(path)), findings_(findings) {}

  template <typename T>
  void operator()(const char* key, T& value) {
    take(key, value, true);
  }
  template <typename T>
  void optional(const char* key, T& value) {
    take(key, value, false);
  }
  void hex(const char* key, std::uint64_t& value) { take(key, value, true); }

  /// Reports the keys that nobody asked for.
  void finish() {
    for (std::size_t i = 0; i < node_.keys.size(); ++i) {
      const std::string& key = node_.keys[i];
      const std::uint32_t line = node_.children[i].line;
      if (asked_.count(key) == 0) {
        report(Code::key_unknown, in_quotes(key), line,
               "the key " + in_quotes(key) + " is not known here");
      } else if (!seen_.insert(key).second) {
        report(Code::key_duplicate, key, line, "the key " + in_quotes(key) + " is there twice");
      }
    }
  }

 private:
  template <typename T>
  void take(const char* key, T& value, bool required) {
    asked_.insert(key);
    const auto found = std::find(node_.keys.begin(), node_.keys.end(), key);
    if (found == node_.keys.end()) {
      if (required) {
        report(Code::key_missing, key, node_.line,
               concat("the key ", in_quotes(key), " is missing"));
      }
      return;
    }
    convert(node_.children[static_cast<std::size_t>(found - node_.keys.begin())],
            path_.empty() ? key : path_ + "." + key, value);
  }

  void report(Code code, const std::string& key, std::uint32_t line, std::string message) {
    findings_.add(code, manifest_file, path_.empty() ? key : path_ + "." + key, std::move(message),
                  Severity::error, line);
  }
  void wrong(const YamlNode& node, const std::string& path, const std::string& wanted) {
    std::string got = "a list";
    if (node.kind == YamlNode::Kind::null) got = "nothing";
    if (node.kind == YamlNode::Kind::map) got = "a map";
    if (node.kind == YamlNode::Kind::scalar)
      got = (node.is_quoted ? "the text " : "") + in_quotes(node.text);
    findings_.add(Code::value_wrong, manifest_file, path, "should be " + wanted + " but is " + got,
                  Severity::error, node.line);
  }
  static bool is_plain(const YamlNode& node) {
    return node.kind == YamlNode::Kind::scalar && !node.is_quoted;
  }

  void convert(const YamlNode& node, const std::string& path, std::string& value) {
    if (node.kind != YamlNode::Kind::scalar || node.text.size() > text_bytes_max) {
      return wrong(node, path, concat("a text of at most ", text_bytes_max, " bytes"));
    }
    value = node.text;
  }
  void convert(const YamlNode& node, const std::string& path, bool& value) {
    if (!is_plain(node) || (node.text != "true" && node.text != "false")) {
      return wrong(node, path, "true or false");
    }
    value = node.text == "true";
  }
  template <Number T>
  void convert(const YamlNode& node, const std::string& path, T& value) {
    std::string_view text = is_plain(node) ? std::string_view(node.text) : std::string_view();
    const bool hexadecimal = text.substr(0, 2) == "0x";
    if (hexadecimal) text.remove_prefix(2);
    const char* end = text.data() + text.size();
    T number = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, number, hexadecimal ? 16 : 10);
    // No leading zeros: to YAML 1.1 they mean octal.
    const bool octal = !hexadecimal && text.size() > 1 && text[0] == '0';
    if (text.empty() || error != std::errc{} || stop != end || octal) {
      return wrong(node, path, concat("an integer from 0 to ", std::numeric_limits<T>::max()));
    }
    value = number;
  }
  template <std::floating_point T>
  void convert(const YamlNode& node, const std::string& path, T& value) {
    const std::string_view text = is_plain(node) ? std::string_view(node.text) : std::string_view();
    const char* end = text.data() + text.size();
    T number = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool finite = number - number == 0;
    if (text.empty() || error != std::errc{} || stop != end || !finite) {
      return wrong(node, path, "a finite number");
    }
    value = number;
  }
  template <Named T>
  void convert(const YamlNode& node, const std::string& path, T& value) {
    const auto& names = EnumNames<T>::names;
    const auto* found = std::find(names.begin(), names.end(), node.text);
    if (node.kind != YamlNode::Kind::scalar || found == names.end()) {
      std::string wanted = "one of";
      for (const std::string_view name : names) wanted += " " + std::string(name);
      return wrong(node, path, wanted);
    }
    value = static_cast<T>(found - names.begin());
  }
  void convert(const YamlNode& node, const std::string& path, DType& value) {
    for (std::size_t i = 0; i < dtype_values.size(); ++i) {
      if (node.kind == YamlNode::Kind::scalar && node.text == dtype_spellings[i]) {
        value = dtype_values[i];
        return;
      }
    }
    wrong(node, path, "one of F32 F16 Q8_0 I32 BF16");
  }
  template <typename T>
  void convert(const YamlNode& node, const std::string& path, std::optional<T>& value) {
    T inner = {};
    convert(node, path, inner);
    value = inner;
  }
  template <typename T>
  void convert(const YamlNode& node, const std::string& path, std::vector<T>& value) {
    if (node.kind != YamlNode::Kind::sequence || node.children.size() > items_max) {
      return wrong(node, path, concat("a list of at most ", items_max));
    }
    value.resize(node.children.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      convert(node.children[i], concat(path, "[", i, "]"), value[i]);
    }
  }
  template <typename T>
  requires requires(MapReader& reader, T& value) { fields(reader, value); }
  void convert(const YamlNode& node, const std::string& path, T& value) {
    if (node.kind != YamlNode::Kind::map) return wrong(node, path, "a map");
    MapReader reader{node, path, findings_};
    fields(reader, value);
    reader.finish();
  }

  const YamlNode& node_;
  std::string path_;
  Findings& findings_;
  std::set<std::string, std::less<>> asked_;
  std::set<std::string> seen_;
};

/// Writes structs as block maps; those that fit a line (tensors, ports, memory) as flow maps.
class MapWriter {
 public:
  explicit MapWriter(std::string indent) : indent_(std::move(indent)) {}

  template <typename T>
  void operator()(const char* key, T& value) {
    put(key, value);
  }
  template <typename T>
  void optional(const char* key, T& value) {
    if (!(value == T{})) put(key, value);
  }
  void hex(const char* key, std::uint64_t& value) {
    char buffer[24];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, 16);
    line(key, " 0x" + std::string(buffer, end.ptr));
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void line(const char* key, const std::string& text) { out_ += indent_ + key + ":" + text + "\n"; }

  static std::string text(const std::string& value) { return json_string(value); }
  static std::string text(bool value) { return value ? "true" : "false"; }
  template <Number T>
  static std::string text(T value) {
    return number_text(value);
  }
  template <std::floating_point T>
  static std::string text(T value) {
    return number_text(value);
  }
  template <Named T>
  static std::string text(T value) {
    return std::string(EnumNames<T>::names[static_cast<std::size_t>(value)]);
  }
  static std::string text(DType value) { return dtype_name(value); }
  template <typename T>
  static std::string text(const std::optional<T>& value) {
    return text(*value);
  }

  template <typename T>
  requires requires(const T& value) { text(value); }
  void put(const char* key, T& value) { line(key, " " + text(value)); }
  template <typename T>
  requires requires(const T& value) { text(value); }
  void put(const char* key, std::vector<T>& values) {
    std::string list;
    for (const T& value : values) list += (list.empty() ? "" : ", ") + text(value);
    line(key, " [" + list + "]");
  }
  template <typename T>
  requires requires(MapWriter& writer, T& value) { fields(writer, value); }
  void put(const char* key, T& value) {
    MapWriter inner{indent_ + "  "};
    fields(inner, value);
    out_ += indent_ + key + ":\n" + inner.take();
  }
  template <typename T>
  requires requires(MapWriter& writer, T& value) { fields(writer, value); }
  void put(const char* key, std::vector<T>& values) {
    if (values.empty()) return line(key, " []");
    out_ += indent_ + key + ":\n";
    for (T& value : values) {
      MapWriter inner{indent_ + "    "};
      fields(inner, value);
      std::string item = inner.take();
      if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, Port> ||
                    std::is_same_v<T, MemoryLine>) {
        out_ += indent_ + "  - {" + flow(item) + "}\n";
      } else {
        item[indent_.size() + 2] = '-';
        out_ += item;
      }
    }
  }
  /// Turns the lines of a block map of scalars into "key: value, key: value".
  static std::string flow(const std::string& block) {
    std::string out;
    std::size_t at = 0;
    while (at < block.size()) {
      const std::size_t first = block.find_first_not_of(' ', at);
      const std::size_t end = block.find('\n', first);
      out += (out.empty() ? "" : ", ") + block.substr(first, end - first);
      at = end + 1;
    }
    return out;
  }

  std::string indent_;
  std::string out_;
};

template <Named T>
std::string_view spelling(T value) {
  return EnumNames<T>::names[static_cast<std::size_t>(value)];
}

}   // namespace

std::optional<Manifest> read_manifest(std::string_view text, Findings& findings) {
  const std::size_t errors = findings.errors();
  const auto tree = read_yaml(text, manifest_file);
  if (tree.has_error()) {
    findings.add(Code::manifest_malformed, manifest_file, "", tree.error().message);
    return std::nullopt;
  }
  if (tree->kind != YamlNode::Kind::map) {
    findings.add(Code::manifest_malformed, manifest_file, "", "the manifest is not a map");
    return std::nullopt;
  }
  Manifest manifest;
  MapReader reader{*tree, "", findings};
  fields(reader, manifest);
  reader.finish();
  if (findings.errors() != errors) return std::nullopt;
  return manifest;
}

std::string write_manifest(const Manifest& manifest) {
  Manifest copy = manifest;   // the fields are written once, for reading: they take references
  MapWriter writer{""};
  fields(writer, copy);
  return writer.take();
}

std::string_view name_of(SectionKind kind) {
  return spelling(kind);
}
std::string_view name_of(GraphKind kind) {
  return spelling(kind);
}
std::string_view name_of(Engine engine) {
  return spelling(engine);
}
std::string_view name_of(Processor processor) {
  return spelling(processor);
}
std::string_view name_of(ChipMode mode) {
  return spelling(mode);
}
std::string_view name_of(TaskKind task) {
  return spelling(task);
}

}   // namespace duet::device
