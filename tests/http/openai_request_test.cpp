// openai_request_test.cpp: what the parser of completions takes and what it refuses, field by
// field.
#include "http/openai_request.hpp"

#include "actors/limits.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace duet::http::tests {

namespace {

using actors::errc;

const std::vector<std::string> two = {"model-a", "model-b"};

RequestResult<OpenAiRequest> chat_body(const std::string& body) {
  return parse_openai_request(ApiKind::chat, body, two, 32);
}

/// A chat body with further fields, which begin with a comma.
RequestResult<OpenAiRequest> chat(const std::string& fields) {
  return chat_body(R"({"model":"model-a","messages":[{"role":"user","content":"hi"}])" + fields +
                   "}");
}
RequestResult<OpenAiRequest> completion(const std::string& fields) {
  return parse_openai_request(ApiKind::completions, R"({"model":"model-a")" + fields + "}", two,
                              32);
}
RequestResult<OpenAiRequest> message(const std::string& text) {
  return chat_body(R"({"model":"model-a","messages":[)" + text + "]}");
}

struct Case {
  std::string fields;
  std::string param;   // of the error; "-": it is accepted
};

using Parse = RequestResult<OpenAiRequest> (*)(const std::string&);

void check_cases(Parse parse, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c.fields) {
      const auto result = parse(c.fields);
      if (c.param == "-") {
        BOOST_TEST(result.has_value(), (result ? "" : result.error().message));
        continue;
      }
      BOOST_TEST_REQUIRE(result.has_error());
      BOOST_TEST((result.error().code == errc::bad_request));
      BOOST_TEST(result.error().param == c.param, result.error().message);
      BOOST_TEST(!result.error().message.empty());
    }
  }
}

std::string message_content(const RequestResult<OpenAiRequest>& result) {
  const auto& prompt = std::get<actors::ChatPrompt>(result->generate.prompts.at(0));
  return std::string(prompt.messages->at(0).as_object().at("content").as_string());
}

}   // namespace

BOOST_AUTO_TEST_SUITE(http_openai_request)

// C11
BOOST_AUTO_TEST_CASE(max_tokens_is_a_positive_integer_or_null) {
  check_cases(chat, {
                        {R"(,"max_tokens":null)", "-"},
                        {R"(,"max_tokens":1)", "-"},
                        {R"(,"max_tokens":16777216)", "-"},
                        {R"(,"max_tokens":16.0)", "-"},
                        {R"(,"max_tokens":0)", "max_tokens"},
                        {R"(,"max_tokens":-1)", "max_tokens"},
                        {R"(,"max_tokens":16777217)", "max_tokens"},
                        {R"(,"max_tokens":2147483648)", "max_tokens"},
                        {R"(,"max_tokens":9223372036854775808)", "max_tokens"},
                        {R"(,"max_tokens":1e400)", "max_tokens"},
                        {R"(,"max_tokens":"10")", "max_tokens"},
                        {R"(,"max_tokens":1.5)", "max_tokens"},
                        {R"(,"max_tokens":true)", "max_tokens"},
                        {R"(,"max_tokens":[1])", "max_tokens"},
                        {R"(,"max_completion_tokens":5)", "-"},
                        {R"(,"max_completion_tokens":0)", "max_completion_tokens"},
                        {R"(,"max_tokens":null,"max_completion_tokens":5)", "-"},
                        {R"(,"max_tokens":5,"max_completion_tokens":5)", "max_tokens"},
                    });
  BOOST_TEST(!chat(R"(,"max_tokens":null)")->generate.tokens_max.has_value());
  BOOST_TEST(chat(R"(,"max_completion_tokens":5)")->generate.tokens_max.value() == 5U);
  BOOST_TEST(chat(R"(,"max_tokens":16.0)")->generate.tokens_max.value() == 16U);
}

