// echo.cpp: an echo service of supervised actors: a listener, and a session a connection.
//
//   echo [PORT]   serves until SIGINT or SIGTERM
//   echo --once   on a port that is free, talks to itself, stops; exit code 0 if all was right
#include <duet/runtime/self.hpp>
#include <duet/runtime/supervisor.hpp>
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

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

namespace asio = boost::asio;
namespace rt = duet::runtime;
using asio::ip::tcp;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

struct Nothing {};   // an actor has a language, and nobody has anything to say to these two
template <>
inline constexpr rt::MessageClass rt::message_class<Nothing> = rt::MessageClass::bounded;
using Silent = std::variant<Nothing>;

constexpr std::size_t sessions_max = 1000;
constexpr auto idle_max = 30s;

/// Echoes until the peer closes, or is idle for too long, or sends a '!', which is too much for it.
rt::Behaviour session(rt::Self<Silent> self, tcp::socket socket) {
  char data[4096];
  for (;;) {
    auto first =
        co_await (socket.async_read_some(asio::buffer(data), asio::as_tuple(rt::use_async)) ||
                  self.async_sleep(idle_max));
    if (first.index() == 1) co_return;
    const auto [error, size] = std::get<0>(first);
    if (error) co_return;
    if (std::find(data, data + size, '!') != data + size) throw std::runtime_error("heard a !");
    co_await asio::async_write(socket, asio::buffer(data, size), rt::use_async);
  }
}

/// Its supervisor starts it anew, later and later, if accepting fails.
rt::Behaviour listener(rt::Self<Silent> self, tcp::acceptor* acceptor,
                       rt::ChildRef<rt::SupervisorMessage> sessions) {
  for (;;) {
    tcp::socket socket = co_await acceptor->async_accept(rt::use_async);
    rt::StartChild start(rt::child_spec_once("session", session, std::move(socket)));
    if (!sessions.send(std::move(start))) co_await self.sleep(100ms);   // the socket is closed
  }
}

/// The order in which they start; they stop in reverse.
rt::Children children(tcp::acceptor& acceptor) {
  rt::SupervisorOptions options;
  options.children_max = sessions_max;
  rt::Children all;
  const auto sessions = rt::add_supervisor(all, "sessions", options, {});
  all.add("listener", listener, &acceptor, sessions);
  return all;
}

std::size_t sessions_of(const rt::System& system) {
  const auto actors = system.snapshot().actors;
  return static_cast<std::size_t>(std::count_if(
      actors.begin(), actors.end(), [](const auto& actor) { return actor.name == "session"; }));
}

// A client as any Asio program has it; it is no actor.
asio::awaitable<std::string> echoed(tcp::socket& socket, std::string text) {
  co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
  auto [error, size] =
      co_await asio::async_read(socket, asio::buffer(text), asio::as_tuple(asio::use_awaitable));
  co_return error ? error.message() : text;
}

asio::awaitable<int> talk(const rt::System& system, tcp::endpoint server) {
  tcp::socket one(co_await asio::this_coro::executor);
  tcp::socket two(co_await asio::this_coro::executor);
  co_await one.async_connect(server, asio::use_awaitable);
  co_await two.async_connect(server, asio::use_awaitable);
  const std::string before = co_await echoed(one, "one") + co_await echoed(two, "two");
  const std::size_t open = sessions_of(system);
  const std::string failed = co_await echoed(two, "!");
  const std::string after = co_await echoed(one, "still here");
  std::cout << before << ", " << open << " sessions; then '" << failed << "', but '" << after
            << "'\n";
  const bool right = before == "onetwo" && open == 2 && after == "still here" && failed != "!";
  co_return right ? EXIT_SUCCESS : EXIT_FAILURE;
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
  rt::SupervisorOptions root;
  root.on_event = [](const rt::SupervisorEvent& event) {
    if (event.reason.abnormal()) std::cerr << rt::describe(event) << "\n";
  };
  system.spawn<rt::Supervisor>("root", root, children(acceptor));

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
    asio::co_spawn(io, talk(system, acceptor.local_endpoint()),
                   [&](std::exception_ptr failed, int result) {
                     status = failed ? EXIT_FAILURE : result;
                     stop();
                   });
  }
  std::thread second([&io] { io.run(); });
  io.run();
  second.join();
  return status;
}
