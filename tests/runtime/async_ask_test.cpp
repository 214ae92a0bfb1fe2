// async_ask_test.cpp: asks from outside, by handlers and coroutines that are no actors.
#include "runtime/async_ask.hpp"

#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

using namespace duet::test;
namespace asio = boost::asio;
using duet::runtime::async_ask;
using duet::runtime::errc;
using duet::runtime::Ref;
using duet::runtime::System;
using duet::runtime::SystemOptions;
using Answer = duet::runtime::AskResult<int>;
using Strings = std::vector<std::string>;

namespace {

/// Keeps questions until it is told to answer, with Result, or to end, with Cancel.
class Holder final : public duet::runtime::HandlerActor<Holder, Language> {
 public:
  void on(Question question) { held_.push_back(std::move(question.reply)); }
  void on(Result result) {
    for (auto& reply : held_) reply(result.number);
    held_.clear();
  }
  void on(Cancel) { finish(); }
  void on(Work) {}
  void on(Gauge) {}
  void on(duet::runtime::Stop) { finish(); }

 private:
  std::vector<duet::runtime::Reply<int>> held_;
};

struct Fixture : Host {
  Fixture() : holder(system.spawn<Holder>("holder")) {}

  /// Writes down how an ask ends.
  auto note() {
    return [this](Answer result) {
      ends.push_back(result.has_value() ? std::to_string(*result)
                                        : result.error().error().message());
    };
  }
  static std::string text(errc error) { return make_error_code(error).message(); }

