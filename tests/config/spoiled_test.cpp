// spoiled_test.cpp: configurations that are wrong in one way each: file, line, key and advice.
#include "config/config.hpp"
#include "config/limits.hpp"
#include "tests/config/texts.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace duet::config::test {
namespace {

constexpr const char* base =             // line
    "schema: calculet-dual-model/v1\n"   // 1
    "device:\n"                          // 2
    "  type: emulated\n"                 // 3
    "  expected_chips: 2\n"              // 4
    "  combined_calbin: package\n"       // 5
    "models:\n"                          // 6
    "  - alias: model-a\n"               // 7
    "    chip_id: 0\n"                   // 8
    "    context_limit: 4096\n"          // 9
    "  - alias: model-b\n"               // 10
    "    chip_id: 1\n"                   // 11
    "http:\n"                            // 12
    "  address: 127.0.0.1\n"             // 13
    "  port: 8080\n"                     // 14
    "security:\n"                        // 15
    "  trusted_signers: [first.pub]\n"   // 16
    "runtime:\n"                         // 17
    "  threads: 2\n";                    // 18

struct Spoiled {
  const char* what;
  std::string from;   // of the base; "" = the whole file
  std::string to;
  std::uint32_t line;
  std::string key;
  std::string advice;   // part of the message
};

const std::vector<Spoiled>& spoiled_files() {
  static const std::vector<Spoiled> all = {
      {"another schema", "model/v1", "model/v2", 1, "schema", "must be calculet-dual-model/v1"},
      {"a type of its own", "type: emulated", "type: usb", 3, "device.type", "pcie or emulated"},
      {"a misspelled key", "expected_chips", "expected_chip", 4, "device.expected_chip",
       "did you mean 'expected_chips'?"},
      {"a dash for an underscore", "    chip_id: 1", "    chip-id: 1", 11, "models[1].chip-id",
       "did you mean 'chip_id'?"},
      {"a key of another block", "  threads: 2", "  port: 2", 18, "runtime.port",
       "it belongs below 'http'"},
      {"a dotted key", "runtime:\n  threads: 2", "runtime.threads: 2", 17, "runtime.threads",
       "it belongs below 'runtime'"},
      {"a key nobody knows", "  port: 8080", "  port: 8080\n  wings: 2", 15, "http.wings",
       "docs/configuration.md"},
      {"a doubled key", "  port: 8080", "  port: 8080\n  port: 8081", 15, "http.port",
       "first in line 14"},
      {"a text for a number", "port: 8080", "port: http", 14, "http.port",
       "a whole number from 0 to 65535, not 'http'"},
      {"a quoted number", "port: 8080", "port: \"8080\"", 14, "http.port", "in quotes"},
      {"a port too large", "port: 8080", "port: 65536", 14, "http.port", "0 to 65535"},
      {"an octal number", "port: 8080", "port: 010", 14, "http.port", "whole number"},
      {"nothing", "port: 8080", "port:", 14, "http.port", "not nothing"},
      {"a list for a block", "runtime:\n  threads: 2", "runtime: [threads]", 17, "runtime",
       "must be a block of keys, not a list"},
      {"an empty block", "runtime:\n  threads: 2", "runtime:", 17, "runtime", "not nothing"},
      {"a single path for a list", "[first.pub]", "first.pub", 16, "security.trusted_signers",
       "a list of 1 to 64 paths"},
      {"an empty list", "[first.pub]", "[]", 16, "security.trusted_signers", "1 to 64"},
      {"a block in a list of paths", "[first.pub]", "[first.pub, {a: b}]", 16,
       "security.trusted_signers[1]", "not a block of keys"},
      {"no schema", "schema: calculet-dual-model/v1\n", "", 1, "schema", "is missing"},
      {"no package", "  combined_calbin: package\n", "", 2, "device.combined_calbin", "is missing"},
      {"no chip", "    chip_id: 1\n", "", 10, "models[1].chip_id", "is missing"},
      {"no alias", "alias: model-b\n    chip_id", "chip_id", 10, "models[1].alias", "is missing"},
      {"an alias with a blank", "model-b", "model b", 10, "models[1].alias", "letters, digits"},
      {"the same alias twice", "model-b", "model-a", 10, "models[1].alias", "of models[0], too"},
      {"the same chip twice", "chip_id: 1", "chip_id: 0", 11, "models[1].chip_id",
       "a chip holds one model"},
      {"a chip that is not there", "expected_chips: 2", "expected_chips: 1", 11,
       "models[1].chip_id", "below device.expected_chips, which is 1"},
      {"a third model", "http:", "  - alias: model-c\n    chip_id: 1\nhttp:", 12, "models[2]",
       "at most 2 models"},
      {"a model that is a text", "  - alias: model-b\n    chip_id: 1\n", "  - model-b\n", 10,
       "models[1]", "a block of keys, not 'model-b'"},
      {"a queue shorter than a prompt", "context_limit: 4096",
       "context_limit: 4096\n    max_waiting_prompt_tokens: 4095", 10,
       "models[0].max_waiting_prompt_tokens", "at least context_limit, which is 4096"},
      {"a queue that outlasts its requests", "context_limit: 4096",
       "queue_timeout: 20s\n    request_timeout: 10s", 9, "models[0].queue_timeout",
       "request_timeout"},
      {"more jobs than sequences", "context_limit: 4096", "max_inflight: 2\n    max_sequences: 1",
       10, "models[0].max_sequences", "max_inflight"},
      {"a duration without a unit", "runtime:", "runtime:\n  stop_deadline: 30", 18,
       "runtime.stop_deadline", "with ms, s, m or h"},
      {"a part of a second", "runtime:", "runtime:\n  stop_deadline: 1500ms", 18,
       "runtime.stop_deadline", "whole seconds"},
      {"prefill classes the wrong way round",
       "runtime:", "scheduling:\n  short_prefill_tokens: 5000\nruntime:", 18,
       "scheduling.short_prefill_tokens", "must not be above medium_prefill_tokens (4096)"},
      {"stream marks the wrong way round", "  port: 8080",
       "  limits:\n    stream_high_bytes: 16KiB", 15, "http.limits.stream_high_bytes",
       "must be below"},
      {"a host name", "127.0.0.1", "example.org", 13, "http.address", "IPv4 or IPv6 address"},
      {"an address with a port", "127.0.0.1", "127.0.0.1:80", 13, "http.address",
       "without brackets or port"},
      {"open to all without keys", "127.0.0.1", "0.0.0.0", 13, "http.address",
       "allow_anonymous: true"},
      {"nowhere to listen", "127.0.0.1", "\"\"", 13, "http.address", "http.unix_socket"},
      {"a socket path that no kernel takes", "  port: 8080",
       "  unix_socket: /" + std::string(107, 's'), 14, "http.unix_socket", "1 to 107 bytes"},
      {"one path for two sockets", "runtime:",
       "admin:\n  socket: /run/s\nruntime:\n  threads: 1\nlog:", 18, "admin.socket", ""},
      {"users of no socket", "runtime:", "admin:\n  allow_uid: [0]\nruntime:", 18,
       "admin.allow_uid", "admin.socket"},
      {"a plug-in nobody loads", "type: emulated", "type: emulated\n  plugin: p.so", 4,
       "device.plugin", "without 'runtime: plugin'"},
      {"no plug-in to load", "type: emulated", "type: pcie\n  runtime: plugin", 2, "device.plugin",
       "is missing"},
      {"a profile of a real board", "type: emulated", "type: pcie\n  profile: combined", 4,
       "device.profile", "runtime: emulator"},
      {"a profile that YAML reads as nothing", "type: emulated", "type: emulated\n  profile: null",
       4, "device.profile", "\"null\" (in quotes)"},
      {"answers for a board that computes", "type: emulated", "type: emulated\n  faults: f.yaml", 4,
       "device.faults", "has no effect with 'profile: combined'"},
      {"answers for a real board", "type: emulated", "type: pcie\n  faults: f.yaml", 4,
       "device.faults", "without 'runtime: emulator'"},
      {"one package and another", "context_limit: 4096", "calbin: own", 5, "device.combined_calbin",
       "excludes 'calbin'"},
      {"own packages on a combined board", "combined_calbin: package", "dialect: combined\nx: 1", 5,
       "device.dialect", "sessions"},
      {"a tab", "  port: 8080", "\tport: 8080", 14, "port", "tabs are not allowed"},
      {"an anchor", "port: 8080", "port: &p 8080", 14, "http.port", "anchors are not allowed"},
      {"an alias of YAML", "threads: 2", "threads: *t", 18, "runtime.threads", ""},
      {"a tag", "port: 8080", "port: !!int 8080", 14, "http.port", "tags are not allowed"},
      {"a second document", "runtime:\n  threads: 2\n", "---\nruntime:\n  threads: 2\n", 17, "",
       "a second document begins here"},
      {"a bracket that stays open", "[first.pub]", "[first.pub", 17, "security.trusted_signers[1]",
       "is not YAML"},
      {"a colon too many", "alias: model-a", "alias: model: a", 7, "models[0]", "is not YAML"},
      {"a key that is a list", "port: 8080", "[a]: 8080", 14, "http", "a key must be a plain text"},
      {"a control character", "8080", "8080\x01", 14, "port", "control characters"},
      {"a line too long", "model-a", std::string(5000, 'a'), 7, "alias", "longer than 4096 bytes"},
      {"bytes that are not UTF-8", "model-a", "model-\xff", 0, "", "UTF-8"},
      {"an empty file", "", "", 1, "", "holds nothing"},
      {"a list for a file", "", "- a\n- b\n", 1, "", "not a list"},
      {"a text for a file", "", "calculet\n", 1, "", "not 'calculet'"},
      {"too deep", "", "http: [[[[[[[[1]]]]]]]]\n", 1, "http[0][0][0][0][0][0][0]",
       "nested deeper than 8 levels"},
      {"thousands of brackets", "", "a: " + std::string(4000, '[') + "\n", 1, "a[0]",
       "a key must be a plain text"},
  };
  return all;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(config_spoiled)

BOOST_AUTO_TEST_CASE(the_base_is_right) {
  const auto result = parse_config(base, "base.yaml");
  BOOST_TEST(result.config.has_value(), printed(result.errors));
}

// at least 25, each with file, line and key.
BOOST_AUTO_TEST_CASE(each_spoiled_file_is_refused_at_its_line_and_key) {
  for (const Spoiled& test : spoiled_files()) {
    std::string text = test.from.empty() ? test.to : replaced(base, test.from, test.to);
    // Three of them need a second change far from the first.
    const std::string what = test.what;
    if (what == "one path for two sockets") {
      text = replaced(replaced(text, "log:\n  threads: 2\n", ""), "  port: 8080",
                      "  unix_socket: /run/s");
    }
    if (what == "own packages on a combined board") {
      text = replaced(replaced(replaced(text, "x: 1\n", ""), "context_limit: 4096", "calbin: own"),
                      "    chip_id: 1", "    chip_id: 1\n    calbin: other");
    }
    if (what == "an alias of YAML") text = replaced(text, "port: 8080", "port: &t 8080");
    const auto result = parse_config(text, "spoiled.yaml");
    BOOST_TEST(!result.config.has_value(), test.what);
    const Finding* error = find(result.errors, test.key);
    BOOST_REQUIRE_MESSAGE(error != nullptr, test.what << printed(result.errors));
    BOOST_TEST(error->file == "spoiled.yaml");
    BOOST_TEST(error->at.line == test.line, test.what << printed(result.errors));
    BOOST_TEST(error->message.find(test.advice) != std::string::npos,
               test.what << ": " << error->message);
    BOOST_TEST((error->at.line == 0) == (error->at.column == 0));
  }
  BOOST_TEST(spoiled_files().size() >= 50U);
}

BOOST_AUTO_TEST_CASE(all_errors_are_reported_at_once_in_the_order_of_the_lines) {
  std::string text = replaced(base, "type: emulated", "tpye: emulated");
  text = replaced(text, "chip_id: 1", "chip_id: 9");
  text = replaced(text, "port: 8080", "port: x");
  text = replaced(text, "threads: 2", "threads: 0");
  const auto result = parse_config(text, "many.yaml");
  std::vector<std::string> keys;
  for (const Finding& error : result.errors) keys.push_back(error.key);
  const std::vector<std::string> expected = {"device.tpye", "device.type", "models[1].chip_id",
                                             "http.port", "runtime.threads"};
  BOOST_TEST(keys == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_file_of_nothing_but_errors_gives_a_bounded_report) {
  std::string text = base;
  for (int i = 0; i < 3000; ++i) text += "unknown" + std::to_string(i) + ": 1\n";
  const auto result = parse_config(text, "many.yaml");
  BOOST_TEST(result.errors.size() == limits::findings_max + 1);
}

BOOST_AUTO_TEST_CASE(more_values_or_bytes_than_the_bounds_are_refused) {
  std::string flat = "http: [";
  for (std::size_t i = 0; i < limits::nodes_max; ++i) flat += i % 500 == 0 ? "\n 1," : "1,";
  const auto crowded = parse_config(flat + "1]\n", "crowded.yaml");
  BOOST_REQUIRE(!crowded.errors.empty());
  BOOST_TEST(crowded.errors[0].message.find("keys and values") != std::string::npos);
  const auto large = parse_config(std::string(limits::file_bytes_max + 1, '\n'), "large.yaml");
  BOOST_REQUIRE(large.errors.size() == 1U);
  BOOST_TEST(large.errors[0].message.find("262145 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_report_line_is_one_line_whatever_the_file_holds) {
  const std::string text = std::string(base) + "\"a\\nb\\e[31m\": 1\nlog:\n  level: \"x\\ny\"\n";
  const auto result = parse_config(text, "dir\n/spoiled.yaml");
  BOOST_REQUIRE(result.errors.size() == 2U);
  for (const Finding& error : result.errors) {
    for (const char c : to_string(error)) BOOST_TEST(static_cast<unsigned char>(c) >= 0x20U);
  }
  // The scanner's own message repeats the byte that it stopped at.
  const auto cut = parse_config("schema: \"calculet\\", "cut.yaml");
  BOOST_REQUIRE(cut.errors.size() == 1U);
  for (const char c : to_string(cut.errors[0])) BOOST_TEST(static_cast<unsigned char>(c) >= 0x20U);
  BOOST_TEST(to_string(result.errors[0]).starts_with("dir?/spoiled.yaml:19:1: 'a\\x0ab"));
}

BOOST_AUTO_TEST_CASE(line_ends_of_other_systems_and_a_byte_order_mark_are_taken) {
  std::string text;
  for (const char c : std::string(base))
    text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto result = parse_config("\xEF\xBB\xBF" + text, "windows.yaml");
  BOOST_TEST(result.config.has_value(), printed(result.errors));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::config::test
