// connection_test.cpp: a connection over memory and a manual clock: order, deadlines, readers that
// are slow.
#include "tests/http/client.hpp"
#include "tests/http/memory_transport.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace duet::http::tests {

using namespace std::chrono_literals;   // NOLINT(google-build-using-namespace): 5s reads well

BOOST_AUTO_TEST_SUITE(http_connection)

// C18
BOOST_AUTO_TEST_CASE(pipelined_requests_are_answered_in_order) {
  MemoryServer server;
  server.service.on_submit(answer_with({"x"}));
  server.open();
  server.send(get("/health") + "DELETE /internal/requests/none HTTP/1.1\r\nHost: t\r\n\r\n" +
              post("/v1/chat/completions", chat_whole) + get("/v1/models") +
              post("/v1/chat/completions", chat_stream) + get("/ready"));
  const std::string out = server.take_output();
  std::size_t at = 0;
  for (const char* part : {"alive", "request_not_found", "chat.completion\"", "\"list\"", "[DONE]",
                           "\"ready\":true"}) {
    const std::size_t found = out.find(part, at);
    BOOST_TEST_REQUIRE(found != std::string::npos, part << " in " << out);
    at = found;
  }
  BOOST_TEST(count(out, "HTTP/1.1 ") == 6U);
  BOOST_TEST(!server.wire->closed);
}

BOOST_AUTO_TEST_CASE(requests_may_come_byte_by_byte) {
  MemoryServer server;
  server.service.on_submit(answer_with({"x"}));
  server.open();
  const std::string requests =
      post("/v1/chat/completions", chat_stream) +
      "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" +
      chat_whole.substr(0, 16) + "\r\n" +
      [] {
        std::string rest;
        for (const char c : chat_whole.substr(16)) rest += std::string("1\r\n") + c + "\r\n";
        return rest;
      }() +
      "0\r\nTrailer: x\r\n\r\n" + get("/health");
  for (const char c : requests) server.send(std::string_view(&c, 1));
  const std::string out = server.take_output();
  BOOST_TEST(count(out, "HTTP/1.1 200 OK") == 3U, out);
  BOOST_TEST(out.ends_with(R"({"status":"alive"})"));
}

BOOST_AUTO_TEST_CASE(completions_run_on_main_and_everything_else_on_reserved) {
  MemoryServer server;
  server.service.on_submit(answer_with({"x"}));
  server.open();
  server.send(get("/health"));
  BOOST_TEST(server.wire->moves.empty());
  server.send(post("/v1/chat/completions", chat_whole));
  BOOST_TEST((server.wire->moves == std::vector<Home>{Home::main, Home::reserved}));
  server.send(post("/v1/chat/completions", chat_whole, "Content-Type: text/plain\r\n"));
  server.send(get("/metrics") + get("/ready"));
  // Two completions at hand: no need to go back in between.
  server.wire->moves.clear();
  server.send(post("/v1/chat/completions", chat_whole) + post("/v1/completions", "{}"));
  BOOST_TEST((server.wire->moves == std::vector<Home>{Home::main, Home::reserved}));
}

