// mailbox_test.cpp: order, lanes, classes and bounds of messages.
#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <numeric>
#include <thread>

using namespace duet::test;
using duet::runtime::errc;
using duet::runtime::Ref;
using Strings = std::vector<std::string>;

namespace {

struct Undeclared {};
struct Throwing {
  Throwing() = default;
  Throwing(Throwing&&) {}
};
struct AggregateWithString {
  std::string text;
};
struct UrgentBounded {};

}   // namespace

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<Throwing> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<AggregateWithString> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<UrgentBounded> = MessageClass::bounded;
template <>
inline constexpr Lane message_lane<UrgentBounded> = Lane::urgent;
}   // namespace duet::runtime

// What must not compile, as concepts.
static_assert(duet::runtime::Message<Work>);
static_assert(!duet::runtime::Message<Undeclared>, "a message says its class");
static_assert(!duet::runtime::Message<Throwing>, "a message moves without throwing");
static_assert(!duet::runtime::Message<AggregateWithString>,
              "g++ 12 destroys aggregate temporaries in a co_await twice");
static_assert(!duet::runtime::Message<UrgentBounded>, "what overtakes must arrive");
static_assert(duet::runtime::Language<Language>);
static_assert(!duet::runtime::Language<std::variant<Work, Undeclared>>);
static_assert(!duet::runtime::HasMessage<std::variant<Work>, Cancel>);

namespace {

struct Sequenced {
  int sender = 0;
  int number = 0;
};
struct SequencedUrgent {
  int sender = 0;
  int number = 0;
};

}   // namespace

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<Sequenced> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<SequencedUrgent> = MessageClass::guaranteed;
template <>
inline constexpr Lane message_lane<SequencedUrgent> = Lane::urgent;
}   // namespace duet::runtime

namespace {

/// Checks that it is alone and that each sender's numbers rise.
class Exclusive final
    : public duet::runtime::HandlerActor<Exclusive, std::variant<Sequenced, SequencedUrgent>> {
 public:
  struct Seen {
    std::atomic<int> inside = 0;
    std::atomic<int> violations = 0;
    std::atomic<int> count = 0;
  };
  explicit Exclusive(Seen& seen) : seen_(seen) {}
  void on(Sequenced message) { check(message.number, normal_[message.sender]); }
  void on(SequencedUrgent message) { check(message.number, urgent_[message.sender]); }

 private:
  void check(int number, int& next) {
    if (seen_.inside.fetch_add(1) != 0 || number != next++) ++seen_.violations;
    seen_.inside.fetch_sub(1);
    ++seen_.count;
  }
  Seen& seen_;
  int normal_[2] = {};
  int urgent_[2] = {};
};

}   // namespace

BOOST_AUTO_TEST_SUITE(mailbox)