  Ref<Language> holder;
  Strings ends;
};

asio::awaitable<int> ask_twice(const System& system, Ref<Language> recorder) {
  Question first(1);
  const auto one = co_await async_ask(system, recorder, std::move(first), 1h, asio::use_awaitable);
  Question second(one.value());
  const auto two = co_await async_ask(system, recorder, std::move(second), 1h, asio::use_awaitable);
  co_return two.value();
}

asio::awaitable<std::size_t> race(const System& system, Ref<Language> holder, Strings* log) {
  using namespace asio::experimental::awaitable_operators;
  Question question(1);
  asio::steady_timer timer(co_await asio::this_coro::executor, 1ms);
  auto first = co_await (timer.async_wait(asio::use_awaitable) ||
                         async_ask(system, holder, std::move(question), 1h, asio::use_awaitable));
  log->push_back("raced");
  co_return first.index();
}

struct Destroyed {
  explicit Destroyed(int& value) noexcept : count(&value) {}
  Destroyed(Destroyed&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
  Destroyed(const Destroyed&) = delete;
  ~Destroyed() {
    if (count != nullptr) ++*count;
  }
  int* count;
};

}   // namespace

BOOST_FIXTURE_TEST_SUITE(asks_from_outside, Fixture)

BOOST_AUTO_TEST_CASE(a_coroutine_of_the_host_gets_the_value) {
  const auto recorder = system.spawn<Recorder>("recorder", ends);
  int value = 0;
  asio::co_spawn(io, ask_twice(system, recorder),
                 [&value](std::exception_ptr, int result) { value = result; });
  run_ready();
  BOOST_TEST(value == 4);
  BOOST_TEST(living() == 2U);   // the asks have gone
}

BOOST_AUTO_TEST_CASE(the_handler_is_never_called_before_the_initiation_returns) {
  bool returned = false;
  bool called_before = false;
  const auto handler = [&](Answer result) {
    called_before = !returned;
    note()(result);
  };
  async_ask(system, Ref<Language>(), Question(1), 1h, handler);
  returned = true;
  BOOST_TEST(ends.empty());
  run_ready();
  BOOST_TEST(!called_before);
  BOOST_TEST(ends == (Strings{text(errc::receiver_gone)}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_other_four_ends_come_with_their_reasons) {
  // timed_out
  async_ask(system, holder, Question(1), 10ms, note());
  advance(10ms);
  BOOST_TEST(ends == (Strings{text(errc::timed_out)}), boost::test_tools::per_element());
  // receiver_gone: it ends with the question in its hands
  async_ask(system, holder, Question(1), 1h, note());
  run_ready();
  holder.send(Cancel{});
  run_ready();
  BOOST_TEST(ends.back() == text(errc::receiver_gone));
  // overloaded: two questions at once for a place of one
  duet::runtime::ActorOptions options("narrow");
  options.bounded_max = 1;
  holder = system.spawn<Holder>(options);
  run_ready();
  async_ask(system, holder, Question(1), 1h, note());
  async_ask(system, holder, Question(2), 1h, note());
  run_ready();
  BOOST_TEST(ends.back() == text(errc::overloaded));
  holder.send(Result{7});
  run_ready();
  BOOST_TEST(ends.back() == "7");
  // cancelled
  asio::cancellation_signal signal;
  async_ask(system, holder, Question(1), 1h, asio::bind_cancellation_slot(signal.slot(), note()));
  run_ready();
  BOOST_TEST(ends.size() == 4U);
  signal.emit(asio::cancellation_type::total);
  run_ready();
  BOOST_TEST(ends.back() == text(errc::cancelled));
  BOOST_TEST(clock.armed() == 0U);
  BOOST_TEST(living() == 1U);
  holder.send(Result{1});
  run_ready();
  BOOST_TEST(ends.size() == 5U);
  BOOST_TEST(counters().late_replies == 1U);
}

BOOST_AUTO_TEST_CASE(a_cancel_right_after_the_ask_does_not_overtake_it) {
  asio::cancellation_signal signal;
  async_ask(system, holder, Question(1), 1h, asio::bind_cancellation_slot(signal.slot(), note()));
  signal.emit(asio::cancellation_type::terminal);
  run_ready();
  BOOST_TEST(ends == (Strings{text(errc::cancelled)}), boost::test_tools::per_element());
  BOOST_TEST(living() == 1U);
}

BOOST_AUTO_TEST_CASE(run_does_not_return_while_an_ask_from_outside_is_pending) {
  async_ask(system, holder, Question(1), 1h, note());
  run_ready();
  BOOST_TEST(!io.stopped());
  holder.send(Result{5});
  run_ready();
  BOOST_TEST(io.stopped());
  BOOST_TEST(ends == (Strings{"5"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_pending_ask_shows_in_the_snapshot) {
  async_ask(system, holder, Question(1), 1h, note());
  run_ready();
  const auto actors = system.snapshot().actors;
  BOOST_REQUIRE(actors.size() == 2U);
  BOOST_TEST(actors[1].name == "ask");
  BOOST_TEST(actors[1].waits_for == "reply");
  holder.send(Result{5});
  run_ready();
}

BOOST_AUTO_TEST_CASE(a_stop_of_the_system_cancels_and_its_end_says_receiver_gone) {
  async_ask(system, holder, Question(1), 1h, note());
  run_ready();
  system.stop(1s, [](const duet::runtime::StopReport&) {});
  run_ready();
  BOOST_TEST(ends.size() == 1U);
  async_ask(system, holder, Question(1), 1h, note());   // nothing is spawned any more
  run_ready();
  BOOST_TEST(ends.back() == text(errc::receiver_gone));
  std::optional<System> other(std::in_place, io.get_executor());
  const auto second = other->spawn<Holder>("holder");
  async_ask(*other, second, Question(1), 1h, note());
  run_ready();
  BOOST_TEST(ends.size() == 2U);
  other.reset();
  run_ready();
  BOOST_TEST(ends.size() == 3U);
  BOOST_TEST(ends.back() == text(errc::receiver_gone));
}

BOOST_AUTO_TEST_CASE(a_context_that_goes_first_destroys_the_handler_unrun) {
  int destroyed = 0;
  int called = 0;
  std::optional<asio::io_context> context(std::in_place);
  System other(context->get_executor());
  const auto second = other.spawn<Holder>("holder");
  auto handler = [mark = Destroyed(destroyed), &called](Answer) { ++called; };
  async_ask(other, second, Question(1), 1h, std::move(handler));
  context->poll();
  BOOST_TEST(destroyed == 0);
  context.reset();
  BOOST_TEST(destroyed == 1);
  BOOST_TEST(called == 0);
}

BOOST_AUTO_TEST_CASE(the_handler_runs_where_it_is_bound) {
  const auto recorder = system.spawn<Recorder>("recorder", ends);
  asio::io_context own;
  auto strand = asio::make_strand(own);
  bool inside = false;
  async_ask(system, recorder, Question(1), 1h,
            asio::bind_executor(strand, [&](Answer) { inside = strand.running_in_this_thread(); }));
  run_ready();
  BOOST_TEST(!inside);
  own.run();   // it was held open by the ask
  BOOST_TEST(inside);
}

BOOST_AUTO_TEST_CASE(a_lost_race_cancels_the_ask) {
  io.restart();
  auto index = asio::co_spawn(io, race(system, holder, &ends), asio::use_future);
  io.run();
  BOOST_TEST(index.get() == 0U);
  BOOST_TEST(ends == (Strings{"raced"}), boost::test_tools::per_element());
  BOOST_TEST(living() == 1U);
}

BOOST_AUTO_TEST_CASE(any_completion_token_will_do) {
  const auto recorder = system.spawn<Recorder>("recorder", ends);
  auto future = async_ask(system, recorder, Question(3), 1h, asio::use_future);
  auto later = async_ask(system, recorder, Question(4), 1h, asio::deferred);
  run_ready();
  BOOST_TEST(future.get().value() == 6);
  BOOST_TEST(ends.size() == 1U);   // the deferred one has not begun
  std::move(later)(note());
  run_ready();
  BOOST_TEST(ends.back() == "8");
}

BOOST_AUTO_TEST_CASE(asks_from_many_threads_each_end_once) {
  constexpr int threads = 4;
  constexpr int each = 2000;
  std::atomic<int> ended = 0;
  std::atomic<long> sum = 0;
  Strings unused;
  class Doubler final : public duet::runtime::HandlerActor<Doubler, std::variant<Question>> {
   public:
    void on(Question question) { question.reply(2 * question.number); }
  };
  {
    asio::thread_pool pool(2);
    SystemOptions options;
    options.pumps = 2;
    options.bounded_max = threads * each;
    System threaded(pool.get_executor(), options);
    const auto doubler = threaded.spawn<Doubler>("doubler");
    std::vector<std::thread> askers;
    for (int t = 0; t < threads; ++t) {
      askers.emplace_back([&] {
        for (int i = 0; i < each; ++i) {
          asio::cancellation_signal signal;
          async_ask(threaded, doubler, Question(i), 1h,
                    asio::bind_cancellation_slot(signal.slot(), [&](Answer result) {
                      if (result.has_value()) sum += *result;
                      ++ended;
                    }));
        }
      });
    }
    for (auto& asker : askers) asker.join();
    pool.wait();
  }
  BOOST_TEST(ended == threads * each);
  BOOST_TEST(sum == 1L * threads * each * (each - 1));
}

BOOST_AUTO_TEST_SUITE_END()
