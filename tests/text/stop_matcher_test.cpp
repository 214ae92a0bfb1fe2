// stop_matcher_test.cpp: stop strings end a stream exactly, wherever it is cut. (C02)
#include "text/stop_matcher.hpp"

#include "tests/text/test_data.hpp"
#include "text/limits.hpp"
#include "text/token_decoder.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <random>

namespace duet::text::test {
namespace {

StopMatcher matcher_of(std::vector<std::string> stops) {
  auto made = StopMatcher::create(std::move(stops));
  if (!made) throw std::runtime_error(made.error().message);
  return *made;
}

/// What the definition says: the stop that is complete first, of several the longest.
std::string cut_at_stop(const std::string& text, const std::vector<std::string>& stops,
                        std::optional<std::size_t>& matched) {
  matched.reset();
  for (std::size_t end = 1; end <= text.size(); ++end) {
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (!std::string_view{text}.substr(0, end).ends_with(stops[i])) continue;
      if (!matched || stops[i].size() > stops[*matched].size()) matched = i;
    }
    if (matched) return text.substr(0, end - stops[*matched].size());
  }
  return text;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(stop_matcher)

BOOST_AUTO_TEST_CASE(a_stop_at_every_place_of_a_golden_answer_is_cut_at_every_split) {
  const auto golden = boost::json::parse(read_file(demo_model("fable.golden.json")));
  const auto& answer =
      golden.as_object().at("prompts").as_array().at(0).as_object().at("q8_0").as_object();
  const auto& json_text = answer.at("text").as_string();
  const std::string text{json_text.data(), json_text.size()};
  BOOST_REQUIRE(text.size() > 200U);
  for (std::size_t begin = 0; begin < 120; ++begin) {
    for (const std::size_t size : {1U, 2U, 5U, 17U}) {
      const std::string stop = text.substr(begin, size);
      const std::string wanted = text.substr(0, text.find(stop));
      for (std::size_t cut = 0; cut <= begin + size + 3; ++cut) {
        StopMatcher matcher = matcher_of({stop});
        std::string out;
        bool ended = matcher.push(text.substr(0, cut), out);
        BOOST_REQUIRE(wanted.starts_with(out));
        ended = matcher.push(text.substr(cut), out) || ended;
        matcher.flush(out);
        BOOST_REQUIRE(ended);
        BOOST_REQUIRE_EQUAL(out, wanted);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(token_by_token_the_answer_before_the_stop_is_whole) {
  const auto tokenizer = tokenizer_of_gguf(demo_model("fable-q8_0.gguf"));
  const auto golden = boost::json::parse(read_file(demo_model("fable.golden.json")));
  const auto& answer =
      golden.as_object().at("prompts").as_array().at(0).as_object().at("q8_0").as_object();
  const std::string text{answer.at("text").as_string().c_str()};
  const std::vector<std::string> stops = {"river", "He lived by the ri"};
  StopMatcher matcher = matcher_of(stops);
  TokenDecoder decoder{tokenizer, DecodeFrom::continuation};
  std::string out;
  bool ended = false;
  for (const auto& id : answer.at("output_ids").as_array()) {
    std::string piece;
    BOOST_REQUIRE(decoder.push(static_cast<TokenId>(id.as_int64()), piece).has_value());
    ended = matcher.push(piece, out);
    if (ended) break;
  }
  BOOST_TEST(ended);
  BOOST_TEST(out == text.substr(0, text.find("He lived by the ri")));
  BOOST_TEST(matcher.matched().value() == 1U);
}

BOOST_AUTO_TEST_CASE(held_text_is_flushed_when_the_answer_ends_by_length) {
  StopMatcher matcher = matcher_of({"###END", "\n\n"});
  std::string out;
  BOOST_TEST(!matcher.push("text ###E", out));
  BOOST_TEST(out == "text ");
  BOOST_TEST(matcher.held() == 4U);
  matcher.flush(out);
  BOOST_TEST(out == "text ###E");
  BOOST_TEST(matcher.held() == 0U);
  BOOST_TEST(!matcher.matched().has_value());
}

BOOST_AUTO_TEST_CASE(random_texts_and_stops_agree_with_the_definition) {
  std::mt19937 random{11};
  const auto letters = [&random](std::size_t size) {
    std::string out;
    while (out.size() < size) out += "aab\n"[random() % 4];
    return out;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (unsigned i = 0, n = 1 + random() % 4; i < n; ++i)
      stops.push_back(letters(1 + random() % 6));
    const std::string text = letters(random() % 30);
    std::optional<std::size_t> wanted_stop;
    const std::string wanted = cut_at_stop(text, stops, wanted_stop);
    StopMatcher matcher = matcher_of(stops);
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = random() % 5;
      static_cast<void>(matcher.push(std::string_view{text}.substr(at, size), out));
      at += size;
      BOOST_REQUIRE(wanted.starts_with(out));
    }
    matcher.flush(out);
    BOOST_REQUIRE_EQUAL(out, wanted);
    BOOST_REQUIRE(matcher.matched().has_value() == wanted_stop.has_value());
    // Two equal stops are the same stop.
    if (wanted_stop) BOOST_REQUIRE_EQUAL(stops[*matcher.matched()], stops[*wanted_stop]);
  }
}

BOOST_AUTO_TEST_CASE(what_is_passed_on_is_whole_characters) {
  StopMatcher matcher = matcher_of({"\xF0\x9F\x98\x80!"});
  std::string out;
  static_cast<void>(matcher.push("a\xF0\x9F\x98\x80", out));
  BOOST_TEST(out == "a");
  static_cast<void>(matcher.push("?", out));
  BOOST_TEST(out == "a\xF0\x9F\x98\x80?");
}

BOOST_AUTO_TEST_CASE(without_stops_nothing_is_held) {
  StopMatcher matcher;
  std::string out;
  BOOST_TEST(!matcher.push("text", out));
  BOOST_TEST(out == "text");
}

BOOST_AUTO_TEST_CASE(text_after_the_stop_is_ignored) {
  StopMatcher matcher = matcher_of({"b"});
  std::string out;
  BOOST_TEST(matcher.push("abc", out));
  BOOST_TEST(matcher.push("d", out));
  matcher.flush(out);
  BOOST_TEST(out == "a");
}

BOOST_AUTO_TEST_CASE(stops_out_of_range_are_refused) {
  const auto code = [](std::vector<std::string> stops) {
    const auto made = StopMatcher::create(std::move(stops));
    return made ? errc{} : made.error().code;
  };
  BOOST_TEST((code({""}) == errc::parameter_invalid));
  BOOST_TEST((code({"a", "\xFF"}) == errc::parameter_invalid));
  BOOST_TEST((code({std::string(limits::stop_bytes_max + 1, 'a')}) == errc::parameter_invalid));
  BOOST_TEST(
      (code(std::vector<std::string>(limits::stops_max + 1, "a")) == errc::parameter_invalid));
  BOOST_TEST((code({std::string(limits::stop_bytes_max, 'a')}) == errc{}));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::text::test
