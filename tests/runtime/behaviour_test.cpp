// behaviour_test.cpp: what coroutines of actors may await: Asio's operations, each other, races.
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <thread>

using namespace duet::test;
using namespace boost::asio::experimental::awaitable_operators;
using duet::runtime::Async;
using duet::runtime::Behaviour;
using duet::runtime::errc;
using duet::runtime::Ref;
using duet::runtime::Self;
using duet::runtime::use_async;
using Strings = std::vector<std::string>;
using Socket = boost::asio::local::stream_protocol::socket;

namespace {

using Plain = std::variant<Result>;

struct Fixture : Host {
  Fixture() : near(io), far(io) { boost::asio::local::connect_pair(near, far); }
  Strings log;
  Socket near;
  Socket far;
};

Behaviour echo(Self<Plain> self, Socket* socket, Strings* log) {
  for (;;) {
    char text[16];
    auto [error, size] = co_await socket->async_read_some(boost::asio::buffer(text),
                                                          boost::asio::as_tuple(use_async));
    if (error) break;
    log->emplace_back(text, size);
    co_await boost::asio::async_write(*socket, boost::asio::buffer(text, size), use_async);
  }
  log->push_back("closed");
  static_cast<void>(self);
}

Behaviour write_down(Self<std::variant<Cancel>> self, Strings* log) {
  for (;;) {
    const std::variant<Cancel> message = co_await self.receive();
    log->push_back("cancel " + std::to_string(std::get<Cancel>(message).number));
  }
}

/// Leaves itself a function before it receives again.
Behaviour post_to_itself(Self<std::variant<Cancel>> self, Strings* log) {
  for (;;) {
    co_await self.receive();
    boost::asio::post(self.executor(), [log] { log->push_back("function"); });
  }
}

Async<int> doubled(Self<Plain> self, int number) {
  co_await self.sleep(1ms);
  co_return 2 * number;
}

Async<int> nested(Self<Plain> self, int number) {
  const int once = co_await doubled(self, number);
  const int twice = co_await doubled(self, once);
  co_return twice;
}

Behaviour nesting(Self<Plain> self, Strings* log) {
  const int value = co_await nested(self, 3);
  log->push_back(std::to_string(value));
}

Behaviour racing(Self<Plain> self, Socket* socket, Strings* log) {
  char text[16];
  auto first = co_await (socket->async_read_some(boost::asio::buffer(text), use_async) ||
                         self.async_receive());
  if (auto* message = std::get_if<1>(&first)) {
    log->push_back("result " + std::to_string(std::get<Result>(*message).number));
  } else {
    log->push_back("read " + std::to_string(std::get<0>(first)));
  }
  // The loser has let go: both can be awaited again.
  Plain message = co_await self.receive();
  log->push_back("then " + std::to_string(std::get<Result>(message).number));
  const std::size_t size = co_await socket->async_read_some(boost::asio::buffer(text), use_async);
  log->push_back("then read " + std::to_string(size));
}

Behaviour racing_sleep(Self<Plain> self, Strings* log) {
  for (int i = 0; i < 3; ++i) {
    auto first = co_await (self.async_receive() || self.async_sleep(10ms));
    log->push_back(first.index() == 0 ? "message" : "time");
  }
}

Behaviour racing_ask(Self<Plain> self, Ref<Language> to, Strings* log) {
  Question question(1);
  auto first = co_await (self.async_ask(to, std::move(question), 1h) || self.async_sleep(10ms));
  log->push_back(first.index() == 0 ? "answer" : "time");
}

Behaviour stubborn(Self<Plain> self, Strings* log) {
  for (;;) {
    Plain message = co_await self.receive();
    log->push_back("result " + std::to_string(std::get<Result>(message).number));
  }
}

/// Keeps a question unanswered.
class Slow final : public duet::runtime::HandlerActor<Slow, Language> {
 public:
  explicit Slow(duet::runtime::Reply<int>& held) : held_(held) {}
  void on(Question question) { held_ = std::move(question.reply); }
  void on(Work) {}
  void on(Cancel) {}
  void on(Result) {}
  void on(Gauge) {}
  void on(duet::runtime::Stop) { finish(); }

