// mailbox_test.cpp: order, lanes, classes and bounds of messages.
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

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

namespace {

/// Sends from within the system, where a thread may find that a way without a branch is faster.
class Sender final : public duet::runtime::HandlerActor<Sender, std::variant<Work>> {
 public:
  Sender(Ref<Language> to, Ref<Language> gone, bool branchless, Strings& log)
      : to_(to), gone_(gone), branchless_(branchless), log_(log) {}
  void on(Work /*begin*/) {
    duet::runtime::detail::WakeHistory& wakes = duet::runtime::detail::thread_state().wakes;
    wakes.assume(branchless_);
    for (int i = 0; i < 3; ++i) say("work", to_.send(Work{i}));   // it is idle at first
    say("result", to_.send(Result{3}));
    say("work", to_.send(Work{4}));
    say("cancel", to_.send(Cancel{5}));
    say("question", to_.send(Question{6}));
    say("gone", gone_.send(Work{7}));
    say("gone", gone_.send(Result{8}));
    wakes.assume(false);
  }

 private:
  void say(const std::string& what, duet::runtime::SendStatus status) {
    log_.push_back(what + ": " + (status.ok() ? "ok" : status.error().message()));
  }
  Ref<Language> to_, gone_;
  bool branchless_;
  Strings& log_;
};

/// What the sender and its receiver wrote down, and the snapshot after it.
Strings sent_from_within(bool branchless) {
  Strings log;
  Host host;
  duet::runtime::ActorOptions options("recorder");
  options.bounded_max = 3;
  const auto recorder = host.system.spawn<Recorder>(options, log);
  const auto gone = host.system.spawn<Recorder>("gone", log);
  static_cast<void>(gone.send(duet::runtime::Stop{}));
  host.run_ready();
  const auto sender = host.system.spawn<Sender>("sender", recorder, gone, branchless, log);
  for (int round = 0; round < 2; ++round) {
    BOOST_TEST(sender.send(Work{}).ok());
    host.run_ready();
  }
  for (const auto& actor : host.system.snapshot().actors) {
    log.push_back(actor.name + ": depth " + std::to_string(actor.normal.depth) + ", peak " +
                  std::to_string(actor.normal.peak) + ", handled " + std::to_string(actor.handled));
  }
  return log;
}

}   // namespace

// one admission path; a faster way says and does the same.
BOOST_AUTO_TEST_CASE(a_send_without_a_branch_says_and_does_what_every_send_does) {
  const Strings log = sent_from_within(false);
  BOOST_TEST(log == sent_from_within(true), boost::test_tools::per_element());
  BOOST_TEST_REQUIRE(log.size() > 10U);
  BOOST_TEST(log[0] == "stop");
  const Strings said(log.begin() + 1, log.begin() + 10);
  const std::string full = "question: " + make_error_code(errc::overloaded).message();
  const std::string gone = "gone: " + make_error_code(errc::receiver_gone).message();
  BOOST_TEST(said == (Strings{"work: ok", "work: ok", "work: ok", "result: ok",
                              "work: " + make_error_code(errc::overloaded).message(), "cancel: ok",
                              full, gone, gone}),
             boost::test_tools::per_element());
  BOOST_TEST(log.back() == "sender: depth 0, peak 1, handled 2");
}

namespace {

/// Wakes each of `to` and sends it two more; writes down which way its thread sends.
class Waker final : public duet::runtime::HandlerActor<Waker, std::variant<Work>> {
 public:
  Waker(std::vector<Ref<Language>> to, Strings& log) : to_(std::move(to)), log_(log) {}
  void on(Work /*begin*/) {
    log_.push_back(duet::runtime::detail::thread_state().wakes.vary() ? "no branch" : "branch");
    for (const Ref<Language>& ref : to_) {
      for (int i = 0; i < 3; ++i) ref.send(Result{i});
    }
  }

 private:
  std::vector<Ref<Language>> to_;
  Strings& log_;
};

}   // namespace

BOOST_AUTO_TEST_CASE(a_pump_finds_that_wakes_vary_and_that_they_no_longer_do) {
  duet::runtime::detail::thread_state().wakes = {};
  Strings received;
  Strings log;
  Host host;
  std::vector<Ref<Language>> recorders;
  for (int i = 0; i < 22; ++i) {
    recorders.push_back(host.system.spawn<Recorder>("recorder", received));
  }
  const auto waker = host.system.spawn<Waker>("waker", recorders, log);
  const auto sends_in_order =
      host.system.spawn<Waker>("in-order", std::vector<Ref<Language>>(22, recorders[0]), log);
  host.run_ready();
  for (const auto& actor : {waker, waker, sends_in_order, waker, waker}) {
    BOOST_TEST(actor.send(Work{}).ok());
    host.run_ready();
  }
  BOOST_TEST(log == (Strings{"branch", "no branch", "no branch", "branch", "no branch"}),
             boost::test_tools::per_element());
  BOOST_TEST(received.size() == 5U * 22U * 3U);
  duet::runtime::detail::thread_state().wakes = {};
}

namespace {

using Hops = std::variant<Work, Result>;

/// Passes each message on to somebody, until its number is 0.
class Gossip final : public duet::runtime::HandlerActor<Gossip, Hops> {
 public:
  struct All {
    std::vector<Ref<Hops>> refs;
    std::atomic<int> handled = 0;
    std::atomic<int> ended = 0;
    std::atomic<int> wrong = 0;
  };
  Gossip(All& all, unsigned seed) : all_(all), random_(seed) {}
  void on(Work work) { pass(Result{work.number - 1}); }
  void on(Result result) { pass(Work{result.number - 1}); }

 private:
  template <typename T>
  void pass(T next) {
    if (std::exchange(inside_, true)) ++all_.wrong;
    duet::runtime::detail::thread_state().wakes.assume(true);
    // Long enough that some of them are given to the other thread.
    for (int i = 0; i < 1000; ++i) spins_ = spins_ * 3 + random_();
    ++all_.handled;
    if (next.number < 0) {
      ++all_.ended;
    } else if (!all_.refs[random_() % all_.refs.size()].send(next).ok()) {
      ++all_.wrong;
    }
    inside_ = false;
  }

  All& all_;
  std::minstd_rand random_;
  std::uint64_t spins_ = 0;
  bool inside_ = false;   // on two threads at once it would be a race
};

}   // namespace

// an actor runs on one thread at a time and nothing is lost, however its messages are sent.
BOOST_AUTO_TEST_CASE(sends_without_a_branch_on_two_threads_lose_nothing) {
  constexpr int actors = 30;
  constexpr int hops = 200;
  Gossip::All all;
  {
    boost::asio::thread_pool pool(2);
    duet::runtime::SystemOptions options;
    options.pumps = 2;
    duet::runtime::System system(pool.get_executor(), options);
    for (unsigned i = 0; i < actors; ++i) {
      all.refs.push_back(system.spawn<Gossip>("gossip", all, i + 1));
    }
    for (const auto& ref : all.refs) {
      BOOST_TEST(ref.send(Work{hops}).ok());
      BOOST_TEST(ref.send(Result{hops}).ok());
    }
    pool.wait();
  }
  BOOST_TEST(all.wrong == 0);
  BOOST_TEST(all.ended == 2 * actors);
  BOOST_TEST(all.handled == 2 * actors * (hops + 1));
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
