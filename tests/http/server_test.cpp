// server_test.cpp: the server over real sockets with a fake service: cases C01 to C21 as far as a
// front end decides them. It is one file because the cases share their server and its helpers.
#include "tests/http/server_fixture.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>

#include <unistd.h>

namespace duet::http::tests {

namespace {

namespace json = boost::json;

std::string chat(std::string_view fields = "") {
  return R"({"model":"model-a","messages":[{"role":"user","content":"hi"}])" + std::string(fields) +
         "}";
}

/// The joined contents of a chat stream, by index.
std::map<std::int64_t, std::string> contents(const Response& response) {
  std::map<std::int64_t, std::string> texts;
  for (const std::string& event : events(response.body)) {
    if (event == "[DONE]") continue;
    const json::value chunk = json::parse(event);
    for (const json::value& choice : chunk.at("choices").as_array()) {
      const json::object& delta = choice.at("delta").as_object();
      if (const json::value* const text = delta.if_contains("content"))
        texts[choice.at("index").as_int64()] += text->as_string();
    }
  }
  return texts;
}

/// A service whose streams a test writes to from its own thread; the listener says when a reader
/// is gone.
class Streams final : public actors::OutputListener {
 public:
  void on_writable() noexcept override {
    const std::lock_guard lock(mutex_);
    ++writable_;
    changed_.notify_all();
  }
  void on_reader_gone() noexcept override {
    const std::lock_guard lock(mutex_);
    ++gone_;
    changed_.notify_all();
  }
  static FakeService::Script script(const std::shared_ptr<Streams>& self) {
    return [self](const actors::GenerateRequest&,
                  const std::shared_ptr<actors::OutputStream>& stream) {
      stream->listen(self);
      const std::lock_guard lock(self->mutex_);
      self->streams_.push_back(stream);
      self->changed_.notify_all();
    };
  }
  /// Waits for the number of streams so far.
  std::shared_ptr<actors::OutputStream> stream(std::size_t index) {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return streams_.size() > index; });
    return streams_[index];
  }
  void wait_gone(int count) {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return gone_ >= count; });
  }
  void wait_writable(int count) {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return writable_ >= count; });
  }
  int gone() {
    const std::lock_guard lock(mutex_);
    return gone_;
  }

 private:
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition condition) {
    // Boost.Test's macros are for one thread; this is called on several.
    if (changed_.wait_for(lock, std::chrono::seconds(20), condition)) return;
    throw std::runtime_error("waited in vain for a stream");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<actors::OutputStream>> streams_;
  int gone_ = 0;
  int writable_ = 0;
};

void say(actors::OutputStream& stream, std::string_view text) {
  actors::OutputDelta delta;
  delta.text = text;
  stream.delta(delta);
}

void finish(actors::OutputStream& stream) {
  stream.choice_end(0, actors::FinishReason::stop);
  stream.end({7, 1});
}

}   // namespace

BOOST_AUTO_TEST_SUITE(http_server)

// C01 R-10.1
BOOST_AUTO_TEST_CASE(joined_deltas_are_the_unstreamed_content) {
  ServerFixture server;
  const std::vector<std::vector<std::string>> answers = {
      {"Hel", "lo \"", "\xF0\x9F\x98\x80"},
      {"\xE4\xBD\xA0", "\xE5\xA5\xBD", "\n\t\\"},
      {"\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB", "", "end"},
      {"\x01\x02\x7F", "</script>", "\xE2\x80\xA8"},
      {},
  };
  for (const auto& pieces : answers) {
    server.service.on_submit(answer_with(pieces));
    std::string joined;
    for (const std::string& piece : pieces) joined += piece;
    const Response stream = server.ask(post("/v1/chat/completions", chat(R"(,"stream":true)")));
    const Response whole = server.ask(post("/v1/chat/completions", chat()));
    BOOST_TEST(stream.status == 200U);
    BOOST_TEST(stream.whole);
    BOOST_TEST(contents(stream)[0] == joined);
    BOOST_TEST(
        json::parse(whole.body).at("choices").at(0).at("message").at("content").as_string() ==
        joined);
    BOOST_TEST(whole.body.find("\xEF\xBF\xBD") == std::string::npos);
  }
}

