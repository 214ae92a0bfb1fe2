// every_key_test.cpp: each key of full examples is removed, renamed, doubled and retyped in turn.
#include "config/config.hpp"
#include "config/key_table.hpp"
#include "tests/config/texts.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace duet::config::test {
namespace {

/// A key in an example that has each on a line of its own, and list items on further lines.
struct Place {
  std::string path;      // "models[0].alias"
  std::string pattern;   // "models[].alias"
  std::string name;
  std::size_t line = 0;   // index
  std::size_t end = 0;    // of its value: index past the last line
  std::size_t indent = 0;
};

std::size_t indent_of(const std::string& line) {
  return line.find_first_not_of(' ');
}

/// All keys of an example, from its indentation alone: independent of the code under test.
std::vector<Place> places_of(const std::vector<std::string>& lines) {
  std::vector<Place> places;
  std::vector<Place> open;
  std::size_t item = 0;   // models seen
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t indent = indent_of(lines[i]);
    while (!open.empty() && open.back().indent >= indent) open.pop_back();
    if (lines[i] == "  -") {
      Place model = open.back();
      model.path += "[" + std::to_string(item++) + "]";
      model.pattern += "[]";
      model.indent = indent;
      open.push_back(model);
      continue;
    }
    const std::size_t colon = lines[i].find(':');
    if (lines[i][indent] == '-' || colon == std::string::npos) continue;
    Place place;
    place.name = lines[i].substr(indent, colon - indent);
    place.path = (open.empty() ? "" : open.back().path + ".") + place.name;
    place.pattern = (open.empty() ? "" : open.back().pattern + ".") + place.name;
    place.line = i;
    place.end = i + 1;
    while (place.end < lines.size() && indent_of(lines[place.end]) > indent) ++place.end;
    place.indent = indent;
    places.push_back(place);
    open.push_back(place);
  }
  return places;
}

struct Example {
  std::string file;
  std::vector<std::string> lines;
  std::vector<Place> places;
};

const std::vector<Example>& examples() {
  static const std::vector<Example> all = [] {
    std::vector<Example> list;
    for (const std::string file : {"full.yaml", "sessions.yaml"}) {
      Example example{file, lines_of(read_source("tests/config/data/" + file)), {}};
      example.places = places_of(example.lines);
      list.push_back(std::move(example));
    }
    return list;
  }();
  return all;
}

const Key* key_at(const Place& place) {
  const std::size_t dot = place.pattern.rfind('.');
  return dot == std::string::npos
             ? find_key("", place.pattern)
             : find_key(place.pattern.substr(0, dot), place.pattern.substr(dot + 1));
}

std::vector<std::string> without(const Example& example, const Place& place) {
  std::vector<std::string> lines = example.lines;
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(place.line),
              lines.begin() + static_cast<std::ptrdiff_t>(place.end));
  return lines;
}

void expect(const std::vector<std::string>& lines, const Example& example, const std::string& key,
            std::size_t line, const char* what) {
  const LoadResult result = parse_config(joined(lines), example.file);
  BOOST_TEST(!result.config.has_value(), example.file << ": " << key << " " << what);
  const Finding* error = find(result.errors, key);
  BOOST_REQUIRE_MESSAGE(error != nullptr,
                        example.file << ": " << key << " " << what << printed(result.errors));
  BOOST_TEST(error->file == example.file);
  BOOST_TEST(error->at.line == line, key << " " << what << printed(result.errors));
}

