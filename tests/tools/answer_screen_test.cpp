// answer_screen_test.cpp: cutting of answers into lines, and what may reach a terminal.
#include "tools/answer_screen.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace {

using Lines = std::vector<std::string>;

}   // namespace

BOOST_AUTO_TEST_SUITE(answer_screen)

BOOST_AUTO_TEST_CASE(lines_are_cut_at_blanks_and_long_words_where_they_must_be) {
  BOOST_TEST(duet::tools::wrap("a fox ran home", 6) == (Lines{"a fox", "ran", "home"}),
             boost::test_tools::per_element());
  BOOST_TEST(duet::tools::wrap("abcdefgh", 3) == (Lines{"abc", "def", "gh"}),
             boost::test_tools::per_element());
  BOOST_TEST(duet::tools::wrap("abc def", 3) == (Lines{"abc", "def"}),
             boost::test_tools::per_element());
  BOOST_TEST(duet::tools::wrap("one\n\ntwo", 10) == (Lines{"one", "", "two"}),
             boost::test_tools::per_element());
  BOOST_TEST(duet::tools::wrap("", 10) == (Lines{""}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_text_is_lost_at_any_width) {
  const std::string text = "Once upon a time, there was a brave fox named Max. Größe 猫🙂 end";
  for (std::size_t width = 1; width < 80; ++width) {
    std::string joined;
    for (const std::string& line : duet::tools::wrap(text, width)) joined += line;
    std::string expected = text;
    std::erase(joined, ' ');
    std::erase(expected, ' ');
    BOOST_TEST(joined == expected);
  }
}

BOOST_AUTO_TEST_CASE(characters_of_several_bytes_are_kept_whole_and_count_once) {
  BOOST_TEST(duet::tools::wrap("äöü猫", 2) == (Lines{"äö", "ü猫"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(control_characters_do_not_reach_the_terminal) {
  BOOST_TEST(duet::tools::printable("a\x1b[2Jb\tc\nd\x7f") == "a [2Jb c\nd ");
}

BOOST_AUTO_TEST_SUITE_END()
