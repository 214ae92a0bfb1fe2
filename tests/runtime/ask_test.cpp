// ask_test.cpp: an ask resolves exactly once, with a reason.
#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <optional>
#include <thread>

using namespace duet::test;
using duet::runtime::AskResult;
using duet::runtime::Behaviour;
using duet::runtime::errc;
using duet::runtime::Ref;
using duet::runtime::Reply;
using duet::runtime::Self;

namespace {

using Results = std::vector<AskResult<int>>;
using Quiet = std::variant<Result>;

Behaviour asker(Self<Quiet> self, Ref<Language> to, int number, duet::runtime::Duration timeout,
                Results* results) {
  Question question(number);
  auto answer = co_await self.ask(to, std::move(question), timeout);
  results->push_back(answer);
}

/// Keeps questions unanswered.
class Holder final : public duet::runtime::HandlerActor<Holder, Language> {
 public:
  explicit Holder(std::vector<Reply<int>>& held) : held_(held) {}
  void on(Question question) { held_.push_back(std::move(question.reply)); }
  void on(Work) {}
  void on(Cancel) {}
  void on(Result) {}
  void on(Gauge) {}
  void on(duet::runtime::Stop) { finish(); }

 private:
  std::vector<Reply<int>>& held_;
};

struct Fixture : Host {
  Results results;
  std::vector<Reply<int>> held;
  std::vector<std::string> log;
};

}   // namespace

BOOST_FIXTURE_TEST_SUITE(ask, Fixture)

BOOST_AUTO_TEST_CASE(an_answer_comes_as_a_value_and_cancels_the_timer) {
  const auto recorder = system.spawn<Recorder>("recorder", log);
  system.spawn("asker", asker, recorder, 21, 1s, &results);
  run_ready();
  BOOST_REQUIRE(results.size() == 1U);
  BOOST_TEST(results[0].value() == 42);
  BOOST_TEST(clock.armed() == 0U);
  BOOST_TEST(living() == 1U);
}

