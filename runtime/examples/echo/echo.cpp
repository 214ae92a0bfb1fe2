// echo.cpp: an echo service of which each session is an actor, and the listener watches them.
//
//   echo [PORT]   serves until SIGINT or SIGTERM
//   echo --once   on a port that is free, talks to itself, stops; exit code 0 if all was right
#include <duet/runtime/async_ask.hpp>
#include <duet/runtime/self.hpp>
#include <duet/runtime/system.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

namespace asio = boost::asio;
namespace rt = duet::runtime;
using asio::ip::tcp;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

struct Hang {};   // to a session; nobody sends it, but an actor has a language
struct Count {    // to the listener: how many sessions are there, how many have there been?
  struct Answer {
    std::size_t open = 0;
    std::size_t ended = 0;
  };
  Count() noexcept {}
  rt::Reply<Answer> reply;
};
template <>
inline constexpr rt::MessageClass rt::message_class<Hang> = rt::MessageClass::guaranteed;
template <>
inline constexpr rt::MessageClass rt::message_class<Count> = rt::MessageClass::bounded;

using SessionMessage = std::variant<Hang>;
using ListenerMessage = std::variant<rt::Down, Count, rt::Stop>;

constexpr std::size_t sessions_max = 1000;
constexpr auto idle_max = 30s;

rt::Behaviour session(rt::Self<SessionMessage> self, tcp::socket socket) {
  char data[4096];
  for (;;) {
    auto first =
        co_await (socket.async_read_some(asio::buffer(data), asio::as_tuple(rt::use_async)) ||
                  self.async_sleep(idle_max));
    if (first.index() == 1) co_return;   // idle for too long
    const auto [error, size] = std::get<0>(first);
    if (error) co_return;   // the peer has closed
    co_await asio::async_write(socket, asio::buffer(data, size), rt::use_async);
  }
}

rt::Behaviour listener(rt::Self<ListenerMessage> self, tcp::acceptor acceptor) {
  Count::Answer count;
  for (;;) {
    auto event = co_await (acceptor.async_accept(rt::use_async) || self.async_receive());
    if (auto* socket = std::get_if<tcp::socket>(&event)) {
      if (count.open == sessions_max) continue;   // this one is closed at once
      self.monitor(self.spawn("session", session, std::move(*socket)));
      ++count.open;
      continue;
    }
    auto& message = std::get<ListenerMessage>(event);
    if (std::holds_alternative<rt::Stop>(message)) co_return;
    if (auto* question = std::get_if<Count>(&message)) question->reply(count);
    if (auto* down = std::get_if<rt::Down>(&message)) {
      --count.open;
      ++count.ended;
      if (down->reason.kind() == rt::ExitKind::failed) std::cerr << down->reason.text() << "\n";
    }
  }
}

// A client as any Asio program has it; it is no actor.
asio::awaitable<int> talk(const rt::System& system, rt::Ref<ListenerMessage> to,
                          std::uint16_t port) {
  tcp::socket socket(co_await asio::this_coro::executor);
  const tcp::endpoint server(asio::ip::address_v4::loopback(), port);
  co_await socket.async_connect(server, asio::use_awaitable);
  const std::string sent = "echoes of actors";
  std::string back(sent.size(), ' ');
  co_await asio::async_write(socket, asio::buffer(sent), asio::use_awaitable);
  co_await asio::async_read(socket, asio::buffer(back), asio::use_awaitable);
  Count open;
  const auto count = co_await rt::async_ask(system, to, std::move(open), 5s, asio::use_awaitable);
  std::cout << "got '" << back << "' back; open sessions: " << count.value().open << "\n";
  co_return back == sent&& count.value().open == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char** argv) {
  const std::string_view argument = argc > 1 ? argv[1] : "7007";
  const bool once = argument == "--once";
  int status = EXIT_SUCCESS;

  asio::io_context io(2);
  rt::SystemOptions options;
  options.pumps = 2;   // as many as threads run the context
  rt::System system(io.get_executor(), options);

  const auto port = static_cast<std::uint16_t>(once ? 0 : std::atoi(argument.data()));
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), port));
  const std::uint16_t bound = acceptor.local_endpoint().port();
  const auto listening = system.spawn("listener", listener, std::move(acceptor));

  asio::signal_set signals(io, SIGINT, SIGTERM);
  const auto stop = [&] {
    system.stop(5s, [&](const rt::StopReport& report) {
      for (const auto& actor : report.stragglers) {
        std::cerr << rt::describe(actor, system.clock().now()) << "\n";
        status = EXIT_FAILURE;
      }
      signals.cancel();
    });
  };
  signals.async_wait([&](boost::system::error_code error, int) {
    if (!error) stop();
  });
  if (once) {
    asio::co_spawn(io, talk(system, listening, bound), [&](std::exception_ptr failed, int result) {
      status = failed ? EXIT_FAILURE : result;
      stop();
    });
  }
  std::thread second([&io] { io.run(); });
  io.run();
  second.join();
  return status;
}