// C12
BOOST_AUTO_TEST_CASE(a_prompt_is_text_or_ids_and_an_error_names_the_place) {
  check_cases(completion, {
                              {R"(,"prompt":"a")", "-"},
                              {R"(,"prompt":"")", "-"},
                              {R"(,"prompt":["a","b"])", "-"},
                              {R"(,"prompt":[1,2,3])", "-"},
                              {R"(,"prompt":[[1],[2,3]])", "-"},
                              {R"(,"prompt":[4294967295])", "-"},
                              {"", "prompt"},
                              {R"(,"prompt":null)", "prompt"},
                              {R"(,"prompt":7)", "prompt"},
                              {R"(,"prompt":{})", "prompt"},
                              {R"(,"prompt":[])", "prompt"},
                              {R"(,"prompt":[[]])", "prompt[0]"},
                              {R"(,"prompt":[[1],[]])", "prompt[1]"},
                              {R"(,"prompt":[1,-1])", "prompt[1]"},
                              {R"(,"prompt":[1,4294967296])", "prompt[1]"},
                              {R"(,"prompt":[1,2,1.5])", "prompt[2]"},
                              {R"(,"prompt":[true])", "prompt[0]"},
                              {R"(,"prompt":[1,"a"])", "prompt[1]"},
                              {R"(,"prompt":["a",1])", "prompt[1]"},
                              {R"(,"prompt":["a",[1]])", "prompt[1]"},
                              {R"(,"prompt":[[1],"a"])", "prompt[1]"},
                              {R"(,"prompt":[[1],[2,-3]])", "prompt[1][1]"},
                              {R"(,"prompt":[[[1]]])", "prompt[0][0]"},
                          });
  const auto lists = completion(R"(,"prompt":[[1],[2,3]])");
  BOOST_TEST(lists->generate.prompts.size() == 2U);
  BOOST_TEST(std::get<std::vector<text::TokenId>>(lists->generate.prompts[1]).at(1) == 3U);
  std::string many = R"(,"prompt":["a")";
  for (std::size_t i = 1; i <= actors::limits::prompts_max; ++i) many += R"(,"a")";
  check_cases(completion, {{many + "]", "prompt"}});
}

// C13
BOOST_AUTO_TEST_CASE(nothing_is_coerced) {
  check_cases(chat, {
                        {R"(,"stream":"true")", "stream"},
                        {R"(,"stream":1)", "stream"},
                        {R"(,"stream":null)", "-"},
                        {R"(,"temperature":"0.5")", "temperature"},
                        {R"(,"n":"2")", "n"},
                        {R"(,"seed":"1")", "seed"},
                        {R"(,"seed":1.5)", "seed"},
                        {R"(,"seed":-9223372036854775808)", "-"},
                        {R"(,"seed":18446744073709551615)", "-"},
                        {R"(,"seed":18446744073709551616)", "seed"},
                        {R"(,"logprobs":1)", "logprobs"},
                        {R"(,"stop":5)", "stop"},
                        {R"(,"logit_bias":[])", "logit_bias"},
                        {R"(,"unknown_field":{"a":[1]})", "-"},
                    });
  for (const char* body : {"null", "42", "[]", "\"x\"", "true"}) {
    const auto result = chat_body(body);
    BOOST_TEST_REQUIRE(result.has_error(), body);
    BOOST_TEST((result.error().code == errc::bad_request));
  }
  for (const char* body : {"", "{", "{}x", "{\"a\":}", "{'a':1}", "nul", "{\"a\":1,}"}) {
    BOOST_TEST_REQUIRE(chat_body(body).has_error(), body);
  }
  check_cases(chat_body, {
                             {R"({"model":"model-a"})", "messages"},
                             {R"({"model":"model-a","messages":null})", "messages"},
                             {R"({"model":"model-a","messages":{}})", "messages"},
                             {R"({"model":"model-a","messages":"hi"})", "messages"},
                             {R"({"model":"model-a","messages":[]})", "messages"},
                             {R"({"model":"model-a","messages":[5]})", "messages[0]"},
                             {R"({"model":5,"messages":[]})", "model"},
                         });
}