// B5: what is ready together goes out together, a lone token at once.
BOOST_AUTO_TEST_CASE(tokens_that_are_ready_together_are_one_write) {
  MemoryServer server;
  HeldStreams held(server.service);
  server.open();
  server.send(post("/v1/chat/completions", chat_stream));
  BOOST_TEST(server.take_output().empty());   // no header before start: the status is open
  held.streams.back()->start(3);
  for (int i = 0; i < 20; ++i) held.delta("t");
  const std::size_t before = server.wire->writes;
  server.settle();
  BOOST_TEST(server.wire->writes == before + 1);
  BOOST_TEST(count(server.take_output(), "\"content\":\"t\"") == 20U);
  held.delta("lone");
  server.settle();
  BOOST_TEST(server.wire->writes == before + 2);
  BOOST_TEST(count(server.take_output(), "lone") == 1U);
  held.streams.back()->choice_end(0, actors::FinishReason::stop);
  held.streams.back()->end({3, 21});
  server.settle();
  BOOST_TEST(server.wire->writes == before + 3);
  BOOST_TEST(server.take_output().ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
}

BOOST_AUTO_TEST_CASE(a_slow_reader_parks_its_request_and_lets_it_go_on) {
  ServerOptions options;
  options.limits.stream_high_bytes = 2000;
  options.limits.stream_low_bytes = 500;
  OpenStream stream(options);
  auto& [server, held] = stream;
  server.settle();
  server.wire->room = 100;
  int deltas = 0;
  while (held.streams.back()->writable()) {
    held.delta("token");
    server.settle();
    BOOST_TEST_REQUIRE(++deltas < 100);
  }
  BOOST_TEST(deltas > 5);
  server.wire->room = 100;
  server.settle();
  BOOST_TEST(!held.streams.back()->writable());
  BOOST_TEST(held.listener->writable == 0);
  server.wire->room = std::numeric_limits<std::size_t>::max();
  server.settle();
  BOOST_TEST(held.streams.back()->writable());
  BOOST_TEST(held.listener->writable == 1);
  held.streams.back()->choice_end(0, actors::FinishReason::stop);
  held.streams.back()->end({3, 1});
  server.settle();
  BOOST_TEST(count(server.take_output(), "token") == static_cast<std::size_t>(deltas));
}

BOOST_AUTO_TEST_CASE(a_reader_that_stands_still_loses_its_answer_and_is_counted) {
  OpenStream stream;
  auto& [server, held] = stream;
  server.wire->room = 10;
  server.settle();
  server.advance(29s);
  BOOST_TEST(held.listener->gone == 0);
  server.advance(2s);
  BOOST_TEST(held.listener->gone == 1);
  BOOST_TEST(server.wire->aborted);
  BOOST_TEST(server.context->counters.readers_too_slow == 1U);
  BOOST_TEST(server.records.back().error == "reader_too_slow");
  held.streams.back()->fail({actors::errc::reader_too_slow, "slow"});
}

BOOST_AUTO_TEST_CASE(a_reader_that_reads_a_little_at_a_time_keeps_its_answer) {
  OpenStream stream;
  auto& [server, held] = stream;
  for (int i = 0; i < 100; ++i) held.delta("token");
  for (int i = 0; i < 10; ++i) {
    server.wire->room = 10;
    server.settle();
    server.advance(29s);
  }
  BOOST_TEST(held.listener->gone == 0);
  server.advance(2s);   // and nothing more is read
  BOOST_TEST(held.listener->gone == 1);
  BOOST_TEST(server.context->counters.readers_too_slow == 1U);
  held.streams.back()->fail({actors::errc::reader_too_slow, "slow"});
}

BOOST_AUTO_TEST_CASE(a_client_that_reads_no_answers_cannot_make_the_input_grow) {
  MemoryServer server;
  server.open();
  server.wire->room = 1000;
  std::string many;
  for (int i = 0; i < 20000; ++i) many += get("/health");
  server.send(many);
  BOOST_TEST(server.wire->to_server.size() > many.size() - 400000);
  server.wire->room = std::numeric_limits<std::size_t>::max();
  server.settle();
  BOOST_TEST(count(server.take_output(), "alive") == 20000U);
}

BOOST_AUTO_TEST_CASE(a_silent_stream_gets_comments_and_no_one_else_does) {
  MemoryServer server;
  HeldStreams held(server.service);
  server.open();
  server.send(post("/v1/chat/completions", chat_stream));
  server.advance(40s);
  BOOST_TEST(server.take_output().empty());   // before start there is no stream to comment in
  held.streams.back()->start(3);
  server.settle();
  (void)server.take_output();
  server.advance(35s);
  BOOST_TEST(server.take_output() == "8\r\n: ping\n\n\r\n");
  held.streams.back()->fail({actors::errc::device_fault, "broken"});
  server.settle();
  const std::string out = server.take_output();
  BOOST_TEST(out.find("device_fault") != std::string::npos);
  BOOST_TEST(out.find("[DONE]") == std::string::npos);
  BOOST_TEST(out.ends_with("0\r\n\r\n"));
  server.advance(30s);
  BOOST_TEST(server.take_output().empty());
}

// C06
BOOST_AUTO_TEST_CASE(a_failure_before_start_is_a_status_also_for_a_stream) {
  MemoryServer server;
  HeldStreams held(server.service);
  server.open();
  for (const std::string& body : {chat_stream, chat_whole}) {
    server.send(post("/v1/chat/completions", body));
    held.streams.back()->fail({actors::errc::overloaded, "the queue is full", "", 3});
    server.settle();
    const std::string out = server.take_output();
    BOOST_TEST(out.starts_with("HTTP/1.1 503 "));
    BOOST_TEST(out.find("Retry-After: 3\r\n") != std::string::npos);
    BOOST_TEST(out.find("event-stream") == std::string::npos);
  }
  server.send(post("/v1/chat/completions", chat_whole));
  held.streams.back()->start(3);   // for an answer that is not streamed the status is still open
  held.streams.back()->fail({actors::errc::device_fault, "broken"});
  server.settle();
  BOOST_TEST(server.take_output().starts_with("HTTP/1.1 500 "));
  BOOST_TEST(server.context->counters.answers_open == 0U);
}

BOOST_AUTO_TEST_CASE(deadlines_end_what_does_not_come) {
  {
    MemoryServer server;   // nothing at all
    server.open();
    server.advance(74s);
    BOOST_TEST(!server.wire->closed);
    server.advance(2s);
    BOOST_TEST(server.wire->closed);
    BOOST_TEST(server.take_output().empty());
  }
  {
    MemoryServer server;   // a head that drips
    server.open();
    server.send("GET / HT");
    for (int i = 0; i < 9; ++i) {
      server.advance(1s);
      server.send("T");
    }
    BOOST_TEST(!server.wire->write_shut);
    server.advance(2s);
    BOOST_TEST(server.take_output().starts_with("HTTP/1.1 408 "));
    BOOST_TEST(server.wire->write_shut);
    server.advance(3s);
    BOOST_TEST(server.wire->closed);
  }
  {
    MemoryServer server;   // a body that stops
    server.open();
    server.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
    server.advance(59s);
    BOOST_TEST(server.take_output().empty());
    server.advance(2s);
    BOOST_TEST(server.take_output().starts_with("HTTP/1.1 408 "));
  }
  {
    MemoryServer server;   // an answer may take as long as it takes
    HeldStreams held(server.service);
    server.open();
    server.send(post("/v1/chat/completions", chat_whole));
    server.advance(3600s);
    BOOST_TEST(!server.wire->closed);
    held.streams.back()->fail({actors::errc::deadline_exceeded, "late"});
    server.settle();
    BOOST_TEST(server.take_output().starts_with("HTTP/1.1 504 "));
  }
}

BOOST_AUTO_TEST_CASE(a_large_refused_body_is_not_waited_for_and_the_refusal_arrives) {
  MemoryServer server;
  server.open();
  server.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n" +
              std::string(1000, 'x'));
  BOOST_TEST(server.take_output().starts_with("HTTP/1.1 413 "));
  BOOST_TEST(server.wire->write_shut);
  BOOST_TEST(!server.wire->closed);   // a reset would overtake the answer
  server.send(std::string(1000, 'x'));
  BOOST_TEST(server.wire->to_server.empty());
  server.wire->client_ended = true;
  server.settle();
  BOOST_TEST(server.wire->closed);
}