// C03
BOOST_AUTO_TEST_CASE(broken_text_is_400_and_the_connection_goes_on) {
  ServerFixture server;
  server.service.on_submit(answer_with({"x"}));
  Client client(server.port());
  for (const std::string& text : {std::string(R"(\ud800)"), std::string("\xFF"),
                                  std::string(R"(\udc00\ud800)"), std::string("\xC3")}) {
    client.send(
        post("/v1/chat/completions",
             R"({"model":"model-a","messages":[{"role":"user","content":")" + text + R"("}]})"));
    const Response refused = client.read();
    BOOST_TEST(refused.status == 400U);
    BOOST_TEST(json::parse(refused.body).at("error").at("type").as_string() ==
               "invalid_request_error");
  }
  client.send(post("/v1/chat/completions", chat()));
  BOOST_TEST(client.read().status == 200U);
}

// C04
BOOST_AUTO_TEST_CASE(a_reset_after_some_chunks_reaches_the_request) {
  ServerFixture server;
  const auto streams = std::make_shared<Streams>();
  server.service.on_submit(Streams::script(streams));
  for (const bool graceful : {false, true}) {
    const std::size_t index = graceful ? 1 : 0;
    Client client(server.port());
    client.send(post("/v1/chat/completions", chat(R"(,"stream":true)")));
    const auto stream = streams->stream(index);
    stream->start(7);
    for (int i = 0; i < 3; ++i) say(*stream, "tok" + std::to_string(i));
    client.read_until("tok2");
    if (graceful) {
      // A FIN alone is no cancel; what is written after it meets a closed socket.
      client.close();
      while (streams->gone() <= static_cast<int>(index)) say(*stream, "more");
    } else {
      client.reset();
    }
    streams->wait_gone(static_cast<int>(index) + 1);
    stream->fail({actors::errc::cancelled, "gone"});
  }
  BOOST_TEST(server.server().counters().readers_gone == 2U);
  BOOST_TEST(server.server().counters().answers_open == 0U);
  BOOST_TEST(server.ask(get("/health")).status == 200U);
}

// C05
BOOST_AUTO_TEST_CASE(a_fin_is_no_cancel) {
  ServerFixture server;
  const auto streams = std::make_shared<Streams>();
  server.service.on_submit(Streams::script(streams));
  std::size_t index = 0;
  for (const char* fields : {R"(,"stream":true)", ""}) {
    Client client(server.port());
    client.send(post("/v1/chat/completions", chat(fields)));
    client.half_close();
    const auto stream = streams->stream(index++);
    stream->start(7);
    for (int i = 0; i < 50; ++i) say(*stream, "tok ");
    finish(*stream);
    const Response response = client.read();
    BOOST_TEST(response.status == 200U);
    BOOST_TEST(response.whole);
    BOOST_TEST(response.body.find("tok ") != std::string::npos);
    BOOST_TEST(client.at_end());
  }
  BOOST_TEST(streams->gone() == 0);
}

// C06
BOOST_AUTO_TEST_CASE(a_refusal_before_the_commit_point_is_a_status) {
  ServerFixture server;
  using actors::errc;
  const std::vector<std::pair<errc, unsigned>> cases = {
      {errc::overloaded, 503},  {errc::unavailable, 503},       {errc::quota_exceeded, 429},
      {errc::cancelled, 499},   {errc::deadline_exceeded, 504}, {errc::request_exists, 409},
      {errc::bad_request, 400}, {errc::device_fault, 500}};
  for (const auto& [code, status] : cases) {
    server.service.on_submit([code = code](const actors::GenerateRequest&,
                                           const std::shared_ptr<actors::OutputStream>& stream) {
      stream->fail({code, "no", "messages"});
    });
    for (const char* fields : {R"(,"stream":true)", ""}) {
      const Response response = server.ask(post("/v1/chat/completions", chat(fields)));
      BOOST_TEST(response.status == status);
      BOOST_TEST(response.field("content-type") == "application/json");
      BOOST_TEST(response.field("retry-after").empty() == (status != 503 && status != 429));
      BOOST_TEST(json::parse(response.body).at("error").at("code").as_string() ==
                 actors::to_string(code));
    }
  }
}