// C03: broken text is refused before anybody works with it.
BOOST_AUTO_TEST_CASE(broken_text_is_not_json) {
  const std::vector<std::string> broken = {
      R"("\ud800")", R"("\udc00")",  R"("\ud800\ud800")", R"("\ud800x")",         R"("\u12")",
      "\"\xFF\"",    "\"\xC0\xAF\"", "\"\xED\xA0\x80\"",  "\"\xF4\x90\x80\x80\"", "\"\xE2\x82\"",
      "\"a\nb\"",
  };
  for (const std::string& text : broken) {
    const auto result = message(R"({"role":"user","content":)" + text + "}");
    BOOST_TEST_REQUIRE(result.has_error());
    BOOST_TEST((result.error().code == errc::bad_request));
  }
  const auto whole = message(R"({"role":"user","content":"\ud83d\ude00\u0000"})");
  BOOST_TEST(message_content(whole) == std::string("\xF0\x9F\x98\x80\0", 5));
}

BOOST_AUTO_TEST_CASE(nesting_has_a_bound) {
  const auto nested = [](int levels) {
    return R"(,"x":)" + std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  BOOST_TEST(chat(nested(31)).has_value());
  BOOST_TEST(chat(nested(32)).has_error());
  BOOST_TEST(chat(nested(100000)).has_error());
  BOOST_TEST(chat_body(std::string(1000000, '[')).has_error());
}

// C14
BOOST_AUTO_TEST_CASE(contents_are_text_or_lists_of_text) {
  check_cases(
      message,
      {
          {R"({"role":"user","content":[{"type":"text","text":"a"}]})", "-"},
          {R"({"role":"user","content":[]})", "messages[0].content"},
          {R"({"role":"user","content":5})", "messages[0].content"},
          {R"({"role":"user","content":{}})", "messages[0].content"},
          {R"({"role":"user","content":null})", "messages[0].content"},
          {R"({"role":"user"})", "messages[0].content"},
          {R"({"role":"user","content":["a"]})", "messages[0].content[0]"},
          {R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]})",
           "messages[0].content[0].type"},
          {R"({"role":"user","content":[{"type":"text"}]})", "messages[0].content[0].text"},
          {R"({"role":"user","content":[{"text":"a"}]})", "messages[0].content[0].type"},
          {R"({"role":"user","content":[{"type":"text","text":5}]})",
           "messages[0].content[0].text"},
          {R"({"content":"a"})", "messages[0].role"},
          {R"({"role":"robot","content":"a"})", "messages[0].role"},
          {R"({"role":"User","content":"a"})", "messages[0].role"},
          {R"({"role":1,"content":"a"})", "messages[0].role"},
          {R"({"role":"assistant","content":null})", "messages[0].content"},
          {R"({"role":"assistant","content":null,"tool_calls":[]})", "messages[0].content"},
          {R"({"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",)"
           R"("function":{"name":"f","arguments":"{}"}}]})",
           "-"},
          {R"({"role":"assistant","tool_calls":[{"id":"c","function":)"
           R"({"name":"f","arguments":"{}"}}]})",
           "-"},
          {R"({"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",)"
           R"("function":{"name":"f","arguments":{}}}]})",
           "messages[0].tool_calls[0].function.arguments"},
          {R"({"role":"assistant","content":"a","tool_calls":{}})", "messages[0].tool_calls"},
          {R"({"role":"assistant","content":"a","tool_calls":[{}]})",
           "messages[0].tool_calls[0].id"},
          {R"({"role":"tool","content":"42","tool_call_id":"c"})", "-"},
          {R"({"role":"tool","content":"42"})", "messages[0].tool_call_id"},
          {R"({"role":"tool","content":null,"tool_call_id":"c"})", "messages[0].content"},
          {R"({"role":"user","content":"a","name":7})", "messages[0].name"},
          {R"({"role":"developer","content":"a"})", "-"},
          {R"({"role":"user","content":"a"},{"role":"user","content":7})", "messages[1].content"},
      });
  const auto parts = message(
      R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})");
  BOOST_TEST(message_content(parts) == "a\nb");
  const auto developer = message(R"({"role":"developer","content":"a"})");
  BOOST_TEST(std::get<actors::ChatPrompt>(developer->generate.prompts[0])
                 .messages->at(0)
                 .at("role")
                 .as_string() == "system");
  // A field is added to it, which moves the others (run it with ASan).
  const auto call = message(
      R"({"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]})");
  const boost::json::object& called =
      std::get<actors::ChatPrompt>(call->generate.prompts[0]).messages->at(0).as_object();
  BOOST_TEST(called.at("role").as_string() == "assistant");
  BOOST_TEST(called.at("content").is_null());
}

