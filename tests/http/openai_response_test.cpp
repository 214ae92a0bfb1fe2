// openai_response_test.cpp: the shapes of chunks, bodies, log-probabilities and errors.
#include "http/openai_response.hpp"

#include "http/json_text.hpp"
#include "http/response_stream.hpp"
#include "runtime/time.hpp"
#include "tests/http/client.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <limits>
#include <set>

namespace duet::http::tests {

namespace {

namespace json = boost::json;

AnswerShape shape_of(ApiKind kind, bool stream) {
  AnswerShape shape;
  shape.kind = kind;
  shape.id = "chatcmpl-1";
  shape.model = "model \"a\"";
  shape.created = 1700000000;
  shape.stream = stream;
  return shape;
}

/// "é" in two halves, with an impossible alternative.
struct Halves {
  std::array<actors::OutputLogprob, 2> top = {
      actors::OutputLogprob{5, "\xC3", -0.25},
      actors::OutputLogprob{6, "z", -std::numeric_limits<double>::infinity()}};
  std::array<actors::OutputToken, 2> tokens = {actors::OutputToken{{5, "\xC3", -0.25}, top},
                                               actors::OutputToken{{7, "\xA9", -1.5}, {}}};
};

}   // namespace

BOOST_AUTO_TEST_SUITE(http_openai_response)

BOOST_AUTO_TEST_CASE(every_chunk_carries_the_same_identity_and_its_index) {
  AnswerShape shape = shape_of(ApiKind::chat, true);
  shape.include_usage = true;
  EventRenderer renderer(shape);
  std::string out;
  renderer.role(out, 0);
  actors::OutputDelta delta;
  delta.index = 1;
  delta.text = "line\n\"quoted\" \\ \x01 \xE2\x82\xAC";
  renderer.delta(out, delta);
  renderer.choice_end(out, 1, actors::FinishReason::length);
  renderer.usage(out, {3, 4});
  EventRenderer::done(out);
  const std::vector<std::string> list = events(out);
  BOOST_TEST_REQUIRE(list.size() == 5U);
  for (std::size_t i = 0; i < 4; ++i) {
    const json::value event = json::parse(list[i]);
    BOOST_TEST(event.at("id").as_string() == "chatcmpl-1");
    BOOST_TEST(event.at("object").as_string() == "chat.completion.chunk");
    BOOST_TEST(event.at("created").as_int64() == 1700000000);
    BOOST_TEST(event.at("model").as_string() == "model \"a\"");
  }
  BOOST_TEST(json::parse(list[0]).at("choices").at(0).at("delta").at("role").as_string() ==
             "assistant");
  const json::value text = json::parse(list[1]);
  BOOST_TEST(text.at("choices").at(0).at("index").as_int64() == 1);
  BOOST_TEST(text.at("choices").at(0).at("delta").at("content").as_string() == delta.text);
  BOOST_TEST(text.at("choices").at(0).at("finish_reason").is_null());
  BOOST_TEST(text.at("usage").is_null());
  BOOST_TEST(json::parse(list[2]).at("choices").at(0).at("finish_reason").as_string() == "length");
  BOOST_TEST(json::parse(list[3]).at("choices").as_array().empty());
  BOOST_TEST(json::parse(list[3]).at("usage").at("total_tokens").as_int64() == 7);
  BOOST_TEST(list[4] == "[DONE]");
}

BOOST_AUTO_TEST_CASE(chunks_without_include_usage_do_not_name_it) {
  EventRenderer renderer(shape_of(ApiKind::completions, true));
  std::string out;
  actors::OutputDelta delta;
  delta.text = "x";
  renderer.delta(out, delta);
  renderer.choice_end(out, 0, actors::FinishReason::stop);
  BOOST_TEST(out.find("usage") == std::string::npos);
  const json::value event = json::parse(events(out).at(0));
  BOOST_TEST(event.at("object").as_string() == "text_completion");
  BOOST_TEST(event.at("choices").at(0).at("text").as_string() == "x");
}

BOOST_AUTO_TEST_CASE(an_empty_delta_is_no_event_unless_it_tells_logprobs) {
  EventRenderer plain(shape_of(ApiKind::chat, true));
  std::string out;
  plain.delta(out, {});
  BOOST_TEST(out.empty());
  AnswerShape shape = shape_of(ApiKind::chat, true);
  shape.logprobs = true;
  EventRenderer renderer(shape);
  const Halves halves;
  actors::OutputDelta delta;
  delta.logprobs = std::span(halves.tokens).first(1);
  renderer.delta(out, delta);
  BOOST_TEST(events(out).size() == 1U);
}

// C10
BOOST_AUTO_TEST_CASE(chat_logprobs_have_bytes_that_rebuild_the_text_and_no_infinity) {
  AnswerShape shape = shape_of(ApiKind::chat, false);
  shape.logprobs = true;
  BodyRenderer renderer(shape);
  const Halves halves;
  actors::OutputDelta delta;
  delta.logprobs = std::span(halves.tokens).first(1);
  renderer.delta(delta);
  delta.text = "\xC3\xA9";
  delta.logprobs = std::span(halves.tokens).last(1);
  renderer.delta(delta);
  renderer.choice_end(0, actors::FinishReason::stop);
  const json::value body = json::parse(renderer.finish({1, 2}));
  const json::value& choice = body.at("choices").at(0);
  BOOST_TEST(choice.at("message").at("content").as_string() == "\xC3\xA9");
  const json::array& content = choice.at("logprobs").at("content").as_array();
  BOOST_TEST_REQUIRE(content.size() == 2U);
  std::string rebuilt;
  for (const json::value& token : content) {
    for (const json::value& byte : token.at("bytes").as_array())
      rebuilt += static_cast<char>(byte.as_int64());
  }
  BOOST_TEST(rebuilt == "\xC3\xA9");
  BOOST_TEST(content[0].at("token").as_string() == "\\xc3");
  BOOST_TEST(content[0].at("top_logprobs").at(1).at("logprob").to_number<double>() == -9999.0);
  BOOST_TEST(content[1].at("top_logprobs").as_array().empty());
  BOOST_TEST(json::serialize(body).find("nfinity") == std::string::npos);
}

// C10
BOOST_AUTO_TEST_CASE(legacy_logprobs_are_four_lists_of_one_length) {
  AnswerShape shape = shape_of(ApiKind::completions, false);
  shape.logprobs = true;
  BodyRenderer renderer(shape);
  actors::OutputDelta echo;
  echo.text = "a\xE2\x82\xAC";   // an echoed prompt of two characters
  renderer.delta(echo);
  const Halves halves;
  actors::OutputDelta delta;
  delta.text = "\xC3\xA9";
  delta.logprobs = halves.tokens;
  renderer.delta(delta);
  renderer.choice_end(0, actors::FinishReason::stop);
  const json::value body = json::parse(renderer.finish({1, 2}));
  const json::value& logprobs = body.at("choices").at(0).at("logprobs");
  BOOST_TEST(logprobs.at("tokens").at(0).as_string() == "bytes:\\xc3");
  BOOST_TEST(logprobs.at("tokens").at(1).as_string() == "bytes:\\xa9");
  BOOST_TEST(logprobs.at("token_logprobs").at(1).as_double() == -1.5);
  BOOST_TEST(logprobs.at("text_offset").at(0).as_int64() == 2);
  BOOST_TEST(logprobs.at("text_offset").at(1).as_int64() == 2);
  BOOST_TEST(logprobs.at("top_logprobs").at(0).as_object().size() == 2U);
  BOOST_TEST(logprobs.at("top_logprobs").at(1).as_object().size() == 1U);
  BOOST_TEST(body.at("choices").at(0).at("text").as_string() == "a\xE2\x82\xAC\xC3\xA9");
}

BOOST_AUTO_TEST_CASE(an_answer_without_tokens_has_empty_lists_and_no_null) {
  for (const ApiKind kind : {ApiKind::chat, ApiKind::completions}) {
    AnswerShape shape = shape_of(kind, false);
    shape.logprobs = true;
    BodyRenderer renderer(shape);
    renderer.choice_end(0, actors::FinishReason::length);
    const json::value body = json::parse(renderer.finish({1, 0}));
    const json::value& logprobs = body.at("choices").at(0).at("logprobs");
    const char* const list = kind == ApiKind::chat ? "content" : "tokens";
    BOOST_TEST(logprobs.at(list).as_array().empty());
  }
}

BOOST_AUTO_TEST_CASE(each_service_error_has_its_status_and_a_type) {
  using actors::errc;
  const std::vector<std::pair<errc, unsigned>> statuses = {
      {errc::bad_request, 400},     {errc::model_not_found, 404},   {errc::request_not_found, 404},
      {errc::request_exists, 409},  {errc::quota_exceeded, 429},    {errc::overloaded, 503},
      {errc::unavailable, 503},     {errc::deadline_exceeded, 504}, {errc::cancelled, 499},
      {errc::reader_too_slow, 500}, {errc::device_fault, 500},      {errc::internal, 500},
  };
  for (const auto& [code, status] : statuses) {
    const HttpError error = to_http_error({code, "sentence \xFF", "field"});
    BOOST_TEST(error.status == status);
    BOOST_TEST((error.retry_after_seconds > 0) == (status == 429 || status == 503));
    std::string out;
    append_error_object(out, error);
    const json::value object = json::parse(out).at("error");
    BOOST_TEST(object.at("message").as_string() == "sentence \xEF\xBF\xBD");
    BOOST_TEST(object.at("code").as_string() == actors::to_string(code));
    BOOST_TEST(object.at("param").as_string() == "field");
    BOOST_TEST(!object.at("type").as_string().empty());
    BOOST_TEST(reason_phrase(status) != "Unknown");
  }
  BOOST_TEST(to_http_error({errc::overloaded, "", "", 17}).retry_after_seconds == 17U);
  std::string out;
  append_error_object(out, make_http_error(404, "m"));
  BOOST_TEST(json::parse(out).at("error").at("param").is_null());
}

BOOST_AUTO_TEST_CASE(an_echo_of_a_client_is_bounded_and_whole) {
  BOOST_TEST(bounded_echo("short") == "short");
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "\xE2\x82\xAC";
  BOOST_TEST(bounded_echo(euros).size() < 80U);
  BOOST_TEST(bounded_echo(euros).ends_with("\xE2\x82\xAC..."));
  BOOST_TEST(bounded_echo("\xFF") == "\xEF\xBF\xBD");
}

BOOST_AUTO_TEST_CASE(dates_are_those_of_the_standard) {
  std::string out;
  append_http_date(out, runtime::WallTime(std::chrono::seconds(784111777)));
  BOOST_TEST(out == "Sun, 06 Nov 1994 08:49:37 GMT");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::http::tests