// C07
BOOST_AUTO_TEST_CASE(usage_comes_last_and_only_when_asked) {
  ServerFixture server;
  server.service.on_submit(answer_with({"a", "b"}));
  const auto usage_chunks = [&](const std::string& fields) {
    const Response response = server.ask(post("/v1/chat/completions", chat(fields)));
    BOOST_TEST(response.status == 200U);
    const std::vector<std::string> list = events(response.body);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i] == "[DONE]") continue;
      const json::value event = json::parse(list[i]);
      const json::value* const usage = event.as_object().if_contains("usage");
      const bool filled = usage != nullptr && !usage->is_null();
      BOOST_TEST(event.at("choices").as_array().empty() == filled);
      if (filled) places.push_back(list.size() - i);
    }
    BOOST_TEST(list.back() == "[DONE]");
    return places;
  };
  const std::vector<std::size_t> none;
  const std::vector<std::size_t> last_but_done = {2};
  BOOST_TEST(usage_chunks(R"(,"stream":true)") == none);
  BOOST_TEST(usage_chunks(R"(,"stream":true,"stream_options":{"include_usage":false})") == none);
  BOOST_TEST(usage_chunks(R"(,"stream":true,"stream_options":{"include_usage":true})") ==
             last_but_done);
  BOOST_TEST(usage_chunks(R"(,"n":2,"stream":true,"stream_options":{"include_usage":true})") ==
             last_but_done);
  BOOST_TEST(
      server.ask(post("/v1/chat/completions", chat(R"(,"stream_options":{"include_usage":true})")))
          .status == 400U);
  const Response whole = server.ask(post("/v1/chat/completions", chat()));
  BOOST_TEST(json::parse(whole.body).at("usage").at("total_tokens").as_int64() == 9);
}

// C08
BOOST_AUTO_TEST_CASE(each_index_has_exactly_one_finish_reason) {
  ServerFixture server;
  server.service.on_submit([](const actors::GenerateRequest& request,
                              const std::shared_ptr<actors::OutputStream>& stream) {
    stream->start(7);
    for (std::uint32_t round = 0; round <= request.choices; ++round) {
      for (std::uint32_t index = 0; index < request.choices; ++index) {
        actors::OutputDelta delta;
        delta.index = index;
        delta.text = "t";
        if (round <= index) stream->delta(delta);   // different lengths
        if (round == index + 1) stream->choice_end(index, actors::FinishReason::length);
      }
    }
    stream->end({7, 6});
  });
  for (const std::uint32_t n : {1U, 2U, 3U, 8U}) {
    const Response response = server.ask(
        post("/v1/chat/completions", chat(R"(,"stream":true,"n":)" + std::to_string(n))));
    std::map<std::int64_t, int> ends;
    std::map<std::int64_t, int> roles;
    for (const std::string& event : events(response.body)) {
      if (event == "[DONE]") continue;
      const json::value choice = json::parse(event).at("choices").at(0);
      const std::int64_t index = choice.at("index").as_int64();
      if (!choice.at("finish_reason").is_null()) ++ends[index];
      if (choice.at("delta").as_object().contains("role")) {
        ++roles[index];
        BOOST_TEST(ends[index] == 0);
      }
    }
    for (std::uint32_t index = 0; index < n; ++index) {
      BOOST_TEST(ends[index] == 1);
      BOOST_TEST(roles[index] == 1);
      BOOST_TEST(contents(response)[index] == std::string(index + 1, 't'));
    }
  }
}

// C09
BOOST_AUTO_TEST_CASE(a_stream_says_what_it_is_and_begins_with_the_role) {
  ServerFixture server;
  server.service.on_submit(answer_with({"a", "b"}));
  const Response response = server.ask(
      post("/v1/chat/completions", chat(R"(,"stream":true)"), "Accept-Encoding: gzip, br\r\n"));
  BOOST_TEST(response.field("content-type") == "text/event-stream");
  BOOST_TEST(response.field("cache-control") == "no-cache");
  BOOST_TEST(response.field("content-encoding").empty());
  BOOST_TEST(!response.field("date").empty());
  std::set<std::string> identities;
  const std::vector<std::string> list = events(response.body);
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    const json::value event = json::parse(list[i]);
    identities.insert(std::string(event.at("id").as_string()) + " " +
                      std::to_string(event.at("created").as_int64()) + " " +
                      std::string(event.at("model").as_string()));
    const bool has_role = event.at("choices").at(0).at("delta").as_object().contains("role");
    BOOST_TEST(has_role == (i == 0));
  }
  BOOST_TEST(identities.size() == 1U);
  BOOST_TEST(identities.begin()->starts_with(response.field("x-request-id") + " "));
}

