// client_end_test.cpp: clients that are gone, dead or half-closed.
#include "tests/http/client.hpp"
#include "tests/http/memory_transport.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace duet::http::tests {

using namespace std::chrono_literals;   // NOLINT(google-build-using-namespace): 5s reads well

BOOST_AUTO_TEST_SUITE(http_client_end)

// C04
BOOST_AUTO_TEST_CASE(a_reset_is_told_to_the_request_once) {
  for (const bool stream : {true, false}) {
    MemoryServer server;
    HeldStreams held(server.service);
    server.open();
    server.send(post("/v1/chat/completions", stream ? chat_stream : chat_whole));
    held.streams.back()->start(3);
    held.delta("one");
    server.settle();
    BOOST_TEST(server.context->counters.answers_open == 1U);
    server.wire->client_reset = true;
    server.settle();
    BOOST_TEST(held.listener->gone == 1);
    BOOST_TEST(server.context->counters.answers_open == 0U);
    BOOST_TEST(server.context->counters.readers_gone == 1U);
    // What the request still says falls on the floor.
    held.delta("two");
    held.streams.back()->choice_end(0, actors::FinishReason::stop);
    held.streams.back()->end({3, 2});
    server.settle();
    BOOST_TEST(held.listener->gone == 1);
    BOOST_TEST(server.records.back().error == "reader_gone");
  }
}

BOOST_AUTO_TEST_CASE(a_reader_that_is_gone_already_is_told_to_who_listens_late) {
  MemoryServer server;
  std::shared_ptr<actors::OutputStream> stream;
  server.service.on_submit(
      [&](const actors::GenerateRequest&, std::shared_ptr<actors::OutputStream> given) {
        stream = std::move(given);
      });
  server.open();
  server.send(post("/v1/chat/completions", chat_stream));
  server.wire->client_reset = true;
  server.settle();
  const auto listener = std::make_shared<CountingListener>();
  stream->listen(listener);
  BOOST_TEST(listener->gone == 1);
  stream->fail({actors::errc::cancelled, "gone"});
}

// C05
BOOST_AUTO_TEST_CASE(a_half_closed_client_gets_its_whole_answer) {
  for (const bool stream : {true, false}) {
    MemoryServer server;
    HeldStreams held(server.service);
    server.open();
    server.wire->to_server = post("/v1/chat/completions", stream ? chat_stream : chat_whole);
    server.wire->client_ended = true;
    server.settle();
    BOOST_TEST(held.listener->gone == 0);
    held.streams.back()->start(3);
    held.delta("whole");
    server.settle();
    held.streams.back()->choice_end(0, actors::FinishReason::stop);
    held.streams.back()->end({3, 1});
    server.settle();
    const std::string out = server.take_output();
    BOOST_TEST(out.find("whole") != std::string::npos);
    BOOST_TEST(held.listener->gone == 0);
    BOOST_TEST(server.wire->closed);
    BOOST_TEST(!server.wire->aborted);
    BOOST_TEST(server.records.back().status == 200U);
  }
}

BOOST_AUTO_TEST_CASE(a_half_closed_client_that_resets_later_is_gone) {
  MemoryServer server;
  HeldStreams held(server.service);
  server.open();
  server.wire->to_server = post("/v1/chat/completions", chat_stream);
  server.wire->client_ended = true;
  server.settle();
  server.wire->client_reset = true;
  server.settle();
  BOOST_TEST(held.listener->gone == 1);
  held.streams.back()->fail({actors::errc::cancelled, "gone"});
}

// A dead client's kernel sends the same FIN as one that only closed its writing side.
BOOST_AUTO_TEST_CASE(a_client_that_died_in_a_stream_is_gone_before_the_next_token) {
  OpenStream stream;
  auto& [server, held] = stream;
  server.settle();
  server.wire->client_ended = true;
  server.wire->client_dead = true;
  server.settle();
  BOOST_TEST(held.listener->gone == 0);
  server.advance(20ms);
  BOOST_TEST(held.listener->gone == 1);
  BOOST_TEST(server.wire->closed);
  BOOST_TEST(server.context->counters.readers_gone == 1U);
  held.streams.back()->fail({actors::errc::cancelled, "gone"});
}

BOOST_AUTO_TEST_CASE(a_client_that_died_before_its_stream_is_gone_with_the_first_byte) {
  MemoryServer server;
  HeldStreams held(server.service);
  server.open();
  server.wire->to_server = post("/v1/chat/completions", chat_stream);
  server.wire->client_ended = true;
  server.wire->client_dead = true;
  server.settle();
  BOOST_TEST(held.listener->gone == 0);   // nothing may be written yet that could find out
  held.streams.back()->start(3);
  server.settle();
  BOOST_TEST(held.listener->gone == 1);
  held.streams.back()->fail({actors::errc::cancelled, "gone"});
}

BOOST_AUTO_TEST_CASE(a_client_whose_death_met_a_token_is_gone_when_its_end_is_read) {
  OpenStream stream;
  auto& [server, held] = stream;
  server.settle();
  server.wire->client_ended = true;
  server.wire->client_dead = true;
  held.delta("unread");   // is written before the end is read
  server.settle();
  BOOST_TEST(held.listener->gone == 1);
  held.streams.back()->fail({actors::errc::cancelled, "gone"});
}

BOOST_AUTO_TEST_CASE(a_client_that_half_closes_in_a_stream_gets_one_comment_and_the_rest) {
  OpenStream stream;
  auto& [server, held] = stream;
  server.settle();
  (void)server.take_output();
  server.wire->client_ended = true;
  server.settle();
  server.advance(200ms);
  BOOST_TEST(server.take_output() == "8\r\n: ping\n\n\r\n");
  held.delta("rest");
  held.streams.back()->choice_end(0, actors::FinishReason::stop);
  held.streams.back()->end({3, 1});
  server.settle();
  const std::string out = server.take_output();
  BOOST_TEST(out.find("rest") != std::string::npos);
  BOOST_TEST(out.find(": ping") == std::string::npos);
  BOOST_TEST(held.listener->gone == 0);
}

BOOST_AUTO_TEST_CASE(pipelined_requests_before_a_half_close_are_all_answered) {
  MemoryServer server;
  server.service.on_submit(answer_with({"x"}));
  server.open();
  server.wire->to_server =
      get("/health") + post("/v1/chat/completions", chat_stream) + get("/v1/models") + "GET /cut";
  server.wire->client_ended = true;
  server.settle();
  BOOST_TEST(count(server.take_output(), "HTTP/1.1 200 OK") == 3U);
  BOOST_TEST(server.wire->closed);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::http::tests
