// timer_test.cpp: sleeping, receiving with a limit, timers of handler actors. The test moves the
// clock.
#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

using namespace duet::test;
using duet::runtime::Behaviour;
using duet::runtime::errc;
using duet::runtime::Self;
using Strings = std::vector<std::string>;

namespace {

using Plain = std::variant<Result>;

Behaviour sleeper(Self<Plain> self, Strings* log) {
  log->push_back("begin");
  co_await self.sleep(10ms);
  log->push_back("end");
}

Behaviour limited_receiver(Self<Plain> self, Strings* log) {
  for (;;) {
    auto message = co_await self.receive_for(10ms);
    if (message.has_error()) {
      log->push_back(message.error() == errc::timed_out ? "timed out" : "?");
      co_return;
    }
    log->push_back("result " + std::to_string(std::get<Result>(*message).number));
  }
}

duet::runtime::Async<> pause(Self<Plain> self, int number) {
  co_await self.sleep(std::chrono::milliseconds(number));
}

Behaviour received_within_an_expression(Self<Plain> self, Strings* log) {
  // What was received lives on while the other await waits for longer than the limit.
  co_await pause(self, std::get<Result>(*co_await self.receive_for(10ms)).number);
  log->push_back("paused");
  static_cast<void>(co_await self.receive());
  log->push_back("received");
}

using Timed = std::variant<Work, Result, Cancel>;

class TimerActor final : public duet::runtime::HandlerActor<TimerActor, Timed> {
 public:
  explicit TimerActor(Strings& log) : log_(log) {}
  void started() {
    first_ = send_after(10ms, Work{1});
    second_ = send_after(20ms, Work{2});
    send_after(30ms, Work{3});
  }
  void on(Work work) { log_.push_back("work " + std::to_string(work.number)); }
  void on(Result) { log_.push_back(cancel_timer(second_) ? "cancelled" : "too late"); }
  void on(Cancel) { finish(); }

 private:
  Strings& log_;
  duet::runtime::TimerId first_{};
  duet::runtime::TimerId second_{};
};

struct Fixture : Host {
  Strings log;
};

}   // namespace

BOOST_FIXTURE_TEST_SUITE(actor_timers, Fixture)

BOOST_AUTO_TEST_CASE(a_sleeper_resumes_at_its_time_and_not_before) {
  system.spawn("sleeper", sleeper, &log);
  advance(9ms);
  BOOST_TEST(log == (Strings{"begin"}), boost::test_tools::per_element());
  advance(1ms);
  BOOST_TEST(log == (Strings{"begin", "end"}), boost::test_tools::per_element());
  BOOST_TEST(living() == 0U);
}

BOOST_AUTO_TEST_CASE(receive_for_takes_a_message_or_its_time_whichever_is_first) {
  const auto receiver = system.spawn("receiver", limited_receiver, &log);
  receiver.send(Result{1});
  advance(0ms);
  BOOST_TEST(clock.armed() == 1U);
  advance(9ms);
  receiver.send(Result{2});
  advance(0ms);
  advance(9ms);
  BOOST_TEST(log.size() == 2U);
  advance(1ms);
  BOOST_TEST(log == (Strings{"result 1", "result 2", "timed out"}),
             boost::test_tools::per_element());
  BOOST_TEST(clock.armed() == 0U);
}

BOOST_AUTO_TEST_CASE(receive_for_arms_no_timer_when_a_message_is_there) {
  const auto receiver = system.spawn("receiver", limited_receiver, &log);
  receiver.send(Result{1});
  receiver.send(Result{2});
  run_ready();
  BOOST_TEST(log.size() == 2U);
  BOOST_TEST(clock.armed() == 1U);   // of the third receive
}

BOOST_AUTO_TEST_CASE(a_message_and_its_time_limit_at_once_give_one_of_both) {
  const auto receiver = system.spawn("receiver", limited_receiver, &log);
  run_ready();
  clock.advance(10ms);        // the timer's node lies in the mailbox ...
  receiver.send(Result{1});   // ... and so does this
  run_ready();
  BOOST_TEST(log.size() == 1U);
  BOOST_TEST(living() == 0U);
  BOOST_TEST(counters().receiver_gone == 1U);   // the message was not lost unseen
}

BOOST_AUTO_TEST_CASE(a_handler_actors_timers_come_as_messages_and_can_be_cancelled) {
  const auto actor = system.spawn<TimerActor>("timers", log);
  advance(10ms);
  actor.send(Result{});
  advance(50ms);
  actor.send(Result{});
  run_ready();
  BOOST_TEST(log == (Strings{"work 1", "cancelled", "work 3", "too late"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_limit_ends_with_its_receive_though_the_expression_goes_on) {
  const auto actor = system.spawn("actor", received_within_an_expression, &log);
  run_ready();
  actor.send(Result{50});
  run_ready();
  BOOST_TEST(clock.armed() == 1U);   // of the sleep alone
  advance(20ms);
  BOOST_TEST(log.empty());
  advance(30ms);
  BOOST_TEST(log == Strings{"paused"}, boost::test_tools::per_element());
  actor.send(Result{1});
  run_ready();
  BOOST_TEST(log.back() == "received");
}

BOOST_AUTO_TEST_CASE(timers_that_are_due_come_before_messages_that_wait) {
  const auto actor = system.spawn<TimerActor>("timers", log);
  advance(10ms);
  actor.send(Cancel{});   // ends it, in its turn
  clock.advance(50ms);
  run_ready();
  BOOST_TEST(log == (Strings{"work 1", "work 2", "work 3"}), boost::test_tools::per_element());
  BOOST_TEST(living() == 0U);
}

BOOST_AUTO_TEST_CASE(an_actors_timers_end_with_it) {
  const auto actor = system.spawn<TimerActor>("timers", log);
  run_ready();
  BOOST_TEST(clock.armed() == 3U);
  actor.send(Cancel{});
  run_ready();
  BOOST_TEST(clock.armed() == 0U);
  advance(1h);
  BOOST_TEST(log.empty());
}

BOOST_AUTO_TEST_SUITE_END()