// C16, the front end's part
BOOST_AUTO_TEST_CASE(a_prompt_over_the_context_is_400_before_headers) {
  ServerFixture server;
  server.service.on_submit(
      [](const actors::GenerateRequest&, const std::shared_ptr<actors::OutputStream>& stream) {
        stream->fail({actors::errc::bad_request, "513 tokens of prompt, 512 fit", "messages"});
      });
  for (const char* fields : {R"(,"stream":true)", ""}) {
    const Response response = server.ask(post("/v1/chat/completions", chat(fields)));
    BOOST_TEST(response.status == 400U);
    BOOST_TEST(json::parse(response.body).at("error").at("param").as_string() == "messages");
    BOOST_TEST(response.body.find("513 tokens of prompt, 512 fit") != std::string::npos);
  }
}

// C17
BOOST_AUTO_TEST_CASE(chunked_bodies_are_read_over_a_socket_in_single_bytes) {
  ServerFixture server;
  server.service.on_submit(answer_with({"x"}));
  Client client(server.port());
  std::string request =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char c : chat()) request += std::string("1\r\n") + c + "\r\n";
  request += "0\r\nX-Trailer: 1\r\n\r\n";
  for (const char c : request) client.send(std::string_view(&c, 1));
  BOOST_TEST(client.read().status == 200U);
  for (const char* fields :
       {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n"}) {
    const Response refused = server.ask("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\n" +
                                        std::string(fields) + "\r\n0\r\n\r\n");
    BOOST_TEST(refused.status == 400U);
    BOOST_TEST(refused.field("connection") == "close");
  }
  for (const char* size : {"FFFFFFFFFFFFFFFF", "10000000000000000", "-1", "g"}) {
    BOOST_TEST(server
                   .ask("POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
                        std::string(size) + "\r\n{}\r\n0\r\n\r\n")
                   .status == 400U);
  }
  BOOST_TEST(server.service.submitted() == 1U);
}

// C18
BOOST_AUTO_TEST_CASE(requests_behind_one_another_are_all_answered) {
  ServerFixture server;
  server.service.on_submit(answer_with({"x"}));
  Client client(server.port());
  client.send(get("/health") + get("/v1/models"));
  BOOST_TEST(client.read().body == R"({"status":"alive"})");
  BOOST_TEST(client.read().body.find("model-b") != std::string::npos);
  client.send("DELETE /internal/requests/none HTTP/1.1\r\nHost: t\r\n\r\n" + get("/health"));
  BOOST_TEST(client.read().status == 404U);
  BOOST_TEST(client.read().status == 200U);
  client.send(post("/v1/chat/completions", chat(R"(,"stream":true)")) + get("/ready") +
              post("/v1/chat/completions", chat()));
  BOOST_TEST(events(client.read().body).back() == "[DONE]");
  BOOST_TEST(client.read().status == 200U);
  BOOST_TEST(client.read().body.find("chat.completion") != std::string::npos);
  client.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /health HTTP/1.0\r\n\r\n");
  BOOST_TEST(client.read().field("connection") == "keep-alive");
  BOOST_TEST(client.read().status == 200U);
  BOOST_TEST(client.at_end());
}

