// keys_file_test.cpp: the file of clients' keys.
#include "config/keys_file.hpp"

#include "config/limits.hpp"
#include "tests/config/texts.hpp"
#include "tests/device/package/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

namespace duet::config::test {
namespace {

using device::test::ScratchDirectory;

constexpr const char* secret = "0123456789abcdef";

}   // namespace

BOOST_AUTO_TEST_SUITE(config_keys_file)

BOOST_AUTO_TEST_CASE(names_secrets_and_administrators_are_read) {
  Findings findings;
  const auto keys = parse_keys(
      "# clients\n\n"
      "alice 0123456789abcdef\r\n"
      "  ops\tfedcba9876543210  admin",
      "keys", findings);
  BOOST_TEST(findings.errors.empty(), printed(findings.errors));
  BOOST_REQUIRE(keys.size() == 2U);
  BOOST_TEST(keys[0].name == "alice");
  BOOST_TEST(keys[0].secret == secret);
  BOOST_TEST(!keys[0].admin);
  BOOST_TEST(keys[1].name == "ops");
  BOOST_TEST(keys[1].secret == "fedcba9876543210");
  BOOST_TEST(keys[1].admin);
}

BOOST_AUTO_TEST_CASE(a_bad_line_is_named_and_its_secret_is_not) {
  const std::string good = "alice 0123456789abcdef\n";
  struct Case {
    std::string text;
    std::uint32_t line;
  };
  const Case cases[] = {
      {"", 1},
      {"# nothing\n", 1},
      {good + "0123456789abcdeX\n", 2},
      {good + "bob 0123456789abcdeX root\n", 2},
      {good + "bob 0123456789abcdeX admin more\n", 2},
      {good + "b/b 0123456789abcdeX\n", 2},
      {good + "bob 0123456789abcdX\n", 2},
      {good + "bob 0123456789abcde\xC3\xA9X\n", 2},
      {good + "bob " + std::string(257, 'X') + "\n", 2},
      {good + "\nalice 0123456789abcdeX\n", 3},
      {good + "bob 0123456789abcdef\n", 2},
  };
  for (const Case& test : cases) {
    Findings findings;
    static_cast<void>(parse_keys(test.text, "keys", findings));
    BOOST_REQUIRE_MESSAGE(findings.errors.size() == 1U, test.text << printed(findings.errors));
    BOOST_TEST(findings.errors[0].at.line == test.line);
    BOOST_TEST(findings.errors[0].file == "keys");
    BOOST_TEST(findings.errors[0].key == "security.keys_file");
    BOOST_TEST(findings.errors[0].message.find("012345") == std::string::npos);
    BOOST_TEST(findings.errors[0].message.find("XX") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(more_keys_than_the_bound_are_an_error) {
  std::string text;
  for (std::size_t i = 0; i <= limits::keys_max; ++i) {
    text += "k" + std::to_string(i) + " secret-number-" + std::to_string(100000 + i) + "\n";
  }
  Findings findings;
  BOOST_TEST(parse_keys(text, "keys", findings).size() == limits::keys_max);
  BOOST_REQUIRE(findings.errors.size() == 1U);
  BOOST_TEST(findings.errors[0].at.line == limits::keys_max + 1);
}

BOOST_AUTO_TEST_CASE(a_file_open_to_every_user_is_a_warning) {
  const ScratchDirectory scratch;
  scratch.write("keys", "alice 0123456789abcdef\n");
  struct Case {
    mode_t mode;
    std::string word;
  };
  for (const Case& test :
       {Case{0600, ""}, Case{0640, ""}, Case{0644, "read"}, Case{0602, "changed"}}) {
    ::chmod(scratch.at("keys").c_str(), test.mode);
    Findings findings;
    BOOST_TEST(load_keys(scratch.at("keys"), findings).size() == 1U);
    BOOST_TEST(findings.errors.empty());
    BOOST_TEST(findings.warnings.size() == (test.word.empty() ? 0U : 1U));
    for (const Finding& warning : findings.warnings) {
      BOOST_TEST(warning.key == "security.keys_file");
      BOOST_TEST(warning.message.find(test.word) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_keys_file_that_is_not_there_stops_the_start) {
  Findings findings;
  BOOST_TEST(load_keys("/nowhere/keys", findings).empty());
  BOOST_REQUIRE(findings.errors.size() == 1U);
  BOOST_TEST(findings.errors[0].key == "security.keys_file");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::config::test