BOOST_AUTO_TEST_CASE(a_small_refused_body_costs_no_connection) {
  MemoryServer server;
  server.open();
  server.send("POST /nowhere HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello" + get("/health"));
  const std::string out = server.take_output();
  BOOST_TEST(out.starts_with("HTTP/1.1 404 "));
  BOOST_TEST(out.ends_with(R"({"status":"alive"})"));
}

BOOST_AUTO_TEST_CASE(expect_continue_is_answered_before_the_body_comes) {
  MemoryServer server;
  server.service.on_submit(answer_with({"x"}));
  server.open();
  const std::string head =
      "POST /v1/chat/completions HTTP/1.1\r\nExpect: 100-continue\r\n"
      "Content-Length: " +
      std::to_string(chat_whole.size()) + "\r\n\r\n";
  server.send(head);
  BOOST_TEST(server.take_output() == "HTTP/1.1 100 Continue\r\n\r\n");
  server.send(chat_whole);
  BOOST_TEST(server.take_output().starts_with("HTTP/1.1 200 "));
  // A refusal comes instead of the invitation.
  server.send("POST /nowhere HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  BOOST_TEST(server.take_output().starts_with("HTTP/1.1 404 "));
  BOOST_TEST(server.wire->write_shut);
}

BOOST_AUTO_TEST_CASE(http_1_0_gets_streams_without_chunks) {
  MemoryServer server;
  server.service.on_submit(answer_with({"x"}));
  server.open();
  const auto old = [](const std::string& body) {
    return "POST /v1/chat/completions HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  server.send(old(chat_whole));
  const std::string whole = server.take_output();
  BOOST_TEST(whole.find("Connection: keep-alive\r\n") != std::string::npos);
  BOOST_TEST(!server.wire->closed);
  server.send(old(chat_stream));
  const std::string stream = server.take_output();
  BOOST_TEST(stream.find("chunked") == std::string::npos);
  BOOST_TEST(stream.find("Connection: close\r\n") != std::string::npos);
  BOOST_TEST(stream.ends_with("data: [DONE]\n\n"));
  BOOST_TEST(server.wire->closed);
}

BOOST_AUTO_TEST_CASE(draining_ends_resting_connections_and_lets_answers_finish) {
  MemoryServer resting;
  resting.open();
  resting.context->draining = true;
  resting.connection->wake();
  resting.settle();
  BOOST_TEST(resting.wire->closed);

  OpenStream stream;
  auto& [server, held] = stream;
  server.context->draining = true;
  server.connection->wake();
  server.settle();
  BOOST_TEST(!server.wire->closed);
  server.send(post("/v1/chat/completions", chat_stream));   // pipelined behind
  held.streams.back()->choice_end(0, actors::FinishReason::stop);
  held.streams.back()->end({3, 1});
  server.settle();
  const std::string out = server.take_output();
  BOOST_TEST(out.find("[DONE]") != std::string::npos);
  BOOST_TEST(out.find("HTTP/1.1 503 ") != std::string::npos);
  BOOST_TEST(out.find("Retry-After: ") != std::string::npos);
  BOOST_TEST(held.requests.size() == 1U);
  BOOST_TEST(server.answers_closed == 1);
}

BOOST_AUTO_TEST_CASE(large_bodies_are_parsed_elsewhere) {
  MemoryServer server;
  std::vector<std::function<void()>> elsewhere;
  server.context->offload = [&](std::function<void()> work) {
    elsewhere.push_back(std::move(work));
  };
  server.service.on_submit(answer_with({"x"}));
  server.open();
  const std::string large = R"({"model":"model-a","messages":[{"role":"user","content":")" +
                            std::string(100000, 'a') + "\"}]}";
  server.send(post("/v1/chat/completions", large));
  BOOST_TEST(server.take_output().empty());
  BOOST_TEST_REQUIRE(elsewhere.size() == 1U);
  elsewhere[0]();
  server.settle();
  BOOST_TEST(server.take_output().starts_with("HTTP/1.1 200 "));
  server.send(post("/v1/chat/completions", large.substr(1)));
  elsewhere[1]();
  server.settle();
  BOOST_TEST(server.take_output().starts_with("HTTP/1.1 400 "));
  // The client goes while its body is being parsed.
  server.send(post("/v1/chat/completions", large));
  server.wire->client_reset = true;
  server.settle();
  elsewhere[2]();
  server.settle();
  BOOST_TEST(server.service.submitted() == 1U);
  BOOST_TEST(server.context->counters.answers_open == 0U);
  elsewhere.clear();
}

BOOST_AUTO_TEST_CASE(an_id_of_the_client_is_the_id_everywhere) {
  MemoryServer server;
  HeldStreams held(server.service);
  server.open();
  server.send(post("/v1/chat/completions", chat_stream, "X-Request-ID: my.id-1\r\n"));
  BOOST_TEST(held.requests.back().id == "my.id-1");
  held.streams.back()->start(3);
  server.settle();
  const std::string out = server.take_output();
  BOOST_TEST(out.find("x-request-id: my.id-1\r\n") != std::string::npos);
  BOOST_TEST(out.find(R"("id":"my.id-1")") != std::string::npos);
  held.streams.back()->fail({actors::errc::cancelled, "x"});
  server.settle();
  (void)server.take_output();
  server.send(post("/v1/chat/completions", chat_stream, "X-Request-ID: not fit\r\n"));
  BOOST_TEST(server.take_output().starts_with("HTTP/1.1 400 "));
  server.send(post("/v1/completions", R"({"model":"model-a","prompt":"x"})"));
  BOOST_TEST(held.requests.back().id.starts_with("cmpl-"));
  BOOST_TEST(held.requests.back().id.size() == 5U + 32U);
  held.streams.back()->fail({actors::errc::cancelled, "x"});
  server.settle();
}

BOOST_AUTO_TEST_CASE(every_request_leaves_one_record_without_its_text) {
  MemoryServer server;
  server.service.on_submit(answer_with({"secret answer"}));
  server.open();
  server.send(post("/v1/chat/completions", chat_stream) + get("/health") + get("/nowhere") +
              post("/v1/chat/completions", "{}"));
  BOOST_TEST_REQUIRE(server.records.size() == 4U);
  BOOST_TEST(server.records[0].route == "chat_completions");
  BOOST_TEST(server.records[0].model == "model-a");
  BOOST_TEST(server.records[0].status == 200U);
  BOOST_TEST(server.records[0].prompt_tokens == 7U);
  BOOST_TEST(server.records[0].completion_tokens == 1U);
  BOOST_TEST(server.records[0].bytes_sent > 100U);
  BOOST_TEST(server.records[1].route == "health");
  BOOST_TEST(server.records[2].status == 404U);
  BOOST_TEST(server.records[3].status == 400U);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::http::tests
