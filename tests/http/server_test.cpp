// server_test.cpp: the server over real sockets with a fake service.
#include "tests/http/server_fixture.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

namespace duet::http::tests {

namespace json = boost::json;

BOOST_AUTO_TEST_SUITE(http_server)

BOOST_AUTO_TEST_CASE(a_stream_comes_token_by_token_over_a_socket) {
  ServerFixture server;
  server.service.on_submit(answer_with({"Hel", "lo \"", "\xF0\x9F\x98\x80"}));
  const Response response = server.ask(
      post("/v1/chat/completions",
           R"({"model":"model-a","stream":true,"messages":[{"role":"user","content":"hi"}]})"));
  BOOST_TEST(response.status == 200U);
  BOOST_TEST(response.whole);
  const std::vector<std::string> list = events(response.body);
  BOOST_TEST_REQUIRE(list.size() == 6U);
  BOOST_TEST(list.back() == "[DONE]");
  std::string text;
  for (std::size_t i = 1; i < 4; ++i)
    text += json::parse(list[i]).at("choices").at(0).at("delta").at("content").as_string();
  BOOST_TEST(text == "Hello \"\xF0\x9F\x98\x80");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::http::tests
