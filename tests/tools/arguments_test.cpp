// arguments_test.cpp: command lines, right and wrong.
#include "tools/arguments.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace {

using duet::tools::Arguments;

const duet::tools::ArgumentRules rules{{"--json"}, {"--ask", "--trust"}, 1, 1};

std::string error_of(const std::vector<std::string>& words) {
  std::string error;
  return Arguments::parse(words, rules, error).has_value() ? "accepted" : error;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(arguments)

BOOST_AUTO_TEST_CASE(options_come_in_both_spellings_and_more_than_once) {
  std::string error;
  const auto parsed =
      Arguments::parse({"--ask", "a=1", "pkg", "--ask=b=2", "--json"}, rules, error);
  BOOST_REQUIRE(parsed.has_value());
  BOOST_TEST(parsed->all("--ask") == (std::vector<std::string>{"a=1", "b=2"}),
             boost::test_tools::per_element());
  BOOST_TEST(parsed->last("--ask", "") == "b=2");
  BOOST_TEST(parsed->last("--trust", "none") == "none");
  BOOST_TEST(parsed->flag("--json"));
  BOOST_TEST(parsed->words().at(0) == "pkg");
}

BOOST_AUTO_TEST_CASE(behind_two_dashes_all_are_words) {
  std::string error;
  const auto parsed = Arguments::parse({"--", "--json"}, rules, error);
  BOOST_REQUIRE(parsed.has_value());
  BOOST_TEST(parsed->words().at(0) == "--json");
  BOOST_TEST(!parsed->flag("--json"));
}

BOOST_AUTO_TEST_CASE(wrong_use_names_the_word) {
  BOOST_TEST(error_of({"pkg", "--nope"}) == "unknown option --nope");
  BOOST_TEST(error_of({"pkg", "--ask"}) == "--ask needs a value");
  BOOST_TEST(error_of({"pkg", "--json=1"}) == "--json takes no value");
  BOOST_TEST(error_of({}) == "an argument is missing");
  BOOST_TEST(error_of({"pkg", "more"}) == "unexpected argument 'more'");
}

BOOST_AUTO_TEST_CASE(numbers_are_whole_and_in_their_range) {
  using duet::tools::parse_number;
  BOOST_TEST(parse_number("17", 1, 100).value() == 17U);
  for (const char* bad : {"", "0", "101", "-1", "1.5", "0x10", "17 ", "99999999999999999999"}) {
    BOOST_TEST(!parse_number(bad, 1, 100).has_value(), bad);
  }
}

BOOST_AUTO_TEST_SUITE_END()