// C19
BOOST_AUTO_TEST_CASE(media_types_are_taken_or_415) {
  ServerFixture server;
  server.service.on_submit(answer_with({"x"}));
  const auto status_of = [&](const std::string& fields) {
    const std::string body = chat();
    return server
        .ask("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\n" + fields +
             "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body)
        .status;
  };
  BOOST_TEST(status_of("") == 200U);
  BOOST_TEST(status_of("Content-Type: application/json; charset=utf-8\r\n") == 200U);
  BOOST_TEST(status_of("CONTENT-TYPE: APPLICATION/JSON\r\n") == 200U);
  BOOST_TEST(status_of("Content-Type: text/plain\r\n") == 415U);
  BOOST_TEST(status_of("Content-Type: application/json; charset=latin1\r\n") == 415U);
  BOOST_TEST(status_of("Content-Encoding: gzip\r\n") == 415U);
}

// C20
BOOST_AUTO_TEST_CASE(paths_and_methods_are_exact) {
  ServerFixture server;
  server.service.on_submit(answer_with({"x"}));
  const auto ask = [&](const std::string& method, const std::string& target) {
    return server.ask(method + " " + target + " HTTP/1.1\r\nHost: t\r\n\r\n", method == "HEAD");
  };
  BOOST_TEST(ask("GET", "/v1/models/").status == 200U);
  BOOST_TEST(ask("GET", "/v1/models?limit=1").status == 200U);
  BOOST_TEST(ask("GET", "/v1//models").status == 404U);
  BOOST_TEST(ask("GET", "/v1/%2e%2e/v1/models").status == 404U);
  BOOST_TEST(ask("GET", "/v1/models/%2e%2e").status == 404U);
  BOOST_TEST(ask("GET", "/v1/chat/completions").status == 405U);
  BOOST_TEST(ask("GET", "/v1/chat/completions").field("allow") == "POST");
  BOOST_TEST(ask("PATCH", "/health").status == 405U);
  BOOST_TEST(ask("OPTIONS", "/v1/models").field("allow") == "GET, HEAD");
  BOOST_TEST(ask("DELETE", "/v1/models/model-a").status == 405U);
  const Response head = ask("HEAD", "/v1/models");
  BOOST_TEST(head.status == 200U);
  BOOST_TEST(head.field("content-length") == std::to_string(ask("GET", "/v1/models").body.size()));
  BOOST_TEST(ask("HEAD", "/v1/completions").status == 405U);
  BOOST_TEST(server.ask(post("/v1/chat/completions/?x=1", chat())).status == 200U);
  Client client(server.port());   // a HEAD's missing body confuses nobody
  client.send("HEAD /health HTTP/1.1\r\nHost: t\r\n\r\n" + get("/health"));
  BOOST_TEST(client.read(true).status == 200U);
  BOOST_TEST(client.read().body == R"({"status":"alive"})");
}

// C21 R-9.5: main is held up, and these answer all the same, also on a connection that has had a
// completion.
BOOST_AUTO_TEST_CASE(health_metrics_and_models_answer_while_main_is_busy) {
  ServerFixture server;
  server.service.on_submit(answer_with({"x"}));
  Client kept(server.port());
  kept.send(post("/v1/chat/completions", chat()));
  BOOST_TEST(kept.read().status == 200U);
  std::promise<void> entered;
  std::promise<void> release;
  boost::asio::post(server.main(), [&] {
    entered.set_value();
    release.get_future().wait();
  });
  entered.get_future().wait();
  for (const char* target : {"/health", "/ready", "/metrics", "/v1/models", "/v2/health/live"}) {
    BOOST_TEST(server.ask(get(target)).status == 200U, target);
    kept.send(get(target));
    BOOST_TEST(kept.read().status == 200U, target);
  }
  server.service.set_running("id-1", "");
  BOOST_TEST(server.ask("DELETE /internal/requests/id-1 HTTP/1.1\r\n\r\n").status == 200U);
  BOOST_TEST(server.ask(get("/nowhere")).status == 404U);
  kept.send(post("/v1/chat/completions", chat()));   // waits for main, and nothing else does
  BOOST_TEST(server.ask(get("/health")).status == 200U);
  release.set_value();
  BOOST_TEST(kept.read().status == 200U);
}

BOOST_AUTO_TEST_CASE(one_executor_serves_both_homes) {
  ServerFixture server({}, true);
  server.service.on_submit(answer_with({"x"}));
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send(get("/health") + post("/v1/chat/completions", chat(R"(,"stream":true)")));
    BOOST_TEST(client.read().status == 200U);
    BOOST_TEST(contents(client.read())[0] == "x");
  }
}