 private:
  duet::runtime::Reply<int>& held_;
};

struct Guard {
  explicit Guard(Strings& log) noexcept : log_(log) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { log_.push_back("unwound"); }
  Strings& log_;
};

Behaviour guarded_reader(Self<Plain> self, Socket* socket, Strings* log) {
  const Guard guard(*log);
  char text[16];
  log->push_back("reading");
  co_await socket->async_read_some(boost::asio::buffer(text), use_async);
  log->push_back("never");
  static_cast<void>(self);
}

Behaviour guarded_race(Self<Plain> self, Socket* socket, Strings* log) {
  const Guard guard(*log);
  char text[16];
  log->push_back("racing");
  auto first = co_await (socket->async_read_some(boost::asio::buffer(text), use_async) ||
                         self.async_receive());
  log->push_back("never " + std::to_string(first.index()));
}

boost::asio::awaitable<int> library() {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, 1ms);
  co_await timer.async_wait(boost::asio::use_awaitable);
  co_return 42;
}

Behaviour library_user(Self<Plain> self, std::atomic<int>* value) {
  const boost::asio::any_io_executor executor(self.executor());
  *value = co_await boost::asio::co_spawn(executor, library(), use_async);
}

}   // namespace

BOOST_FIXTURE_TEST_SUITE(behaviours, Fixture)

BOOST_AUTO_TEST_CASE(a_socket_is_awaited_on_the_actors_strand) {
  system.spawn("echo", echo, &near, &log);
  run_ready();
  boost::asio::write(far, boost::asio::buffer("hello", 5));
  run_ready();
  char text[5] = {};
  boost::asio::read(far, boost::asio::buffer(text));
  BOOST_TEST(std::string(text, 5) == "hello");
  far.close();
  run_ready();
  BOOST_TEST(log == (Strings{"hello", "closed"}), boost::test_tools::per_element());
  BOOST_TEST(living() == 0U);
}

