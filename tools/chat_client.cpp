// chat_client.cpp: HTTP and server-sent events, one step after the other.
#include "tools/chat_client.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/none.hpp>
#include <boost/throw_exception.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace duet::tools {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace json = boost::json;
using boost::system::error_code;

constexpr int silence_seconds_max = 120;
constexpr std::size_t event_bytes_max = std::size_t{1} << 20U;
constexpr std::size_t error_bytes_max = std::size_t{64} << 10U;

std::string body_of(const ChatQuestion& question) {
  const json::object message{{"role", "user"}, {"content", question.text}};
  return json::serialize(json::object{{"model", question.model},
                                      {"messages", json::array{message}},
                                      {"stream", true},
                                      {"temperature", 0},
                                      {"max_tokens", question.tokens_max}});
}

/// Cuts a byte stream into events and gives their texts away.
class Events {
 public:
  explicit Events(const std::function<void(const std::string&)>& on_text) : on_text_(on_text) {}

  /// False: `error` says why not to go on.
  bool add(std::string_view bytes) {
    // Lines may end with CR LF as well.
    std::copy_if(bytes.begin(), bytes.end(), std::back_inserter(pending_),
                 [](char byte) { return byte != '\r'; });
    for (std::size_t end = pending_.find("\n\n"); end != std::string::npos;
         end = pending_.find("\n\n")) {
      const std::string event = pending_.substr(0, end);
      pending_.erase(0, end + 2);
      if (event.starts_with("data: ") && !take(event.substr(6))) return false;
    }
    if (pending_.size() <= event_bytes_max) return true;
    error = "an event is longer than 1 MiB";
    return false;
  }

  [[nodiscard]] bool done() const { return done_; }
  std::string error;

 private:
  bool take(const std::string& data) {
    if (data == "[DONE]") {
      done_ = true;
      return true;
    }
    error_code code;
    const json::value value = json::parse(data, code);
    if (code) {
      error = "an event is no JSON: " + data.substr(0, 200);
      return false;
    }
    if (const json::value* const told = value.as_object().if_contains("error")) {
      error = json::serialize(*told);
      return false;
    }
    for (const json::value& choice : value.at("choices").as_array()) {
      const json::object& delta = choice.at("delta").as_object();
      const json::value* const content = delta.if_contains("content");
      if (content != nullptr && content->is_string()) on_text_(std::string(content->as_string()));
    }
    return true;
  }

  const std::function<void(const std::string&)>& on_text_;
  std::string pending_;
  bool done_ = false;
};

class Chat {
 public:
  /// "" if all went well.
  std::string run(const ChatQuestion& question, const std::function<void()>& ready,
                  const std::function<void(const std::string&)>& on_text) {
    parser_.body_limit(boost::none);
    error_code error;
    asio::ip::tcp::resolver resolver(context_);
    const auto endpoints = resolver.resolve(question.host, question.port, error);
    if (!error) {
      error = wait([&](auto done) {
        asio::async_connect(socket_, endpoints,
                            [done](error_code code, const auto&) { done(code); });
      });
    }
    ready();   // also after a failure: others may wait
    if (error) {
      return "cannot connect to " + question.host + ":" + question.port + ": " + error.message();
    }
    http::request<http::string_body> request(http::verb::post, "/v1/chat/completions", 11);
    request.set(http::field::host, question.host + ":" + question.port);
    request.set(http::field::content_type, "application/json");
    if (!question.key.empty()) {
      request.set(http::field::authorization, "Bearer " + question.key);
    }
    request.body() = body_of(question);
    request.prepare_payload();
    error = wait([&](auto done) {
      http::async_write(socket_, request, [done](error_code code, std::size_t) { done(code); });
    });
    if (!error) {
      error = wait([&](auto done) {
        http::async_read_header(socket_, buffer_, parser_,
                                [done](error_code code, std::size_t) { done(code); });
      });
    }
    if (error) return "no answer: " + error.message();
    return read_body(on_text);
  }

 private:
  /// Runs one operation for as long as a server may be silent.
  template <typename Start>
  error_code wait(Start start) {
    error_code outcome = asio::error::timed_out;
    start([&outcome](error_code code) { outcome = code; });
    context_.restart();
    context_.run_for(std::chrono::seconds(silence_seconds_max));
    return outcome;
  }

  std::string read_body(const std::function<void(const std::string&)>& on_text) {
    const unsigned status = parser_.get().result_int();
    Events events(on_text);
    std::string refusal;
    std::array<char, 8192> bytes{};
    while (!parser_.is_done() && !events.done()) {
      auto& body = parser_.get().body();
      body.data = bytes.data();
      body.size = bytes.size();
      body.more = true;
      const error_code error = wait([&](auto done) {
        http::async_read_some(socket_, buffer_, parser_,
                              [done](error_code code, std::size_t) { done(code); });
      });
      const std::string_view piece(bytes.data(), bytes.size() - body.size);
      if (status != 200) {
        refusal += piece;
        if (refusal.size() > error_bytes_max) break;
      } else if (!events.add(piece)) {
        return events.error;
      }
      if (error && error != http::error::need_buffer) {
        return "the answer broke off: " + error.message();
      }
    }
    if (status != 200) return "the server answered " + std::to_string(status) + ": " + refusal;
    return events.done() ? "" : "the answer ended too early";
  }

  // The operations' objects live until the context is gone.
  http::response_parser<http::buffer_body> parser_;
  boost::beast::flat_buffer buffer_;
  asio::io_context context_;
  asio::ip::tcp::socket socket_{context_};
};

}   // namespace

void throw_exception_from_error(const ChatError& error, const boost::source_location& where) {
  boost::throw_exception(std::runtime_error(error.message), where);
}

boost::system::result<void, ChatError> stream_chat(
    const ChatQuestion& question, const std::function<void()>& ready,
    const std::function<void(const std::string&)>& on_text) {
  Chat chat;
  std::string error;
  try {
    error = chat.run(question, ready, on_text);
  } catch (const std::exception& exception) {
    error = std::string("an event has another form: ") + exception.what();
  }
  if (!error.empty()) return ChatError{question.model + ": " + error};
  return {};
}

}   // namespace duet::tools
