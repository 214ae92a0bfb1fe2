// manifest_schema_test.cpp: the JSON Schema of the manifest against the manifest's reader.
#include "device/package/manifest_schema.hpp"
#include "device/package/manifest_yaml.hpp"
#include "device/package/yaml_tree.hpp"
#include "tests/device/package/package_fixture.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <regex>
#include <stdexcept>

namespace duet::device::test {
namespace {

namespace json = boost::json;

const json::value& schema() {
  static const json::value value = json::parse(manifest_json_schema());
  return value;
}

/// What YAML 1.2 makes of a node.
json::value to_json(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::map) {
    json::object out;
    for (std::size_t i = 0; i < node.keys.size(); ++i)
      out[node.keys[i]] = to_json(node.children[i]);
    return out;
  }
  if (node.kind == YamlNode::Kind::sequence) {
    json::array out;
    for (const YamlNode& child : node.children) out.push_back(to_json(child));
    return out;
  }
  if (node.kind == YamlNode::Kind::null) return nullptr;
  if (node.is_quoted) return json::string(node.text);
  if (node.text == "true" || node.text == "false") return node.text == "true";
  const char* end = node.text.data() + node.text.size();
  const bool hexadecimal = node.text.rfind("0x", 0) == 0;
  std::uint64_t number = 0;
  const char* from = node.text.data() + (hexadecimal ? 2 : 0);
  if (std::from_chars(from, end, number, hexadecimal ? 16 : 10).ptr == end) return number;
  double real = 0;
  if (std::from_chars(node.text.data(), end, real).ptr == end) return real;
  return json::string(node.text);
}

bool matches(const json::string& text, const json::string& pattern) {
  static std::map<std::string, std::regex> known;
  const std::string key = pattern.c_str();
  const auto [at, fresh] = known.try_emplace(key);
  if (fresh) at->second = std::regex(key, std::regex::ECMAScript);
  return std::regex_search(text.c_str(), at->second);
}

std::uint64_t natural(const json::value& value) {
  return value.is_uint64() ? value.get_uint64() : static_cast<std::uint64_t>(value.as_int64());
}

bool is_natural(const json::value& value) {
  return value.is_uint64() || (value.is_int64() && value.get_int64() >= 0);
}

bool is_type(const json::value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  if (type == "number") return value.is_number();
  throw std::logic_error("type " + std::string(type));
}

std::string error_of(const json::object& rules, const json::value& value, const std::string& path);

std::string object_error(const json::object& rules, const json::object& value,
                         const std::string& path) {
  const json::object& known = rules.at("properties").as_object();
  for (const json::value& key : rules.at("required").as_array()) {
    if (value.if_contains(key.as_string()) == nullptr)
      return path + ": misses " + key.as_string().c_str();
  }
  for (const auto& [key, member] : value) {
    const json::value* rule = known.if_contains(key);
    if (rule == nullptr) return path + ": the key " + std::string(key);   // additionalProperties
    const std::string error = error_of(rule->as_object(), member, path + "/" + std::string(key));
    if (!error.empty()) return error;
  }
  return "";
}

/// The first thing that the schema does not allow; empty: valid. Knows the keywords that the schema
/// uses and throws for others, so that none is passed over.
std::string error_of(const json::object& rules, const json::value& value, const std::string& path) {
  for (const auto& [keyword, rule] : rules) {
    bool good = true;
    if (keyword == "type") {
      good = is_type(value, rule.as_string());
    } else if (keyword == "enum") {
      const json::array& list = rule.as_array();
      good =
          std::any_of(list.begin(), list.end(), [&](const json::value& v) { return v == value; });
    } else if (keyword == "const") {
      good = rule == value;
    } else if (keyword == "pattern") {
      good = value.is_string() && matches(value.get_string(), rule.as_string());
    } else if (keyword == "minimum") {
      good = is_natural(value) && natural(value) >= natural(rule);
    } else if (keyword == "maximum") {
      good = is_natural(value) && natural(value) <= natural(rule);
    } else if (keyword == "multipleOf") {
      good = is_natural(value) && natural(value) % natural(rule) == 0;
    } else if (keyword == "maxLength") {
      good = value.is_string() && value.get_string().size() <= natural(rule);
    } else if (keyword == "minItems") {
      good = value.is_array() && value.get_array().size() >= natural(rule);
    } else if (keyword == "maxItems") {
      good = value.is_array() && value.get_array().size() <= natural(rule);
    } else if (keyword == "additionalProperties") {
      good = rule == json::value(false);
    } else if (keyword != "$schema" && keyword != "$id" && keyword != "title" &&
               keyword != "description" && keyword != "properties" && keyword != "required" &&
               keyword != "items") {
      throw std::logic_error("keyword " + std::string(keyword));
    }
    if (!good) return path + ": " + std::string(keyword);
  }
  if (rules.contains("properties")) return object_error(rules, value.as_object(), path);
  if (const json::value* items = rules.if_contains("items")) {
    for (const json::value& item : value.as_array()) {
      const std::string error = error_of(items->as_object(), item, path + "[]");
      if (!error.empty()) return error;
    }
  }
  return "";
}

std::string schema_error(const json::value& manifest) {
  return error_of(schema().as_object(), manifest, "");
}

/// JSON is YAML; the reader bounds the length of a line.
std::string yaml_of(const json::value& manifest) {
  std::string out;
  bool quoted = false;
  for (const char c : json::serialize(manifest)) {
    if (c == '"') quoted = !quoted;   // no name of the fixture has a quote in it
    out += c;
    if (c == ',' && !quoted) out += '\n';
  }
  return out + "\n";
}

bool reader_takes(const json::value& manifest) {
  Findings findings;
  return read_manifest(yaml_of(manifest), findings).has_value();
}

json::value manifest_of(const std::string& directory) {
  return to_json(read_yaml(ScratchDirectory::read_file(directory + "/manifest.yaml"), "m").value());
}

/// Every map of a manifest, the first item of each list: as JSON pointers.
void collect_maps(const json::value& value, const std::string& at, std::vector<std::string>& out) {
  if (value.is_array() && !value.get_array().empty()) {
    collect_maps(value.get_array()[0], at + "/0", out);
  }
  if (!value.is_object()) return;
  out.push_back(at);
  for (const auto& [key, member] : value.get_object())
    collect_maps(member, at + "/" + std::string(key), out);
}

json::object& map_at(json::value& root, const std::string& pointer) {
  return root.at_pointer(pointer).as_object();
}

}   // namespace