BOOST_AUTO_TEST_CASE(a_slow_reader_is_bounded_over_a_real_socket) {
  ServerOptions options;
  options.limits.socket_send_bytes = 4096;
  ServerFixture server(options);
  const auto streams = std::make_shared<Streams>();
  server.service.on_submit(Streams::script(streams));
  Client client(server.port(), 4096);
  client.send(post("/v1/chat/completions", chat(R"(,"stream":true)")));
  const auto stream = streams->stream(0);
  stream->start(7);
  std::size_t said = 0;
  while (stream->writable()) {
    say(*stream, "0123456789");
    BOOST_TEST_REQUIRE(++said < 100000U);
  }
  // A neighbour is not held up.
  server.service.on_submit(answer_with({"x"}));
  BOOST_TEST(server.ask(post("/v1/chat/completions", chat())).status == 200U);
  std::string read;
  client.read_until("0123456789");
  std::thread reader([&] { read = client.read().body; });
  streams->wait_writable(1);
  finish(*stream);
  reader.join();
  std::size_t got = 0;
  for (std::size_t at = read.find("0123456789"); at != std::string::npos;
       at = read.find("0123456789", at + 1))
    ++got;
  BOOST_TEST(got == said);
}

// R-9.1 at the edge: many streams at once, written from threads that are not the server's.
BOOST_AUTO_TEST_CASE(a_hundred_streams_at_once_keep_their_answers_apart) {
  ServerFixture server;
  const auto streams = std::make_shared<Streams>();
  server.service.on_submit([&](const actors::GenerateRequest& request,
                               const std::shared_ptr<actors::OutputStream>& stream) {
    // The id is the client's, so that the answer tells whose it is.
    stream->start(7);
    say(*stream, request.id);
    Streams::script(streams)(request, stream);   // last: from here on the writers have it
  });
  constexpr std::size_t count = 100;
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(post("/v1/chat/completions", chat(R"(,"stream":true)"),
                              "x-request-id: client-" + std::to_string(i) + "\r\n"));
  }
  std::vector<std::thread> writers;
  for (std::size_t writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (std::size_t i = writer; i < count; i += 4) {
        const auto stream = streams->stream(i);
        for (int token = 0; token < 20; ++token) say(*stream, ".");
        finish(*stream);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (std::size_t i = 0; i < count; ++i) {
    const Response response = clients[i]->read();
    BOOST_TEST(response.whole);
    const std::string id = "client-" + std::to_string(i);
    BOOST_TEST(contents(response)[0] == id + std::string(20, '.'));
    BOOST_TEST(response.field("x-request-id") == id);
  }
  BOOST_TEST(server.server().counters().answers_open == 0U);
}

// R-10.2 R-14.4
BOOST_AUTO_TEST_CASE(models_readiness_and_metrics_show_what_they_should_and_no_more) {
  ServerFixture server;
  std::vector<actors::ModelStatus> models = server.service.models();
  models[1].state = actors::WorkerState::warming;
  models[1].reason = "golden prompt 2 of 4";
  models[1].chip = 1;
  server.service.set_models(models);
  const Response list = server.ask(get("/v1/models"));
  BOOST_TEST(json::parse(list.body).at("data").as_array().size() == 1U);
  BOOST_TEST(server.ask(get("/v1/models/model-a")).status == 200U);
  BOOST_TEST(server.ask(get("/v1/models/model-b")).status == 404U);
  const Response ready = server.ask(get("/ready"));
  BOOST_TEST(ready.status == 503U);
  BOOST_TEST(!ready.field("retry-after").empty());
  const json::value states = json::parse(ready.body);
  BOOST_TEST(states.at("error").at("type").as_string() == "unavailable_error");
  BOOST_TEST(states.at("models").at(1).at("state").as_string() == "warming");
  BOOST_TEST(states.at("models").at(1).at("reason").as_string() == "golden prompt 2 of 4");
  BOOST_TEST(server.ask(get("/ready?model=model-a")).status == 200U);
  BOOST_TEST(server.ask(get("/ready?model=model-b")).status == 503U);
  BOOST_TEST(server.ask(get("/ready?model=model-c")).status == 404U);
  BOOST_TEST(server.ask(get("/v2/models/model-a/ready")).status == 200U);
  BOOST_TEST(server.ask(get("/health")).status == 200U);

  std::vector<actors::ModelMetrics> metrics = server.service.metrics();
  metrics[1].generation_tokens = 42;
  metrics[1].ttft_buckets = std::vector<std::uint64_t>(15, 3);
  server.service.set_metrics(metrics);
  (void)server.ask(get("/health", "x-request-id: id-not-to-be-seen\r\n"));
  const Response page = server.ask(get("/metrics"));
  BOOST_TEST(page.field("content-type").starts_with("text/plain; version=0.0.4"));
  for (const char* line :
       {"vllm:generation_tokens_total{engine=\"1\",model_name=\"model-b\"} 42\n",
        "vllm:time_to_first_token_seconds_bucket{engine=\"1\",model_name=\"model-b\",le=\"+Inf\"} "
        "3\n",
        "vllm:num_requests_running{engine=\"0\",model_name=\"model-a\"} 0\n",
        "duet_http_responses_total{route=\"health\",code=\"200\"} 2\n",
        "duet_model_state{engine=\"1\",model_name=\"model-b\",state=\"warming\"} 1\n"}) {
    BOOST_TEST(page.body.find(line) != std::string::npos, line);
  }
  BOOST_TEST(page.body.find("id-not-to-be-seen") == std::string::npos);
  BOOST_TEST(page.body.find("chip") == std::string::npos);
  BOOST_TEST((page.body + list.body + ready.body).find("chip") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_request_is_cancelled_by_its_key_or_an_admin) {
  ServerOptions options;
  options.keys = {
      {"alice", "a-secret", false}, {"bob", "b-secret", false}, {"root", "r-secret", true}};
  ServerFixture server(options);
  const auto cancel = [&](const std::string& secret) {
    return server
        .ask("DELETE /internal/requests/id-1 HTTP/1.1\r\nAuthorization: Bearer " + secret +
             "\r\n\r\n")
        .status;
  };
  server.service.set_running("id-1", "alice");
  BOOST_TEST(cancel("wrong") == 401U);
  BOOST_TEST(cancel("b-secret") == 404U);
  BOOST_TEST(cancel("a-secret") == 200U);
  BOOST_TEST(cancel("a-secret") == 404U);
  server.service.set_running("id-1", "alice");
  BOOST_TEST(cancel("r-secret") == 200U);
  BOOST_TEST(server.ask(get("/v1/models")).field("www-authenticate") == "Bearer");
}

BOOST_AUTO_TEST_CASE(without_keys_only_loopback_is_served) {
  for (const char* address : {"127.0.0.1", "::1", "localhost", "127.8.9.1"}) {
    ServerOptions options;
    options.address = address;
    BOOST_CHECK_NO_THROW(check(options));
  }
  for (const char* address : {"0.0.0.0", "::", "192.0.2.1", "example.com", " ", "127.0.0.256"}) {
    ServerOptions options;
    options.address = address;
    BOOST_CHECK_THROW(check(options), std::invalid_argument);
  }
  ServerOptions open;
  open.address = "0.0.0.0";
  open.allow_anonymous = true;
  BOOST_CHECK_NO_THROW(check(open));
  open.allow_anonymous = false;
  open.keys = {{"a", "s", false}};
  BOOST_CHECK_NO_THROW(check(open));
  for (const auto& keys :
       std::vector<std::vector<ApiKey>>{{{"a", "", false}},
                                        {{"", "s", false}},
                                        {{"a", "s", false}, {"a", "t", false}},
                                        {{"a", "s", false}, {"b", "s", false}}}) {
    open.keys = keys;
    BOOST_CHECK_THROW(check(open), std::invalid_argument);
  }
}

BOOST_AUTO_TEST_CASE(a_busy_port_is_one_clear_message) {
  ServerFixture server;
  boost::asio::io_context context;
  runtime::RealClock clock(context.get_executor());
  runtime::RealRandom random;
  ServerOptions options;
  options.port = server.port();
  Server second(options, ServerContext{context.get_executor(), context.get_executor(), clock,
                                       random, server.service});
  const auto port = second.listen();
  BOOST_TEST_REQUIRE(port.has_error());
  BOOST_TEST(port.error().message.find("127.0.0.1 port " + std::to_string(server.port())) !=
             std::string::npos);
  BOOST_TEST(port.error().message.find("in use") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_unix_socket_is_served_and_its_stale_file_replaced) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("duet-http-" + std::to_string(::getpid()) + ".sock");
  ServerOptions options;
  options.unix_socket = path.string();
  {
    ServerFixture server(options);
    Client client(path.string());
    client.send(get("/health"));
    BOOST_TEST(client.read().status == 200U);
    BOOST_CHECK_THROW(ServerFixture second(options), std::runtime_error);
  }
  BOOST_TEST(!std::filesystem::exists(path));
}

BOOST_AUTO_TEST_CASE(connections_above_the_limit_are_told_so) {
  ServerOptions options;
  options.limits.connections = 2;
  ServerFixture server(options);
  Client first(server.port());
  Client second(server.port());
  first.send(get("/health"));
  second.send(get("/health"));
  BOOST_TEST(first.read().status == 200U);
  BOOST_TEST(second.read().status == 200U);
  const Response refused = server.ask(get("/health"));
  BOOST_TEST(refused.status == 503U);
  BOOST_TEST(!refused.field("retry-after").empty());
  BOOST_TEST(server.server().counters().connections_refused == 1U);
  first.send(get("/health"));
  BOOST_TEST(first.read().status == 200U);
}

// C31, the front end's part
BOOST_AUTO_TEST_CASE(draining_refuses_the_new_and_finishes_the_old) {
  ServerFixture server;
  const auto streams = std::make_shared<Streams>();
  server.service.on_submit(Streams::script(streams));
  Client resting(server.port());
  resting.send(get("/health"));
  BOOST_TEST(resting.read().status == 200U);
  Client streaming(server.port());
  streaming.send(post("/v1/chat/completions", chat(R"(,"stream":true)")));
  const auto stream = streams->stream(0);
  stream->start(7);
  say(*stream, "before");
  streaming.read_until("before");
  std::promise<void> drained;
  server.server().drain([&] { drained.set_value(); });
  BOOST_TEST(resting.at_end());
  const Response ready = server.ask(get("/ready"));
  BOOST_TEST(ready.status == 503U);
  BOOST_TEST(json::parse(ready.body).at("draining").as_bool());
  BOOST_TEST(server.ask(get("/health")).status == 200U);
  const Response refused = server.ask(post("/v1/chat/completions", chat()));
  BOOST_TEST(refused.status == 503U);
  BOOST_TEST(!refused.field("retry-after").empty());
  auto done = drained.get_future();
  BOOST_TEST((done.wait_for(std::chrono::seconds(0)) == std::future_status::timeout));
  say(*stream, "after");
  finish(*stream);
  const Response response = streaming.read();
  BOOST_TEST(contents(response)[0] == "beforeafter");
  done.wait();
  BOOST_TEST(streaming.at_end());
  server.server().stop_accepting();
}

BOOST_AUTO_TEST_CASE(hostile_bytes_get_one_answer_or_a_close) {
  ServerFixture server;
  server.service.on_submit(answer_with({"x"}));
  std::string binary;
  for (int i = 0; i < 1000; ++i) binary += static_cast<char>(i * 7);
  const std::vector<std::string> inputs = {
      "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03 a TLS hello\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      binary + "\r\n\r\n",
      "GET " + std::string(100000, '/') + " HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\n" + std::string(100000, 'x') + "\r\n\r\n",
      post("/v1/chat/completions", std::string(200000, '[')),
      post("/v1/chat/completions", "{\"a\":" + std::string(1000, '9') + "}"),
  };
  for (const std::string& input : inputs) {
    const Response response = server.ask(input);
    BOOST_TEST(response.status >= 400U);
    BOOST_TEST(response.status < 600U);
    BOOST_TEST(response.status != 500U);
    BOOST_TEST(json::parse(response.body).at("error").at("message").is_string());
  }
  BOOST_TEST(server.service.submitted() == 0U);
  BOOST_TEST(server.ask(get("/health")).status == 200U);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::http::tests