/// Values of wrong types for the key, as they stand after "key:".
std::vector<std::string> wrong_values(ValueKind kind) {
  switch (kind) {
    case ValueKind::block:
    case ValueKind::blocks:
    case ValueKind::paths:
    case ValueKind::numbers:
      return {" 7", " text", "", kind == ValueKind::block ? " []" : " {}", " [[x]]"};
    case ValueKind::boolean:
      return {" yes", " 1", " True", " \"true\"", " []", " {}", ""};
    case ValueKind::number:
      return {" -1", " 1.5", " 0x1", " many", " \"1\"", " 99999999999999999999", " [1]", ""};
    case ValueKind::size:
      return {" 64KB", " -1", " big", " \"65536\"", " 9999999GiB", " {}", ""};
    case ValueKind::duration:
      return {" 30", " 30sec", " soon", " \"30s\"", " 99999h", " [30s]", ""};
    case ValueKind::choice:
      return {" other", " [combined]", " {}", " \"\"", ""};
    case ValueKind::hash:
      return {" abc", " " + std::string(64, 'G'), " [x]", ""};
    case ValueKind::name:
      return {" \"a b\"", " \"\"", " \"a\\nb\"", " [a]", " {a: b}", ""};
    case ValueKind::path:
      return {" \"\"", " \"a\\nb\"", " [a]", " {a: b}", ""};
    case ValueKind::text:
      return {" [a]", " {a: b}", " " + std::string(65, 'x'), ""};
    default:
      return {};
  }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(config_every_key)

BOOST_AUTO_TEST_CASE(the_examples_are_right_and_hold_every_key_of_the_table) {
  std::set<std::string> seen;
  for (const Example& example : examples()) {
    const LoadResult result = parse_config(joined(example.lines), example.file);
    BOOST_TEST(result.config.has_value(), printed(result.errors));
    for (const Finding& warning : result.warnings) {
      BOOST_TEST(warning.message == "has no effect in this version", printed(result.warnings));
    }
    for (const Place& place : example.places) seen.insert(place.pattern);
  }
  for (const Key& key : key_table()) {
    const bool expected = key.kind != ValueKind::reserved;
    BOOST_TEST(seen.contains(path_of(key)) == expected, path_of(key));
  }
}

BOOST_AUTO_TEST_CASE(a_required_key_that_is_missing_is_named_and_others_may_be_left_out) {
  // Keys that others in the examples need.
  const std::set<std::string> needed = {
      "device.combined_calbin", "device.plugin",   "device.profile", "device.runtime",
      "device.dialect",         "models[].calbin", "admin.socket",   "admin"};
  std::size_t required = 0;
  for (const Example& example : examples()) {
    for (const Place& place : example.places) {
      const Key* key = key_at(place);
      BOOST_REQUIRE(key != nullptr);
      const LoadResult result = parse_config(joined(without(example, place)), example.file);
      if (key->required) {
        ++required;
        const Finding* error = find(result.errors, place.path);
        BOOST_REQUIRE_MESSAGE(error != nullptr, place.path << printed(result.errors));
        BOOST_TEST(error->message.find("is missing") != std::string::npos);
        BOOST_TEST(error->at.line >= 1U);
      } else if (!needed.contains(place.pattern)) {
        BOOST_TEST(result.config.has_value(), place.path << printed(result.errors));
      }
    }
  }
  BOOST_TEST(required == 16U);
}

BOOST_AUTO_TEST_CASE(a_misspelled_key_is_named_with_what_was_meant) {
  for (const Example& example : examples()) {
    for (const Place& place : example.places) {
      std::vector<std::string> lines = example.lines;
      lines[place.line].insert(place.indent + place.name.size(), "x");
      expect(lines, example, place.path + "x", place.line + 1, "renamed");
      const LoadResult result = parse_config(joined(lines), example.file);
      const Finding* error = find(result.errors, place.path + "x");
      BOOST_TEST(error->message.find("'" + place.name + "'") != std::string::npos, error->message);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_key_that_is_there_twice_is_named_at_the_second_place) {
  for (const Example& example : examples()) {
    for (const Place& place : example.places) {
      std::vector<std::string> lines = example.lines;
      const std::vector<std::string> copy(lines.begin() + static_cast<std::ptrdiff_t>(place.line),
                                          lines.begin() + static_cast<std::ptrdiff_t>(place.end));
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place.end), copy.begin(),
                   copy.end());
      expect(lines, example, place.path, place.end + 1, "doubled");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_value_of_a_wrong_type_is_named) {
  std::size_t changes = 0;
  for (const Example& example : examples()) {
    for (const Place& place : example.places) {
      const Key* key = key_at(place);
      for (const std::string& value : wrong_values(key->kind)) {
        std::vector<std::string> lines = without(example, place);
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place.line),
                     std::string(place.indent, ' ') + place.name + ":" + value);
        const LoadResult result = parse_config(joined(lines), example.file);
        BOOST_TEST(!result.config.has_value(), place.path << ":" << value);
        const bool named =
            std::any_of(result.errors.begin(), result.errors.end(), [&](const Finding& finding) {
              return finding.at.line == place.line + 1 &&
                     (finding.key == place.path || finding.key.starts_with(place.path + "["));
            });
        BOOST_TEST(named, place.path << ":" << value << printed(result.errors));
        ++changes;
      }
    }
  }
  BOOST_TEST(changes > 400U);
}

BOOST_AUTO_TEST_CASE(a_number_beyond_either_bound_is_named_and_the_bounds_are_taken) {
  for (const Example& example : examples()) {
    for (const Place& place : example.places) {
      const Key* key = key_at(place);
      const bool is_duration = key->kind == ValueKind::duration;
      if (!is_duration && key->kind != ValueKind::number && key->kind != ValueKind::size) continue;
      const std::string unit = is_duration ? "ms" : "";
      const auto with = [&](std::uint64_t value) {
        std::vector<std::string> lines = example.lines;
        lines[place.line] =
            std::string(place.indent, ' ') + place.name + ": " + std::to_string(value) + unit;
        return lines;
      };
      const auto in_words = [&](std::uint64_t value) {
        const LoadResult result = parse_config(joined(with(value)), example.file);
        const Finding* error = find(result.errors, place.path);
        return error != nullptr && error->message.starts_with("must be " + describe(*key));
      };
      expect(with(key->max + key->step), example, place.path, place.line + 1, "too large");
      if (key->min > 0) {
        expect(with(key->min - key->step), example, place.path, place.line + 1, "too small");
      }
      // Rules between keys may still object.
      BOOST_TEST(!in_words(key->min), place.path);
      BOOST_TEST(!in_words(key->max), place.path);
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_of_later_versions_are_refused_with_a_reason) {
  std::size_t reserved = 0;
  for (const Key& key : key_table()) {
    if (key.kind != ValueKind::reserved) continue;
    ++reserved;
    std::vector<std::string> lines = examples()[0].lines;
    const auto block = std::find(lines.begin(), lines.end(), std::string(key.parent) + ":");
    BOOST_REQUIRE(block != lines.end());
    const auto line = static_cast<std::size_t>(block - lines.begin()) + 1;
    lines.insert(block + 1, "  " + std::string(key.name) + ": true");
    expect(lines, examples()[0], path_of(key), line + 1, "reserved");
  }
  BOOST_TEST(reserved == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::config::test
