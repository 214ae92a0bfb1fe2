// yaml_document.cpp: builds the located tree from yaml-cpp's events.
#include "config/yaml_document.hpp"

#include "config/limits.hpp"
#include "device/program/message.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace duet::config {
namespace {

using device::concat;

/// Ends the parse from inside an event; its finding is already noted.
struct Stopped {};

Location place_of(const YAML::Mark& mark) {
  return {static_cast<std::uint32_t>(std::max(mark.line, 0) + 1),
          static_cast<std::uint32_t>(std::max(mark.column, 0) + 1)};
}

/// Keeps the open collections on a stack of values, so that depth costs no recursion of ours.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, Findings& findings) : file_(file), findings_(findings) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    note_anchor(mark, anchor);
    YamlNode node;
    node.at = place_of(mark);
    put(std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    note(place_of(mark), "aliases are not allowed; write the value itself");
    YamlNode node;
    node.kind = YamlNode::Kind::refused;
    node.at = place_of(mark);
    put(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    note_anchor(mark, anchor);
    if (tag != "!") note_tag(mark, tag);   // "!" is how yaml-cpp says that it was in quotes
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.quoted = tag == "!";
    node.at = place_of(mark);
    node.text = value;
    put(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] YamlNode take() { return std::move(root_); }

  /// Where the parse is: "models[1].chip_id".
  [[nodiscard]] std::string path() const {
    std::string path;
    for (const Open& open : stack_) {
      if (open.node.kind == YamlNode::Kind::sequence) {
        path += "[" + std::to_string(open.node.items.size()) + "]";
      } else if (open.has_key) {
        path += (path.empty() ? "" : ".") + printable_key(open.key);
      }
    }
    return path;
  }

 private:
  struct Open {
    YamlNode node;
    bool has_key = false;   ///< map: the next node is the value of `key`.
    std::string key;
    Location key_at;
  };

  void note(Location at, std::string message) {
    findings_.error(file_, at, path(), std::move(message));
  }
  [[noreturn]] void stop(Location at, std::string message) {
    note(at, std::move(message));
    throw Stopped{};
  }
  void note_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    note(place_of(mark), "anchors are not allowed; write the value where it is used");
  }
  void note_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag != "?" && !tag.empty()) note(place_of(mark), "tags are not allowed; leave it out");
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    note_anchor(mark, anchor);
    if (tag != "!") note_tag(mark, tag);
    if (stack_.size() >= limits::depth_max) {
      stop(place_of(mark), concat("is nested deeper than ", limits::depth_max, " levels"));
    }
    if (!stack_.empty() && stack_.back().node.kind == YamlNode::Kind::map &&
        !stack_.back().has_key) {
      stop(place_of(mark), "a key must be a plain text");
    }
    Open next;
    next.node.kind = kind;
    next.node.at = place_of(mark);
    stack_.push_back(std::move(next));
  }

  void close() {
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    put(std::move(node));
  }

  void put(YamlNode node) {
    if (++nodes_ > limits::nodes_max) {
      stop(node.at, concat("the file holds more than ", limits::nodes_max, " keys and values"));
    }
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.has_key) {
      parent.has_key = false;
      parent.node.entries.push_back({std::move(parent.key), parent.key_at, std::move(node)});
    } else {
      if (node.kind != YamlNode::Kind::scalar) stop(node.at, "a key must be a plain text");
      parent.key = std::move(node.text);
      parent.key_at = node.at;
      parent.has_key = true;
    }
  }

  const std::string& file_;
  Findings& findings_;
  std::vector<Open> stack_;
  YamlNode root_;
  std::size_t nodes_ = 0;
};

/// Refuses whatever begins: there shall be nothing.
class NoDocument final : public YAML::EventHandler {
 public:
  struct Begun {
    Location at;
  };
  void OnDocumentStart(const YAML::Mark& mark) override { throw Begun{place_of(mark)}; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// The key that a line begins with, where it has one: for errors found before there is a tree.
std::string key_of_line(std::string_view line) {
  const auto is_edge = [](char c) { return c == ' ' || c == '\t' || c == '-'; };
  while (!line.empty() && is_edge(line.front())) line.remove_prefix(1);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return {};
  line = line.substr(0, colon);
  while (!line.empty() && is_edge(line.back())) line.remove_suffix(1);
  return device::is_plain_name(line) ? std::string(line) : std::string();
}

/// Cheap checks before the library sees the text: what could make it slow, and tabs, which it takes
/// in some places and not in others.
bool text_is_sound(std::string_view text, const std::string& file, Findings& findings) {
  if (text.size() > limits::file_bytes_max) {
    findings.error(file, {}, {},
                   concat("has ", text.size(), " bytes; a configuration has at most ",
                          limits::file_bytes_max));
    return false;
  }
  if (!device::is_utf8(text)) {
    findings.error(file, {}, {}, "is not UTF-8; save it as UTF-8 text");
    return false;
  }
  bool sound = true;
  std::uint32_t number = 1;
  for (std::size_t start = 0; start <= text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    if (line.ends_with('\r')) line.remove_suffix(1);   // files from other systems
    start = end + 1;
    const auto bad = std::find_if(line.begin(), line.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    const auto column = static_cast<std::uint32_t>(bad - line.begin() + 1);
    if (line.size() > limits::line_bytes_max) {
      findings.error(file, {number, 1}, key_of_line(line.substr(0, 256)),
                     concat("the line is longer than ", limits::line_bytes_max, " bytes"));
      sound = false;
    } else if (bad != line.end()) {
      findings.error(file, {number, column}, key_of_line(line),
                     *bad == '\t' ? "tabs are not allowed; indent with spaces"
                                  : "control characters are not allowed; remove it");
      sound = false;
    }
  }
  return sound;
}

}   // namespace

std::optional<YamlNode> read_yaml(std::string_view text, const std::string& file,
                                  Findings& findings) {
  if (!text_is_sound(text, file, findings)) return std::nullopt;
  TreeBuilder builder{file, findings};
  try {
    std::istringstream input{std::string(text)};
    YAML::Parser parser{input};
    if (!parser.HandleNextDocument(builder)) {
      findings.error(file, {1, 1}, {}, "holds nothing; docs/configuration.md has an example");
      return std::nullopt;
    }
    NoDocument nothing;
    parser.HandleNextDocument(nothing);
    return builder.take();
  } catch (const Stopped&) {
    // The builder has said why.
  } catch (const NoDocument::Begun& begun) {
    findings.error(file, begun.at, {}, "a second document begins here; a configuration is one");
  } catch (const YAML::Exception& error) {
    findings.error(file, place_of(error.mark), builder.path(),
                   concat("is not YAML: ", error.msg, "; check indentation, quotes and colons"));
  }
  return std::nullopt;
}

}   // namespace duet::config