BOOST_AUTO_TEST_CASE(coroutines_nest) {
  system.spawn("nesting", nesting, &log);
  advance(1ms);
  advance(1ms);
  BOOST_TEST(log == (Strings{"12"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(messages_that_come_while_an_operation_is_awaited_are_kept_in_order) {
  const auto racer = system.spawn("racer", racing, &near, &log);
  run_ready();
  racer.send(Result{1});
  racer.send(Result{2});
  run_ready();
  BOOST_TEST(log == (Strings{"result 1", "then 2"}), boost::test_tools::per_element());
  boost::asio::write(far, boost::asio::buffer("abc", 3));
  run_ready();
  BOOST_TEST(log.back() == "then read 3");
  BOOST_TEST(living() == 0U);
}

BOOST_AUTO_TEST_CASE(a_function_and_an_urgent_message_in_one_activation_are_both_handled) {
  const auto writer = system.spawn("writer", write_down, &log);
  run_ready();   // it has looked for a message, and there was none
  for (const bool function_first : {true, false}) {
    const auto post = [&] {
      boost::asio::post(duet::runtime::actor_executor(writer.address()),
                        [this] { log.push_back("function"); });
    };
    if (function_first) post();
    BOOST_TEST(writer.send(Cancel{1}).ok());
    if (!function_first) post();
    run_ready();
    BOOST_TEST(log == (Strings{"function", "cancel 1"}), boost::test_tools::per_element());
    log.clear();
  }
}

BOOST_AUTO_TEST_CASE(a_function_that_a_behaviour_posts_to_itself_runs_though_no_message_comes) {
  const auto poster = system.spawn("poster", post_to_itself, &log);
  run_ready();
  BOOST_TEST(poster.send(Cancel{1}).ok());
  run_ready();
  BOOST_TEST(log == (Strings{"function"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_lost_race_takes_no_message) {
  const auto racer = system.spawn("racer", racing, &near, &log);
  run_ready();
  boost::asio::write(far, boost::asio::buffer("ab", 2));
  run_ready();
  racer.send(Result{1});
  run_ready();
  BOOST_TEST(log == (Strings{"read 2", "then 1"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(messages_and_times_race_and_leave_no_timer) {
  const auto racer = system.spawn("racer", racing_sleep, &log);
  run_ready();
  racer.send(Result{});
  run_ready();
  advance(10ms);
  racer.send(Result{});
  run_ready();
  BOOST_TEST(log == (Strings{"message", "time", "message"}), boost::test_tools::per_element());
  BOOST_TEST(clock.armed() == 0U);
  BOOST_TEST(living() == 0U);
}

BOOST_AUTO_TEST_CASE(an_ask_that_loses_a_race_is_cancelled_and_its_answer_late) {
  const auto recorder = system.spawn<Recorder>("recorder", log);
  system.spawn("racer", racing_ask, recorder, &log);
  run_ready();
  BOOST_TEST(log == (Strings{"question 1", "answer"}), boost::test_tools::per_element());
  BOOST_TEST(clock.armed() == 0U);
  duet::runtime::Reply<int> held;
  const auto slow = system.spawn<Slow>("slow", held);
  system.spawn("racer", racing_ask, slow, &log);
  advance(10ms);
  BOOST_TEST(log.back() == "time");
  BOOST_TEST(clock.armed() == 0U);
  BOOST_TEST(living() == 2U);
  held(1);
  run_ready();
  BOOST_TEST(log.back() == "time");
}

BOOST_AUTO_TEST_CASE(an_actor_without_stop_in_its_language_is_ended_where_it_waits) {
  const auto receiver = system.spawn("stubborn", stubborn, &log);
  const auto reader = system.spawn("reader", guarded_reader, &near, &log);
  receiver.send(Result{1});
  run_ready();
  BOOST_TEST(system.stop(receiver));
  BOOST_TEST(system.stop(reader));
  run_ready();
  BOOST_TEST(!receiver.alive());
  BOOST_TEST(!reader.alive());
  BOOST_TEST(counters().failed == 0U);
  std::sort(log.begin(), log.end());
  BOOST_TEST(log == (Strings{"reading", "result 1", "unwound"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_race_is_ended_by_a_stop) {
  const auto racer = system.spawn("racer", guarded_race, &near, &log);
  run_ready();
  BOOST_TEST(system.stop(racer));
  run_ready();
  BOOST_TEST(log == (Strings{"racing", "unwound"}), boost::test_tools::per_element());
  BOOST_TEST(!racer.alive());
  BOOST_TEST(counters().failed == 0U);
}

// The vector outlives the Host, whose io_context lets go of what was never resumed.
BOOST_AUTO_TEST_CASE(frames_of_abandoned_behaviours_are_released_with_the_context) {
  Strings mine;
  {
    Fixture other;
    other.system.spawn("reader", guarded_reader, &other.near, &mine);
    other.system.spawn("racer", guarded_race, &other.far, &mine);
    other.run_ready();
    BOOST_TEST(mine.size() == 2U);
  }
  BOOST_TEST(mine == (Strings{"reading", "racing", "unwound", "unwound"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_librarys_own_awaitable_runs_on_the_actors_executor) {
  std::atomic<int> value = 0;
  system.spawn("user", library_user, &value);
  io.restart();
  io.run();
  BOOST_TEST(value == 42);
  BOOST_TEST(living() == 0U);
}

BOOST_AUTO_TEST_CASE(operations_of_many_actors_on_two_threads_resume_on_their_strands) {
  struct Counts {
    std::atomic<int> inside[8] = {};
    std::atomic<int> violations = 0;
    std::atomic<int> rounds = 0;
  };
  struct Body {
    static Behaviour run(Self<Plain> self, int index, Counts* counts) {
      for (int i = 0; i < 50; ++i) {
        if (counts->inside[index].fetch_add(1) != 0) ++counts->violations;
        counts->inside[index].fetch_sub(1);
        boost::asio::steady_timer timer(self.executor(), 10us);
        co_await (timer.async_wait(use_async) || self.async_sleep(20us));
        self.ref().send(Result{i});
        co_await self.receive();
        ++counts->rounds;
      }
    }
  };
  Counts counts;
  boost::asio::io_context context(2);
  {
    duet::runtime::SystemOptions options;
    options.pumps = 2;
    duet::runtime::System threaded(context.get_executor(), options);
    for (int i = 0; i < 8; ++i) threaded.spawn("body", &Body::run, i, &counts);
    std::thread other([&context] { context.run(); });
    context.run();
    other.join();
    BOOST_TEST(threaded.snapshot().actors.empty());
  }
  BOOST_TEST(counts.rounds == 8 * 50);
  BOOST_TEST(counts.violations == 0);
}

BOOST_AUTO_TEST_SUITE_END()