BOOST_AUTO_TEST_CASE(messages_of_one_sender_and_lane_come_in_the_order_they_were_sent) {
  Strings log;
  Strings expected;
  Host host;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  for (int i = 0; i < 300; ++i) {
    recorder.send(Result{i});
    expected.push_back("result " + std::to_string(i));
  }
  host.run_ready();
  BOOST_TEST(log == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_urgent_message_overtakes_the_normal_ones_that_wait) {
  Strings log;
  Host host;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  recorder.send(Result{1});
  recorder.send(Result{2});
  recorder.send(Cancel{1});
  recorder.send(Cancel{2});
  host.run_ready();
  BOOST_TEST(log == (Strings{"cancel 1", "cancel 2", "result 1", "result 2"}),
             boost::test_tools::per_element());
}

namespace {
using Looped = std::variant<Result, Cancel>;

/// Sends itself a Cancel while normal messages that came before are in its batch.
class Overtaken final : public duet::runtime::HandlerActor<Overtaken, Looped> {
 public:
  explicit Overtaken(Strings& log) : log_(log) {}
  void on(Result result) {
    log_.push_back("result " + std::to_string(result.number));
    if (result.number == 1) self().send(Cancel{9});
  }
  void on(Cancel cancel) { log_.push_back("cancel " + std::to_string(cancel.number)); }

 private:
  Strings& log_;
};
}   // namespace

BOOST_AUTO_TEST_CASE(an_urgent_message_overtakes_those_that_the_activation_has_taken_already) {
  Strings log;
  Host host;
  const auto actor = host.system.spawn<Overtaken>("overtaken", log);
  for (int i = 1; i <= 3; ++i) actor.send(Result{i});
  host.run_ready();
  BOOST_TEST(log == (Strings{"result 1", "cancel 9", "result 2", "result 3"}),
             boost::test_tools::per_element());
}

// bounded queues; one admission path.
BOOST_AUTO_TEST_CASE(a_full_mailbox_refuses_bounded_messages_and_takes_guaranteed_ones) {
  Strings log;
  Host host;
  duet::runtime::ActorOptions options("recorder");
  options.bounded_max = 3;
  const auto recorder = host.system.spawn<Recorder>(options, log);
  for (int i = 0; i < 3; ++i) BOOST_TEST(recorder.send(Work{i}).ok());
  BOOST_TEST((recorder.send(Work{3}) == errc::overloaded));
  BOOST_TEST(recorder.send(Result{7}).ok());
  BOOST_TEST(recorder.send(Cancel{8}).ok());
  host.run_ready();
  BOOST_TEST(log == (Strings{"cancel 8", "work 0", "work 1", "work 2", "result 7"}),
             boost::test_tools::per_element());
  BOOST_TEST(recorder.send(Work{4}).ok());
  BOOST_TEST(host.counters().refused == 1U);
}

BOOST_AUTO_TEST_CASE(the_bound_is_exact_while_two_threads_send) {
  constexpr std::uint32_t bound = 100;
  for (int round = 0; round < 50; ++round) {
    Strings log;
    Host host;
    duet::runtime::ActorOptions options("recorder");
    options.bounded_max = bound;
    const auto recorder = host.system.spawn<Recorder>(options, log);
    std::atomic<std::uint32_t> taken = 0;
    const auto send = [&] {
      for (int i = 0; i < 80; ++i) taken += recorder.send(Work{i}).ok() ? 1 : 0;
    };
    std::thread other(send);
    send();
    other.join();
    BOOST_TEST_REQUIRE(taken == bound);
    host.run_ready();
    BOOST_TEST_REQUIRE(log.size() == bound);
  }
}

BOOST_AUTO_TEST_CASE(a_latest_message_takes_the_place_of_the_older_one) {
  Strings log;
  Host host;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  recorder.send(Gauge{1});
  recorder.send(Result{1});
  for (int i = 2; i <= 1000; ++i) recorder.send(Gauge{i});
  BOOST_TEST(host.system.snapshot().actors.at(0).normal.depth == 2U);
  host.run_ready();
  recorder.send(Gauge{1001});
  host.run_ready();
  BOOST_TEST(log == (Strings{"gauge 1000", "result 1", "gauge 1001"}),
             boost::test_tools::per_element());
  BOOST_TEST(host.counters().superseded == 999U);
}

BOOST_AUTO_TEST_CASE(a_latest_message_brings_its_deadline_or_none) {
  Strings log;
  Host host;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  recorder.send(Gauge{1});
  recorder.send(Gauge{2}, host.clock.now() + 1s);
  host.clock.advance(2s);
  host.run_ready();
  BOOST_TEST(log.empty());
  BOOST_TEST(host.counters().expired == 1U);
  recorder.send(Gauge{3}, host.clock.now() + 1s);
  recorder.send(Gauge{4});
  host.clock.advance(2s);
  host.run_ready();
  BOOST_TEST(log == (Strings{"gauge 4"}), boost::test_tools::per_element());
  BOOST_TEST(host.counters().superseded == 2U);
}

BOOST_AUTO_TEST_CASE(the_last_gauge_arrives_whichever_thread_sends_it) {
  for (int round = 0; round < 200; ++round) {
    Strings log;
    Host host;
    const auto recorder = host.system.spawn<Recorder>("recorder", log);
    std::atomic<bool> done = false;
    std::thread sender([&] {
      for (int i = 1; i <= 100; ++i) recorder.send(Gauge{i});
      done = true;
    });
    while (!done) host.run_ready();
    sender.join();
    host.run_ready();
    BOOST_TEST_REQUIRE(log.back() == "gauge 100");
  }
}

BOOST_AUTO_TEST_CASE(a_message_whose_deadline_passed_is_not_started) {
  Strings log;
  Host host;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  recorder.send(Result{1}, host.clock.now() + 1ms);
  recorder.send(Result{2}, host.clock.now() + 3ms);
  host.clock.advance(2ms);
  host.run_ready();
  BOOST_TEST(log == (Strings{"result 2"}), boost::test_tools::per_element());
  BOOST_TEST(host.counters().expired == 1U);
}

BOOST_AUTO_TEST_CASE(an_activation_ends_after_64_messages_so_that_neighbours_get_their_turn) {
  Strings log;
  Host host;
  const auto first = host.system.spawn<Recorder>("first", log);
  const auto second = host.system.spawn<Recorder>("second", log);
  for (int i = 0; i < 200; ++i) first.send(Result{i});
  second.send(Cancel{1});
  host.run_ready();
  const auto position = std::find(log.begin(), log.end(), "cancel 1") - log.begin();
  BOOST_TEST(position == 64);
  BOOST_TEST(log.size() == 201U);
}

BOOST_AUTO_TEST_CASE(an_actor_never_runs_on_two_threads_and_loses_and_reorders_nothing) {
  constexpr int count = 20000;
  boost::asio::io_context io(2);
  Exclusive::Seen seen;
  {
    duet::runtime::SystemOptions options;
    options.pumps = 2;
    duet::runtime::System system(io.get_executor(), options);
    const auto actor = system.spawn<Exclusive>("exclusive", seen);
    auto work = boost::asio::make_work_guard(io);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) threads.emplace_back([&io] { io.run(); });
    for (int sender = 0; sender < 2; ++sender) {
      threads.emplace_back([&, sender] {
        for (int i = 0; i < count; ++i) {
          actor.send(Sequenced{sender, i});
          actor.send(SequencedUrgent{sender, i});
        }
      });
    }
    threads[2].join();
    threads[3].join();
    work.reset();
    threads[0].join();
    threads[1].join();
  }
  BOOST_TEST(seen.count == 4 * count);
  BOOST_TEST(seen.violations == 0);
}