BOOST_AUTO_TEST_SUITE(json_schema)

BOOST_AUTO_TEST_CASE(the_schema_beside_the_documentation_is_the_one_that_is_printed) {
  BOOST_TEST(ScratchDirectory::read_file(DUET_SOURCE_DIR "/docs/package.schema.json") ==
             manifest_json_schema());
  BOOST_TEST(schema().at("$schema").as_string() == "https://json-schema.org/draft/2020-12/schema");
}

// what these rows name stands in the manifest.
BOOST_AUTO_TEST_CASE(the_manifests_of_real_packages_are_valid) {
  BOOST_TEST(schema_error(manifest_of(tiny_package())) == "");
  BOOST_TEST(schema_error(manifest_of(DUET_BINARY_DIR "/demo-package")) == "");
}

// The schema and the reader judge every key alike: without it, with a foreign one beside it, and
// with a value of another type.
BOOST_AUTO_TEST_CASE(schema_and_reader_agree_on_every_key) {
  const json::value whole = manifest_of(tiny_package());
  BOOST_TEST_REQUIRE(reader_takes(whole));
  std::vector<std::string> maps;
  collect_maps(whole, "", maps);
  BOOST_TEST(maps.size() >= 12U);
  std::size_t keys = 0;
  std::size_t required = 0;
  for (const std::string& pointer : maps) {
    json::value foreign = whole;
    map_at(foreign, pointer)["foreign"] = 1;
    BOOST_TEST_CONTEXT("a foreign key in " << pointer) {
      BOOST_TEST(schema_error(foreign) != "");
      BOOST_TEST(!reader_takes(foreign));
    }
    json::value original = whole;
    for (const auto& [key, member] : map_at(original, pointer)) {
      BOOST_TEST_CONTEXT(pointer << "/" << std::string_view(key)) {
        json::value without = whole;
        map_at(without, pointer).erase(key);
        BOOST_TEST((schema_error(without) == "") == reader_takes(without));
        required += schema_error(without) != "";
        json::value other = whole;
        map_at(other, pointer)[key] =
            member.is_array() ? json::value(json::object()) : json::value(json::array());
        BOOST_TEST(schema_error(other) != "");
        BOOST_TEST(!reader_takes(other));
        if (member.is_number() || member.is_bool()) {
          map_at(other, pointer)[key] = "text";
          BOOST_TEST(schema_error(other) != "");
          BOOST_TEST(!reader_takes(other));
        }
      }
      ++keys;
    }
  }
  BOOST_TEST(keys > 90U);
  BOOST_TEST(required > 80U);
  BOOST_TEST(required < keys);   // some are optional, and removing those is allowed by both
}

// single values that no valid package has are outside the schema already.
BOOST_AUTO_TEST_CASE(forged_values_are_outside_the_schema) {
  const json::value whole = manifest_of(tiny_package());
  const auto with = [&](const char* pointer, const json::value& value) {
    json::value forged = whole;
    forged.at_pointer(pointer) = value;
    return schema_error(forged);
  };
  BOOST_TEST(with("/kind", "triple") == "/kind: enum");
  BOOST_TEST(with("/sections/0/chip_mask", 3) == "/sections[]/chip_mask: enum");
  BOOST_TEST(with("/graphs/0/mode", "mchip") == "/graphs[]/mode: const");
  BOOST_TEST(with("/graphs/0/calc_mchip", true) == "/graphs[]/calc_mchip: const");
  BOOST_TEST(with("/graphs/0/target_chips", {0, 1}) == "/graphs[]/target_chips: maxItems");
  BOOST_TEST(with("/sections/0/address", 4097) == "/sections[]/address: multipleOf");
  BOOST_TEST(with("/sections/0/bytes", 0) == "/sections[]/bytes: minimum");
  BOOST_TEST(with("/models/0/alias", "a b") == "/models[]/alias: pattern");
  BOOST_TEST(with("/models/0/chip", -1) == "/models[]/chip: minimum");
  BOOST_TEST(with("/models/0/chip", std::uint64_t{1} << 32) == "/models[]/chip: maximum");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
