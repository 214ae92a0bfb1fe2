// service.cpp: an HTTP service on Beast, as many are, that got two actors. What was added for them
// stands between // + and // -.
//
//   beast_service PORT SOCKET     serves; `curl --unix-socket SOCKET http://x/actors` looks inside
//   beast_service --once SOCKET   on a free port, talks to itself; exit code 0 if all was right
#include "actors.hpp"

#include <duet/runtime/async_ask.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

asio::awaitable<Response> answer(const Request& request, std::string client, Actors& actors) {
  Response response(http::status::ok, request.version());
  response.keep_alive(request.keep_alive());
  response.body() = "hello\n";
  // +
  if (request.target() == "/totals") {
    Report report;
    const auto totals = co_await rt::async_ask(actors.system, actors.counter, std::move(report), 1s,
                                               asio::use_awaitable);
    response.body().clear();
    for (const auto& [status, count] : totals.value()) {
      response.body() += std::to_string(status) + ": " + std::to_string(count) + "\n";
    }
    response.prepare_payload();
    co_return response;
  }
  Permit permit(std::move(client));
  const auto allowed = co_await rt::async_ask(actors.system, actors.limiter, std::move(permit), 1s,
                                              asio::use_awaitable);
  if (!allowed.has_value() || !*allowed) response.result(http::status::too_many_requests);
  actors.counter.send(Served{response.result_int()});
  // -
  response.prepare_payload();
  co_return response;
}

asio::awaitable<void> session(beast::tcp_stream stream, Actors& actors) {
  const auto client = stream.socket().remote_endpoint().address().to_string();
  beast::flat_buffer buffer;
  for (bool more = true; more;) {
    Request request;
    stream.expires_after(30s);
    co_await http::async_read(stream, buffer, request, asio::use_awaitable);
    Response response = co_await answer(request, client, actors);
    more = response.keep_alive();
    co_await http::async_write(stream, response, asio::use_awaitable);
  }
}

asio::awaitable<void> serve(tcp::acceptor& acceptor, Actors& actors) {
  for (;;) {
    beast::tcp_stream stream(co_await acceptor.async_accept(asio::use_awaitable));
    co_spawn(acceptor.get_executor(), session(std::move(stream), actors), asio::detached);
  }
}

/// The body of the answer to GET `target`, after its status.
template <typename Stream>
asio::awaitable<std::string> get(Stream& stream, std::string target) {
  http::request<http::empty_body> request(http::verb::get, target, 11);
  request.set(http::field::host, "localhost");
  co_await http::async_write(stream, request, asio::use_awaitable);
  beast::flat_buffer buffer;
  Response response;
  co_await http::async_read(stream, buffer, response, asio::use_awaitable);
  co_return std::to_string(response.result_int()) + " " + response.body();
}

asio::awaitable<bool> check(std::uint16_t port, std::string path) {
  const auto executor = co_await asio::this_coro::executor;
  beast::tcp_stream client(executor);
  const tcp::endpoint server(asio::ip::address_v4::loopback(), port);
  co_await client.async_connect(server, asio::use_awaitable);
  int limited = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string text = co_await get(client, "/");
    limited += text.starts_with("429") ? 1 : 0;
  }
  const std::string totals = co_await get(client, "/totals");
  asio::local::stream_protocol::socket window(executor);
  const asio::local::stream_protocol::endpoint inside(path);
  co_await window.async_connect(inside, asio::use_awaitable);
  const std::string tree = co_await get(window, "/actors");
  std::cout << limited << " of 100 were limited; totals: " << totals << tree << "\n";
  co_return limited > 0 && totals.find("429: " + std::to_string(limited)) !=
                               std::string::npos&& tree.find("\"limiter\"") != std::string::npos;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: beast_service PORT|--once SOCKET\n";
    return 2;
  }
  const bool once = std::string_view(argv[1]) == "--once";
  int status = EXIT_SUCCESS;
  asio::io_context io;
  Actors actors(io, argv[2]);   // + -
  const auto port = static_cast<std::uint16_t>(once ? 0 : std::atoi(argv[1]));
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), port));
  co_spawn(io, serve(acceptor, actors), asio::detached);
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](auto, int) { io.stop(); });
  if (once) {
    const auto bound = acceptor.local_endpoint().port();
    co_spawn(io, check(bound, argv[2]), [&](std::exception_ptr failed, bool right) {
      status = !failed && right ? EXIT_SUCCESS : EXIT_FAILURE;
      io.stop();
    });
  }
  io.run();
  return status;
}