BOOST_AUTO_TEST_CASE(a_passed_deadline_tells_what_the_receiver_was_doing_and_the_answer_is_late) {
  const auto holder = system.spawn<Holder>("holder", held);
  system.spawn("asker", asker, holder, 1, 5ms, &results);
  advance(4ms);
  BOOST_TEST(results.empty());
  holder.send(Result{1});   // waits in the mailbox when the time is up
  clock.advance(1ms);
  run_ready();
  BOOST_REQUIRE(results.size() == 1U);
  BOOST_TEST((results[0].error().code() == errc::timed_out));
  BOOST_TEST(results[0].error().receiver().number == holder.address().number());
  held.at(0)(7);
  run_ready();
  BOOST_TEST(counters().late_replies == 1U);
  BOOST_TEST(results.size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_unanswered_reply_that_is_destroyed_says_receiver_gone) {
  const auto holder = system.spawn<Holder>("holder", held);
  system.spawn("asker", asker, holder, 1, 1s, &results);
  run_ready();
  held.clear();
  run_ready();
  BOOST_REQUIRE(results.size() == 1U);
  BOOST_TEST((results[0].error().code() == errc::receiver_gone));
}

BOOST_AUTO_TEST_CASE(asking_the_dead_says_receiver_gone) {
  const auto recorder = system.spawn<Recorder>("recorder", log);
  recorder.send(duet::runtime::Stop{});
  run_ready();
  system.spawn("asker", asker, recorder, 1, 1s, &results);
  system.spawn("asker", asker, Ref<Language>{}, 1, 1s, &results);
  run_ready();
  BOOST_REQUIRE(results.size() == 2U);
  for (const auto& result : results) BOOST_TEST((result.error().code() == errc::receiver_gone));
}

BOOST_AUTO_TEST_CASE(a_receiver_that_ends_with_the_question_queued_says_receiver_gone) {
  const auto recorder = system.spawn<Recorder>("recorder", log);
  system.spawn("asker", asker, recorder, 1, 1s, &results);
  duet::runtime::ActorOptions options("second");
  recorder.send(duet::runtime::Stop{});   // urgent: it ends before the question's turn
  run_ready();
  BOOST_REQUIRE(results.size() == 1U);
  BOOST_TEST((results[0].error().code() == errc::receiver_gone));
}

BOOST_AUTO_TEST_CASE(a_full_mailbox_says_overloaded) {
  duet::runtime::ActorOptions options("recorder");
  options.bounded_max = 1;
  const auto recorder = system.spawn<Recorder>(options, log);
  run_ready();
  system.spawn("one", asker, recorder, 1, 1s, &results);
  system.spawn("two", asker, recorder, 2, 1s, &results);
  run_ready();
  BOOST_REQUIRE(results.size() == 2U);
  const bool first_refused = results[0].has_error();
  BOOST_TEST((results[first_refused ? 0 : 1].error().code() == errc::overloaded));
  BOOST_TEST(results[first_refused ? 1 : 0].has_value());
}

BOOST_AUTO_TEST_CASE(a_question_whose_deadline_passes_in_the_mailbox_is_never_started) {
  const auto recorder = system.spawn<Recorder>("recorder", log);
  run_ready();
  // The asker's activation sends; the time is up before the recorder's.
  Question question(5);
  recorder.send(Result{1});
  BOOST_TEST(recorder.send(std::move(question), clock.now() + 1ms).ok());
  clock.advance(2ms);
  run_ready();
  BOOST_TEST(log == (std::vector<std::string>{"result 1"}), boost::test_tools::per_element());
  BOOST_TEST(counters().expired == 1U);
}

BOOST_AUTO_TEST_CASE(stopping_the_asker_cancels_its_ask) {
  const auto holder = system.spawn<Holder>("holder", held);
  const auto asking = system.spawn("asker", asker, holder, 1, 1s, &results);
  run_ready();
  BOOST_TEST(system.stop(asking));
  run_ready();
  BOOST_REQUIRE(results.size() == 1U);
  BOOST_TEST((results[0].error().code() == errc::cancelled));
  BOOST_TEST(!asking.alive());
  held.at(0)(1);
  run_ready();
  BOOST_TEST(counters().late_replies == 1U);
}

BOOST_AUTO_TEST_CASE(an_empty_reply_may_be_called) {
  const auto recorder = system.spawn<Recorder>("recorder", log);
  BOOST_TEST(recorder.send(Question(1)).ok());
  run_ready();
  BOOST_TEST(log.size() == 1U);
}

namespace {
class CallbackAsker final : public duet::runtime::HandlerActor<CallbackAsker, Quiet> {
 public:
  CallbackAsker(Ref<Language> to, Results& results) : to_(to), results_(results) {}
  void started() {
    ask(to_, Question(4), 5ms, [this](AskResult<int> result) {
      results_.push_back(result);
      finish();
    });
  }
  void on(Result) {}

 private:
  Ref<Language> to_;
  Results& results_;
};
}   // namespace

BOOST_AUTO_TEST_CASE(a_handler_actor_asks_with_a_callback) {
  const auto recorder = system.spawn<Recorder>("recorder", log);
  const auto holder = system.spawn<Holder>("holder", held);
  system.spawn<CallbackAsker>("asker", recorder, results);
  system.spawn<CallbackAsker>("asker", holder, results);
  run_ready();
  BOOST_REQUIRE(results.size() == 1U);
  BOOST_TEST(results[0].value() == 8);
  advance(5ms);
  BOOST_REQUIRE(results.size() == 2U);
  BOOST_TEST((results[1].error().code() == errc::timed_out));
  BOOST_TEST(living() == 2U);
}

namespace {

struct Tally {
  std::atomic<int> values = 0;
  std::atomic<int> failures = 0;
  std::atomic<int> wrong = 0;
};

Behaviour race_asker(Self<Quiet> self, Ref<Language> to, int count, Tally* tally) {
  for (int i = 0; i < count; ++i) {
    Question question(i);
    // Some time-outs are as short as the way there and back.
    const duet::runtime::Duration timeout = i % 3 == 0 ? 2us : 10s;
    const auto answer = co_await self.ask(to, std::move(question), timeout);
    if (answer.has_error()) {
      ++tally->failures;
    } else {
      ++tally->values;
      if (answer.value() != 2 * i) ++tally->wrong;
    }
  }
}

/// Answers on another thread, drops every seventh question.
class ThreadedAnswerer final : public duet::runtime::HandlerActor<ThreadedAnswerer, Language> {
 public:
  void on(Question question) {
    if (question.number % 7 == 0) return;
    if (question.number % 2 == 0) {
      question.reply(2 * question.number);
      return;
    }
    const int number = question.number;
    auto reply = std::make_shared<Reply<int>>(std::move(question.reply));
    offload([reply, number] { (*reply)(2 * number); }, [](const auto&) {});
  }
  void on(Work) {}
  void on(Cancel) {}
  void on(Result) {}
  void on(Gauge) {}
  void on(duet::runtime::Stop) { finish(); }
};

}   // namespace

BOOST_AUTO_TEST_CASE(answers_deadlines_and_drops_race_on_threads_and_each_ask_resolves_once) {
  constexpr int askers = 4;
  constexpr int count = 3000;
  Tally tally;
  boost::asio::io_context context(2);
  {
    duet::runtime::SystemOptions options;
    options.pumps = 2;
    options.compute_queued_max = 64;
    duet::runtime::System threaded(context.get_executor(), options);
    const auto answerer = threaded.spawn<ThreadedAnswerer>("answerer");
    for (int i = 0; i < askers; ++i) threaded.spawn("asker", race_asker, answerer, count, &tally);
    std::thread other([&context] { context.run(); });
    context.run();
    other.join();
    BOOST_TEST(threaded.snapshot().actors.size() == 1U);
  }
  BOOST_TEST(tally.values + tally.failures == askers * count);
  BOOST_TEST(tally.values > 0);
  BOOST_TEST(tally.failures >= askers * count / 7);
  BOOST_TEST(tally.wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
