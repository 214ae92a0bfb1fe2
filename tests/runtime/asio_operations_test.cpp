// asio_operations_test.cpp: every kind of Asio operation that a behaviour may await, on real
// contexts; each resumes on the actor's strand.
#include "runtime/detail/thread_state.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

using namespace duet::test;
using namespace boost::asio::experimental::awaitable_operators;
namespace asio = boost::asio;
using boost::system::error_code;
using duet::runtime::Async;
using duet::runtime::Behaviour;
using duet::runtime::Ref;
using duet::runtime::Self;
using duet::runtime::System;
using duet::runtime::use_async;
using Strings = std::vector<std::string>;
using asio::ip::tcp;
using asio::ip::udp;

namespace {

using Plain = std::variant<Result>;

/// What a behaviour did; written on its strand, read after the context has run out.
struct Log {
  Strings lines;
  void add(const Self<Plain>& self, std::string line) {
    // The strand is what this file is about: the thread must be running this very actor.
    const bool ours = duet::runtime::detail::thread_state().slot == self.ref().address().slot();
    lines.push_back(ours ? std::move(line) : "off the strand: " + line);
  }
};

struct Fixture {
  template <typename F, typename... Args>
  void run(F behaviour, Args... args) {
    system.spawn("body", behaviour, &log, args...);
    io.run();
    BOOST_TEST(system.snapshot().actors.empty());
    BOOST_TEST(system.snapshot().counters.failed == 0U);
  }
  void expect(const Strings& lines) {
    BOOST_TEST(log.lines == lines, boost::test_tools::per_element());
  }
  Log log;
  asio::io_context io;
  System system{io.get_executor()};
};

std::string said(const error_code& error) {
  return error ? error.message() : "ok";
}

Behaviour tcp_and_resolver(Self<Plain> self, Log* log) {
  tcp::acceptor acceptor(self.executor(), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  tcp::resolver resolver(self.executor());
  const auto found = co_await resolver.async_resolve(
      "127.0.0.1", std::to_string(acceptor.local_endpoint().port()),
      tcp::resolver::numeric_host | tcp::resolver::numeric_service, use_async);
  log->add(self, "resolved");
  tcp::socket client(self.executor());
  const tcp::endpoint server = found.begin()->endpoint();
  tcp::socket accepted =
      co_await (acceptor.async_accept(use_async) && client.async_connect(server, use_async));
  log->add(self, "connected");
  char text[5];
  const std::string hello = "hello";
  co_await (asio::async_write(client, asio::buffer(hello), use_async) &&
            asio::async_read(accepted, asio::buffer(text), use_async));
  log->add(self, std::string(text, 5));
  client.close();
  const auto [error, size] =
      co_await accepted.async_read_some(asio::buffer(text), asio::as_tuple(use_async));
  log->add(self, said(error));
}

Behaviour udp_and_pipe(Self<Plain> self, Log* log) {
  udp::socket near(self.executor(), udp::endpoint(asio::ip::address_v4::loopback(), 0));
  udp::socket far(self.executor(), udp::endpoint(asio::ip::address_v4::loopback(), 0));
  const std::string hello = "datagram";
  char text[16];
  udp::endpoint from;
  co_await near.async_send_to(asio::buffer(hello), far.local_endpoint(), use_async);
  std::size_t size = co_await far.async_receive_from(asio::buffer(text), from, use_async);
  log->add(self, std::string(text, size));
  asio::readable_pipe out(self.executor());
  asio::writable_pipe in(self.executor());
  asio::connect_pipe(out, in);
  co_await asio::async_write(in, asio::buffer(hello), use_async);
  size = co_await out.async_read_some(asio::buffer(text), use_async);
  log->add(self, std::string(text, size));
}

Behaviour timer_and_signal(Self<Plain> self, Log* log) {
  asio::steady_timer timer(self.executor(), 1us);
  co_await timer.async_wait(use_async);
  log->add(self, "timer");
  asio::signal_set signals(self.executor(), SIGUSR1);
  std::raise(SIGUSR1);
  const int number = co_await signals.async_wait(use_async);
  log->add(self, number == SIGUSR1 ? "signal" : "another");
}

using Channel = asio::experimental::channel<void(error_code, int)>;

asio::awaitable<void> feed(Channel* channel) {
  for (int i = 0; i < 3; ++i) co_await channel->async_send(error_code(), i, asio::use_awaitable);
  channel->close();
}

Behaviour channel_reader(Self<Plain> self, Log* log, Channel* channel) {
  for (;;) {
    auto [error, value] = co_await channel->async_receive(asio::as_tuple(use_async));
    if (error) break;
    log->add(self, std::to_string(value));
  }
  log->add(self, "closed");
}

Behaviour tokens(Self<Plain> self, Log* log) {
  asio::steady_timer timer(self.executor(), 1us);
  auto deferred = timer.async_wait(asio::deferred);
  co_await std::move(deferred)(use_async);
  log->add(self, "deferred");
  auto chained =
      timer.async_wait(asio::deferred([](error_code) { return asio::deferred.values(42); }));
  const int value = co_await std::move(chained)(use_async);
  log->add(self, std::to_string(value));
  error_code error;
  timer.expires_at(std::chrono::steady_clock::time_point::max());
  asio::post(self.executor(), [&timer] { timer.cancel(); });
  co_await timer.async_wait(asio::redirect_error(use_async, error));
  log->add(self, error == asio::error::operation_aborted ? "aborted" : said(error));
}

Async<> emit_soon(Self<Plain> self, asio::cancellation_signal* signal) {
  co_await asio::post(self.executor(), use_async);
  signal->emit(asio::cancellation_type::total);
}

Behaviour cancellation(Self<Plain> self, Log* log) {
  asio::steady_timer timer(self.executor(), 1h);
  asio::cancellation_signal signal;
  error_code error;
  co_await (timer.async_wait(asio::bind_cancellation_slot(
                signal.slot(), asio::redirect_error(use_async, error))) &&
            emit_soon(self, &signal));
  log->add(self, error == asio::error::operation_aborted ? "aborted" : said(error));
  const auto state = co_await asio::this_coro::cancellation_state;
  log->add(self,
           state.cancelled() == asio::cancellation_type::none ? "not cancelled" : "cancelled");
}

Behaviour on_a_strand(Self<Plain> self, Log* log, asio::io_context* io) {
  // The object's executor is a strand of the host; its completions pass through that.
  const auto strand = asio::make_strand(*io);
  asio::steady_timer timer(strand, 1us);
  co_await timer.async_wait(use_async);
  log->add(self, "back from the strand");
  co_await asio::post(strand, use_async);
  log->add(self, "and again");
}

/// Tokens that would resume elsewhere: the strand, a thread that calls the handler itself.
Behaviour bound_elsewhere(Self<Plain> self, Log* log, asio::io_context* io) {
  const auto strand = asio::make_strand(*io);
  co_await asio::post(asio::bind_executor(strand, use_async));
  log->add(self, "not on the strand");
  asio::steady_timer timer(self.executor(), 1us);
  const auto [error] =
      co_await timer.async_wait(asio::bind_executor(strand, asio::as_tuple(use_async)));
  log->add(self, said(error));
}

Behaviour on_another_context(Self<Plain> self, Log* log, asio::io_context* other) {
  asio::steady_timer timer(*other, 5ms);
  co_await timer.async_wait(use_async);
  log->add(self, "back from the other context");
  co_await asio::post(*other, use_async);
  log->add(self, "and again");
}

/// An operation of a library that completes on a thread of its own: through the handler's executor,
/// as Asio demands it, or by calling the handler right there, as too many do.
template <typename Token>
auto async_on_own_thread(std::thread& thread, std::atomic<bool>& go, bool right, Token&& token) {
  const auto begin = [&thread, &go, right](auto handler) {
    auto executor = asio::get_associated_executor(handler);
    auto run = [&go, right, handler = std::move(handler), executor]() mutable {
      go.wait(false);
      if (right) {
        asio::post(executor, asio::append(std::move(handler), error_code(), 7));
      } else {
        std::move(handler)(error_code(), 8);
      }
    };
    thread = std::thread(std::move(run));
  };
  return asio::async_initiate<Token, void(error_code, int)>(begin, token);
}

Behaviour on_a_foreign_thread(Self<Plain> self, Log* log, std::thread* thread,
                              std::atomic<bool>* go, bool right) {
  const int value = co_await async_on_own_thread(*thread, *go, right, use_async);
  log->add(self, std::to_string(value));
}

/// An operation composed of others, as libraries write them.
struct Twice {
  asio::steady_timer* timer;
  int left = 2;
  template <typename Operation>
  void operator()(Operation& operation, error_code error = {}) {
    if (error || left-- == 0) {
      operation.complete(error);
    } else {
      timer->expires_after(1us);
      timer->async_wait(std::move(operation));
    }
  }
};

template <typename Token>
auto async_twice(asio::steady_timer& timer, Token&& token) {
  return asio::async_compose<Token, void(error_code)>(Twice{&timer}, token, timer);
}

Async<std::string> innermost(Self<Plain> self) {
  asio::steady_timer timer(self.executor(), 1us);
  co_await async_twice(timer, use_async);
  co_return "composed";
}

Async<std::string> in_between(Self<Plain> self) {
  auto both = co_await (innermost(self) && self.async_sleep(1us));
  co_return both;
}

Behaviour nested_and_composed(Self<Plain> self, Log* log) {
  const std::string text = co_await in_between(self);
  log->add(self, text);
}

Behaviour thrower(Self<Plain> self, Log* log) {
  tcp::socket closed(self.executor());
  bool thrown = false;
  try {
    co_await closed.async_wait(tcp::socket::wait_read, use_async);
  } catch (const boost::system::system_error& error) {
    thrown = error.code() == asio::error::bad_descriptor;
  }
  log->add(self, thrown ? "bad descriptor" : "another error");
}

}   // namespace

BOOST_FIXTURE_TEST_SUITE(asio_operations, Fixture)

BOOST_AUTO_TEST_CASE(sockets_and_resolvers_resume_on_the_strand) {
  run(tcp_and_resolver);
  expect({"resolved", "connected", "hello", "End of file"});
}

BOOST_AUTO_TEST_CASE(datagrams_and_pipes_resume_on_the_strand) {
  run(udp_and_pipe);
  expect({"datagram", "datagram"});
}

BOOST_AUTO_TEST_CASE(timers_and_signals_resume_on_the_strand) {
  run(timer_and_signal);
  expect({"timer", "signal"});
}

BOOST_AUTO_TEST_CASE(a_channel_brings_what_the_host_sends) {
  Channel channel(io);
  asio::co_spawn(io, feed(&channel), [](std::exception_ptr) {});
  run(channel_reader, &channel);
  expect({"0", "1", "2", "closed"});
}

BOOST_AUTO_TEST_CASE(deferred_operations_and_redirected_errors_are_awaited) {
  run(tokens);
  expect({"deferred", "42", "aborted"});
}

BOOST_AUTO_TEST_CASE(a_cancellation_slot_of_ones_own_cancels_the_operation_alone) {
  run(cancellation);
  expect({"aborted", "not cancelled"});
}

BOOST_AUTO_TEST_CASE(an_operation_on_a_strand_of_the_host_comes_back) {
  run(on_a_strand, &io);
  expect({"back from the strand", "and again"});
}

BOOST_AUTO_TEST_CASE(a_token_that_is_bound_elsewhere_resumes_on_the_actor_all_the_same) {
  run(bound_elsewhere, &io);
  expect({"not on the strand", "ok"});
}

BOOST_AUTO_TEST_CASE(an_operation_on_another_context_holds_run_and_comes_back) {
  asio::io_context other;
  auto work = asio::make_work_guard(other);
  std::thread thread([&other] { other.run(); });
  run(on_another_context, &other);
  work.reset();
  thread.join();
  expect({"back from the other context", "and again"});
}

BOOST_AUTO_TEST_CASE(an_operation_that_completes_on_a_foreign_thread_holds_run_and_comes_back) {
  for (const bool right : {true, false}) {
    std::thread thread;
    std::atomic<bool> go = false;
    system.spawn("body", on_a_foreign_thread, &log, &thread, &go, right);
    io.restart();
    io.poll();
    BOOST_TEST(!io.stopped());   // it waits for that thread, which waits for us
    go = true;
    go.notify_one();
    io.run();
    thread.join();
  }
  expect({"7", "8"});
}

BOOST_AUTO_TEST_CASE(composed_operations_nest_in_races) {
  run(nested_and_composed);
  expect({"composed"});
}

BOOST_AUTO_TEST_CASE(an_operation_that_fails_at_once_throws_into_the_behaviour) {
  run(thrower);
  expect({"bad descriptor"});
}

BOOST_AUTO_TEST_SUITE_END()
