// allocation_test.cpp: what is warm allocates nothing.
#include "tests/malloc_count.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <malloc.h>
#include <array>
#include <cstdint>
#include <memory>

using namespace duet::test;
using duet::runtime::Behaviour;
using duet::runtime::Ref;
using duet::runtime::Self;

namespace {

/// Larger than what the pool keeps.
struct Large {
  std::array<char, 2 * duet::runtime::limits::pooled_bytes_max> bytes{};
};

}   // namespace

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<Large> = MessageClass::guaranteed;
}   // namespace duet::runtime

namespace {

using Plain = std::variant<Result>;

class Heap final : public duet::runtime::HandlerActor<Heap, std::variant<Large>> {
 public:
  explicit Heap(int& handled) : handled_(handled) {}
  void on(const Large& /*message*/) { ++handled_; }

 private:
  int& handled_;
};

class Echo final : public duet::runtime::HandlerActor<Echo, Language> {
 public:
  void on(Work) {}
  void on(Cancel) {}
  void on(Result) {}
  void on(Gauge) {}
  void on(Question question) { question.reply(question.number); }
  void on(duet::runtime::Stop) { finish(); }
};

/// Each round: all classes of messages, an ask, a sleep, a timed receive.
Behaviour busy(Self<Plain> self, Ref<Language> echo, int rounds, std::uint64_t* counted,
               int* answers) {
  std::uint64_t before = 0;
  for (int i = 0; i < 2 * rounds; ++i) {
    if (i == rounds) before = allocations;   // the first half warms up
    static_cast<void>(echo.send(Work{i}));
    echo.send(Cancel{i});
    echo.send(Gauge{i});
    echo.send(Gauge{i});
    Question question(i);
    const auto answer = co_await self.ask(echo, std::move(question), 10s);
    if (answer.has_value()) ++*answers;
    self.ref().send(Result{i});
    co_await self.receive();
    co_await self.receive_for(1us);
    co_await self.sleep(1us);
  }
  *counted = allocations - before;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(the_counter_counts) {
  const std::uint64_t before = allocations;
  const auto text = std::make_unique<int[]>(1000);
  BOOST_TEST(text[0] == 0);
  BOOST_TEST(allocations > before);
}

// B2: no malloc for a warm message, ask or timer, with the real clock.
BOOST_AUTO_TEST_CASE(warm_messages_asks_and_timers_allocate_nothing) {
  std::uint64_t counted = 1;
  int answers = 0;
  boost::asio::io_context io;
  duet::runtime::System system(io.get_executor());
  const auto echo = system.spawn<Echo>("echo");
  system.spawn("busy", busy, echo, 500, &counted, &answers);
  io.run();
  BOOST_TEST(answers == 1000);
  BOOST_TEST(counted == 0U);
}

BOOST_AUTO_TEST_CASE(messages_from_another_thread_that_wake_the_host_allocate_nothing) {
  boost::asio::io_context io;
  duet::runtime::System system(io.get_executor());
  const auto echo = system.spawn<Echo>("echo");
  std::uint64_t before = 0;
  for (int i = 0; i < 2000; ++i) {
    if (i == 1000) before = allocations;
    echo.send(Cancel{i});   // this thread is not inside run(): a foreign one to the host
    io.restart();
    io.run();
  }
  BOOST_TEST(allocations - before == 0U);
}

BOOST_AUTO_TEST_CASE(a_warm_spawn_of_a_handler_actor_allocates_nothing) {
  boost::asio::io_context io;
  duet::runtime::System system(io.get_executor());
  std::uint64_t before = 0;
  for (int i = 0; i < 2000; ++i) {
    if (i == 1000) before = allocations;
    system.spawn<Echo>("echo").send(duet::runtime::Stop{});
    io.restart();
    io.run();
  }
  BOOST_TEST(allocations - before == 0U);
}

BOOST_AUTO_TEST_CASE(messages_larger_than_the_pool_give_their_memory_back) {
  boost::asio::io_context io;
  duet::runtime::System system(io.get_executor());
  int handled = 0;
  const auto heap = system.spawn<Heap>("heap", handled);
  std::size_t before = 0;
  for (int i = 0; i < 400; ++i) {
    if (i == 100) before = ::mallinfo2().uordblks;
    for (int j = 0; j < 3; ++j) heap.send(Large{});
    io.restart();
    io.run();
  }
  BOOST_TEST(handled == 1200);
  BOOST_TEST(::mallinfo2().uordblks <= before + sizeof(Large));
}

// B2: <= 320 B a handler actor, <= 900 B a coroutine, inspection and bounds included.
BOOST_AUTO_TEST_CASE(idle_actors_are_as_small_as_promised) {
  BOOST_TEST(sizeof(duet::runtime::detail::Slot) +
                 duet::runtime::detail::Pool::step *
                     (duet::runtime::detail::Pool::class_of(sizeof(Echo)) + 1) <=
             320U);
}

BOOST_AUTO_TEST_SUITE_END()
