// yaml_tree.cpp: builds the bounded tree from yaml-cpp's events.
#include "device/package/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace duet::device {
namespace {

/// Ends the parse from inside an event; caught in read_yaml.
struct Refused {
  std::string what;
  std::uint32_t line;
};

std::uint32_t line_of(const YAML::Mark& mark) {
  return static_cast<std::uint32_t>(mark.line + 1);
}

/// Keeps the open collections on a stack of values, so that depth costs no recursion of ours.
class TreeBuilder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    YamlNode node;
    node.line = line_of(mark);
    put(std::move(node), mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{"aliases are not allowed", line_of(mark)};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (tag != "?" && tag != "!" && !tag.empty()) {
      throw Refused{"tags are not allowed", line_of(mark)};
    }
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.is_quoted = tag == "!";
    node.line = line_of(mark);
    node.text = value;
    put(std::move(node), mark);
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

 private:
  struct Open {
    YamlNode node;
    bool has_key = false;   ///< map: the next node is the value of keys.back().
  };

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) throw Refused{"anchors are not allowed", line_of(mark)};
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    if (tag != "?" && !tag.empty()) throw Refused{"tags are not allowed", line_of(mark)};
    if (stack_.size() >= yaml_limits::depth_max) {
      throw Refused{concat("nested deeper than ", yaml_limits::depth_max), line_of(mark)};
    }
    if (!stack_.empty() && stack_.back().node.kind == YamlNode::Kind::map &&
        !stack_.back().has_key) {
      throw Refused{"a key must be a plain text", line_of(mark)};
    }
    Open next;
    next.node.kind = kind;
    next.node.line = line_of(mark);
    stack_.push_back(std::move(next));
  }

  void close() {
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    YAML::Mark mark = YAML::Mark::null_mark();
    mark.line = static_cast<int>(node.line) - 1;
    put(std::move(node), mark);
  }

  void put(YamlNode node, const YAML::Mark& mark) {
    if (++nodes_ > yaml_limits::nodes_max) {
      throw Refused{concat("more than ", yaml_limits::nodes_max, " values"), line_of(mark)};
    }
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::map && !parent.has_key) {
      if (node.kind != YamlNode::Kind::scalar) {
        throw Refused{"a key must be a plain text", line_of(mark)};
      }
      parent.node.keys.push_back(std::move(node.text));
      parent.has_key = true;
      return;
    }
    parent.has_key = false;
    parent.node.children.push_back(std::move(node));
  }

  std::vector<Open> stack_;
  YamlNode root_;
  std::uint32_t nodes_ = 0;
};

/// Cheap checks before the library sees the text: what could make it slow or deep.
Result<void> check_text(std::string_view text, const std::string& name) {
  if (text.size() > yaml_limits::bytes_max) {
    return failure(name, ": ", text.size(), " bytes are more than the ", yaml_limits::bytes_max,
                   " that a manifest may have");
  }
  if (!is_utf8(text)) return failure(name, ": is not UTF-8");
  std::uint32_t line = 1;
  std::size_t line_start = 0;
  std::uint32_t brackets = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\n') {
      ++line;
      line_start = i + 1;
    } else if (byte < 0x20 || byte == 0x7f) {
      return failure(name, ": line ", line, ": tabs and other control characters are not allowed");
    } else if (i - line_start >= yaml_limits::line_bytes_max) {
      return failure(name, ": line ", line, " is longer than ", yaml_limits::line_bytes_max,
                     " bytes");
    } else if (byte == '[' || byte == '{') {
      if (++brackets > yaml_limits::brackets_max) {
        return failure(name, ": more than ", yaml_limits::brackets_max, " brackets");
      }
    }
  }
  return {};
}

}   // namespace

Result<YamlNode> read_yaml(std::string_view text, const std::string& name) {
  const auto checked = check_text(text, name);
  if (checked.has_error()) return checked.error();
  try {
    std::istringstream input{std::string(text)};
    YAML::Parser parser{input};
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) return failure(name, ": holds no YAML document");
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) return failure(name, ": holds more than one document");
    return builder.take();
  } catch (const Refused& refused) {
    return failure(name, ": line ", refused.line, ": ", refused.what);
  } catch (const YAML::Exception& error) {
    return failure(name, ": line ", error.mark.line + 1, ": ", error.msg);
  }
}

}   // namespace duet::device