// C15
BOOST_AUTO_TEST_CASE(a_model_is_named_exactly) {
  const auto code_of = [](const std::string& model) {
    const auto result =
        chat_body(R"({"model":")" + model + R"(","messages":[{"role":"user","content":"hi"}]})");
    return result ? errc{} : result.error().code;
  };
  BOOST_TEST((code_of("model-a") == errc{}));
  BOOST_TEST((code_of("Model-A") == errc::model_not_found));
  BOOST_TEST((code_of("") == errc::model_not_found));
  BOOST_TEST((code_of(" model-a") == errc::model_not_found));
  BOOST_TEST((code_of(R"(model-a\u0000)") == errc::model_not_found));
  const auto long_name =
      chat_body(R"({"model":")" + std::string(65536, 'x') + R"(","messages":[]})");
  BOOST_TEST((long_name.error().code == errc::model_not_found));
  BOOST_TEST(long_name.error().message.size() < 200U);
  BOOST_TEST(long_name.error().param == "model");

  const std::string no_model = R"({"messages":[{"role":"user","content":"hi"}]})";
  check_cases(chat_body, {{no_model, "model"}, {R"({"model":null,"messages":[]})", "model"}});
  const std::vector<std::string> one = {"only"};
  const auto alone = parse_openai_request(ApiKind::chat, no_model, one, 32);
  BOOST_TEST_REQUIRE(alone.has_value());
  BOOST_TEST(alone->generate.model == "only");
}

BOOST_AUTO_TEST_CASE(sampling_fields_have_their_ranges) {
  check_cases(chat, {
                        {R"(,"temperature":0)", "-"},
                        {R"(,"temperature":2)", "-"},
                        {R"(,"temperature":2.1)", "temperature"},
                        {R"(,"temperature":-0.1)", "temperature"},
                        {R"(,"temperature":1e999)", "temperature"},
                        {R"(,"top_p":0)", "-"},
                        {R"(,"top_p":1)", "-"},
                        {R"(,"top_p":1.01)", "top_p"},
                        {R"(,"top_k":-1)", "-"},
                        {R"(,"top_k":-2)", "top_k"},
                        {R"(,"min_p":1.5)", "min_p"},
                        {R"(,"presence_penalty":2.5)", "presence_penalty"},
                        {R"(,"frequency_penalty":-2.5)", "frequency_penalty"},
                        {R"(,"repetition_penalty":0)", "repetition_penalty"},
                        {R"(,"n":0)", "n"},
                        {R"(,"n":128)", "-"},
                        {R"(,"n":129)", "n"},
                        {R"(,"logit_bias":{"5":-100,"6":1.5})", "-"},
                        {R"(,"logit_bias":{"5":101})", "logit_bias"},
                        {R"(,"logit_bias":{"05":1})", "logit_bias"},
                        {R"(,"logit_bias":{"x":1})", "logit_bias"},
                        {R"(,"logit_bias":{"-1":1})", "logit_bias"},
                        {R"(,"logit_bias":{"":1})", "logit_bias"},
                        {R"(,"logit_bias":{"4294967296":1})", "logit_bias"},
                        {R"(,"logit_bias":{"5":"1"})", "logit_bias"},
                        {R"(,"stop":"x")", "-"},
                        {R"(,"stop":["x","y"])", "-"},
                        {R"(,"stop":[])", "-"},
                        {R"(,"stop":"")", "stop"},
                        {R"(,"stop":["x",5])", "stop"},
                    });
  const auto request = chat(R"(,"temperature":0.5,"top_p":0,"top_k":-1,"seed":-1,"n":3)");
  BOOST_TEST(request->generate.sampling.temperature == 0.5F);
  BOOST_TEST(request->generate.sampling.top_p > 0.0F);
  BOOST_TEST(request->generate.sampling.top_k == 0U);
  BOOST_TEST(request->generate.sampling.seed == 18446744073709551615ULL);
  BOOST_TEST(request->generate.seed_given);
  BOOST_TEST(!chat("")->generate.seed_given);
  BOOST_TEST(request->generate.choices == 3U);
  BOOST_TEST(completion(R"(,"n":65,"prompt":["a","b"])").error().param == "n");
  BOOST_TEST(completion(R"(,"n":64,"prompt":["a","b"])").has_value());
}

