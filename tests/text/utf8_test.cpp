// utf8_test.cpp: incremental UTF-8 equals the repair of the whole, wherever the bytes are cut.
#include "text/utf8.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <random>

namespace duet::text::test {
namespace {

std::string repair(std::string_view bytes) {
  Utf8Stream stream;
  std::string out;
  stream.push(bytes, out);
  stream.flush(out);
  return out;
}

constexpr std::string_view u = "\xEF\xBF\xBD";

}   // namespace

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(each_maximal_subpart_becomes_one_replacement_character) {
  const auto times = [](int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += u;
    return out;
  };
  // The first four are the examples of the Unicode Standard, section 3.9, tables 3-8 to 3-11.
  const std::array<std::pair<std::string, std::string>, 16> cases = {{
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", times(8) + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", times(8) + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", times(5) + "A" + times(2) + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", times(4) + "A"},
      {"\xF0\x9F\x98", times(1)},
      {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
      {"\xF0\x9F\x98z", times(1) + "z"},
      {"\xC3", times(1)},
      {"\xC3\xC3\xA9", times(1) + "\xC3\xA9"},
      {"\x80", times(1)},
      {"\xF5\x80\x80\x80", times(4)},
      {"\xEF\xBB\xBFx", "\xEF\xBB\xBFx"},
      {std::string("a\0b", 3), std::string("a\0b", 3)},
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
      {"\xE0\x9F\xBF", times(3)},
      {"", ""},
  }};
  for (const auto& [bytes, wanted] : cases) BOOST_TEST(repair(bytes) == wanted);
}

BOOST_AUTO_TEST_CASE(any_cut_gives_the_text_of_the_whole_and_never_half_a_character) {
  std::mt19937 random{7};
  const std::array<std::string, 9> pieces = {"a",    "\xC3\xA9", "\xE7\x8C\xAB", "\xF0\x9F\x98\x80",
                                             "\xC3", "\xF0\x9F", "\x80",         "\xE2\x80\x8D",
                                             "\xFF"};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (unsigned i = 0, n = random() % 12; i < n; ++i) bytes += pieces[random() % pieces.size()];
    Utf8Stream stream;
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = 1 + random() % 4;
      stream.push(std::string_view{bytes}.substr(at, size), out);
      at += size;
      BOOST_REQUIRE(utf8_valid_prefix(out) == out.size());
      BOOST_REQUIRE(stream.held() <= 3U);
    }
    stream.flush(out);
    BOOST_REQUIRE(out == repair(bytes));
    BOOST_REQUIRE(utf8_valid_prefix(out) == out.size());
    if (utf8_valid_prefix(bytes) == bytes.size()) BOOST_REQUIRE(out == bytes);
  }
}

BOOST_AUTO_TEST_CASE(an_ill_formed_sequence_is_repaired_as_soon_as_it_is_certain) {
  Utf8Stream stream;
  std::string out;
  stream.push("\xF0\x9F", out);
  BOOST_TEST(out.empty());
  stream.push("x", out);
  BOOST_TEST(out == std::string{u} + "x");
  BOOST_TEST(stream.held() == 0U);
}

BOOST_AUTO_TEST_CASE(every_code_point_survives_encoding_and_decoding) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code == 0xD800) code = 0xE000;
    std::string text;
    utf8_append(text, code);
    BOOST_REQUIRE(utf8_character_size(text) == text.size());
    BOOST_REQUIRE(utf8_decode(text) == code);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::text::test