BOOST_AUTO_TEST_CASE(the_envelope_names_the_sender_and_numbers_its_messages) {
  struct Probe final : duet::runtime::HandlerActor<Probe, std::variant<Result>> {
    explicit Probe(std::vector<duet::runtime::Envelope>& seen) : seen_(seen) {}
    void on(Result) { seen_.push_back(envelope()); }
    std::vector<duet::runtime::Envelope>& seen_;
  };
  struct Sender final : duet::runtime::HandlerActor<Sender, std::variant<Work>> {
    explicit Sender(Ref<std::variant<Result>> to) : to_(to) {}
    void on(Work) {
      to_.send(Result{1});
      to_.send(Result{2});
    }
    Ref<std::variant<Result>> to_;
  };
  std::vector<duet::runtime::Envelope> seen;
  Host host;
  const auto probe = host.system.spawn<Probe>("probe", seen);
  const auto sender = host.system.spawn<Sender>("sender", probe);
  probe.send(Result{0});
  BOOST_TEST(sender.send(Work{}).ok());
  host.run_ready();
  BOOST_REQUIRE(seen.size() == 3U);
  BOOST_TEST(seen[0].sender.empty());
  BOOST_TEST((seen[1].sender == sender.address()));
  BOOST_TEST(seen[1].id + 1 == seen[2].id);
}

BOOST_AUTO_TEST_SUITE_END()