// C10, the parser's part
BOOST_AUTO_TEST_CASE(logprobs_differ_between_the_apis) {
  check_cases(chat, {
                        {R"(,"logprobs":true)", "-"},
                        {R"(,"logprobs":true,"top_logprobs":0)", "-"},
                        {R"(,"logprobs":true,"top_logprobs":20)", "-"},
                        {R"(,"logprobs":true,"top_logprobs":21)", "top_logprobs"},
                        {R"(,"logprobs":true,"top_logprobs":-1)", "top_logprobs"},
                        {R"(,"top_logprobs":2)", "top_logprobs"},
                        {R"(,"logprobs":false,"top_logprobs":2)", "top_logprobs"},
                    });
  check_cases(completion, {
                              {R"(,"prompt":"a","logprobs":0)", "-"},
                              {R"(,"prompt":"a","logprobs":5)", "-"},
                              {R"(,"prompt":"a","logprobs":6)", "logprobs"},
                              {R"(,"prompt":"a","logprobs":true)", "logprobs"},
                          });
  BOOST_TEST(completion(R"(,"prompt":"a","logprobs":0)")->generate.logprobs);
  BOOST_TEST(!completion(R"(,"prompt":"a","logprobs":null)")->generate.logprobs);
}

// C07, the parser's part
BOOST_AUTO_TEST_CASE(stream_options_need_a_stream) {
  check_cases(chat, {
                        {R"(,"stream":true,"stream_options":{"include_usage":true})", "-"},
                        {R"(,"stream":true,"stream_options":{})", "-"},
                        {R"(,"stream":true,"stream_options":null)", "-"},
                        {R"(,"stream_options":null)", "-"},
                        {R"(,"stream_options":{"include_usage":true})", "stream_options"},
                        {R"(,"stream":false,"stream_options":{})", "stream_options"},
                        {R"(,"stream":true,"stream_options":[])", "stream_options"},
                        {R"(,"stream":true,"stream_options":{"include_usage":1})",
                         "stream_options.include_usage"},
                    });
}

BOOST_AUTO_TEST_CASE(what_is_not_served_is_refused_and_not_ignored) {
  check_cases(chat, {
                        {R"(,"tools":[])", "-"},
                        {R"(,"tools":[{"type":"function"}])", "tools"},
                        {R"(,"tools":[{"type":"function"}],"tool_choice":"none")", "-"},
                        {R"(,"response_format":{"type":"text"})", "-"},
                        {R"(,"response_format":{"type":"json_object"})", "response_format"},
                        {R"(,"response_format":"text")", "response_format"},
                        {R"(,"audio":{"voice":"x"})", "audio"},
                    });
  check_cases(completion, {
                              {R"(,"prompt":"a","suffix":"")", "-"},
                              {R"(,"prompt":"a","suffix":"z")", "suffix"},
                              {R"(,"prompt":"a","best_of":1)", "-"},
                              {R"(,"prompt":"a","best_of":2)", "best_of"},
                              {R"(,"prompt":"a","echo":false)", "-"},
                              {R"(,"prompt":"a","echo":true)", "echo"},
                              {R"(,"prompt":"a","echo":"true")", "echo"},
                          });
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::http::tests
