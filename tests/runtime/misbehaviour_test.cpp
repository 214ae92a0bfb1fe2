// misbehaviour_test.cpp: bad actors, bad hosts and bad vendors; each ends as documented. More of
// them: messages to the dead and the reborn in ref_test, a cancel before its request in
// tombstones_test, contexts that go first in system_test, a named stall in inspection_test.
#include "runtime/blocking.hpp"
#include "runtime/real_completion_source.hpp"
#include "runtime/supervisor.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

using namespace duet::test;
using duet::runtime::ActorState;
using duet::runtime::Behaviour;
using duet::runtime::ChildOptions;
using duet::runtime::Children;
using duet::runtime::Down;
using duet::runtime::errc;
using duet::runtime::Ref;
using duet::runtime::Self;
using duet::runtime::Stop;
using duet::runtime::StopReport;
using duet::runtime::Supervisor;
using duet::runtime::SupervisorOptions;
using duet::runtime::System;
using duet::runtime::SystemOptions;
using Strings = std::vector<std::string>;

namespace {

using Plain = std::variant<Work, Result, Question>;

struct Alive {
  explicit Alive(std::atomic<int>& value) noexcept : count(value) { ++count; }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  ~Alive() { --count; }
  std::atomic<int>& count;
};

/// Throws what its first message says: Work a std::exception, Result an int. In a nested coroutine,
/// with something to unwind in both.
duet::runtime::Async<> throwing_part(Self<Plain> self, std::atomic<int>* alive) {
  const Alive here(*alive);
  const auto message = co_await self.receive();
  if (std::holds_alternative<Work>(message)) throw std::runtime_error("bad work");
  throw 42;   // NOLINT(hicpp-exception-baseclass): that is the point
}
Behaviour thrower(Self<Plain> self, std::atomic<int>* alive) {
  const Alive here(*alive);
  co_await throwing_part(self, alive);
}

class Throwing final : public duet::runtime::HandlerActor<Throwing, Plain> {
 public:
  explicit Throwing(bool at_start, bool at_once) : at_start_(at_start) {
    if (at_once) throw std::runtime_error("bad construction");
  }
  void started() {
    if (at_start_) throw std::runtime_error("bad start");
  }
  void on(Work) { throw std::runtime_error("bad work"); }
  void on(Result) { throw 42; }   // NOLINT(hicpp-exception-baseclass)
  void on(Question) { throw std::runtime_error("bad question"); }

 private:
  const bool at_start_;
};

using AskerLanguage = std::variant<Stop>;
Behaviour asker(Self<AskerLanguage> self, Ref<Plain> to, duet::runtime::Duration timeout,
                Strings* log) {
  Question question(1);
  const auto answer = co_await self.ask(to, std::move(question), timeout);
  if (answer.has_value()) {
    log->push_back("answer");
    co_return;
  }
  const duet::runtime::AskFailure failure = answer.error();
  const char* const waits_for = failure.receiver().waits_for;
  log->push_back(failure.error().message() +
                 (waits_for == nullptr ? "" : std::string(" by ") + waits_for));
}

Behaviour never_receives(Self<Plain> self, std::atomic<int>* alive) {
  const Alive here(*alive);
  co_await self.sleep(24h);
}

/// Knows Stop and never looks.
Behaviour never_receives_stop(Self<std::variant<Stop>> self, std::atomic<int>* alive) {
  const Alive here(*alive);
  co_await self.sleep(24h);
}

/// For each message two more, until they are refused.
Behaviour flooder(Self<std::variant<Work>> self, int* refused) {
  for (;;) {
    co_await self.receive();
    for (int i = 0; i < 2; ++i) {
      if (self.ref().send(Work{}) == errc::overloaded) ++*refused;
    }
  }
}

/// One guaranteed message to itself for each, for ever.
Behaviour treadmill(Self<std::variant<Result>> self, std::atomic<std::uint64_t>* turns) {
  for (;;) {
    co_await self.receive();
    ++*turns;
    self.ref().send(Result{});
  }
}

/// Holds its thread until the test lets it go.
class Blocking final : public duet::runtime::HandlerActor<Blocking, std::variant<Work, Result>> {
 public:
  Blocking(std::latch& entered, std::latch& go) : entered_(entered), go_(go) {}
  void on(Work) {
    entered_.count_down();
    go_.wait();
  }
  void on(Result) {}

 private:
  std::latch& entered_;
  std::latch& go_;
};

struct Failures {
  SystemOptions options() {
    SystemOptions with;
    with.on_failure = [this](const duet::runtime::ActorFailure& failure) {
      texts.push_back(failure.name + ": " + failure.reason.text());
    };
    return with;
  }
  Strings texts;
};

void check(const Strings& got, const Strings& expected) {
  BOOST_TEST(got == expected, boost::test_tools::per_element());
}

}   // namespace

BOOST_AUTO_TEST_SUITE(misbehaviour)

// ---- throws ----

BOOST_AUTO_TEST_CASE(whatever_a_behaviour_throws_ends_it_alone_and_unwinds_it) {
  std::atomic<int> alive = 0;
  Failures failures;
  Host host(failures.options());
  const auto first = host.system.spawn("first", thrower, &alive);
  const auto second = host.system.spawn("second", thrower, &alive);
  const auto third = host.system.spawn("third", thrower, &alive);
  host.run_ready();
  BOOST_TEST(alive == 6);
  BOOST_TEST(first.send(Work{}).ok());
  second.send(Result{});
  host.run_ready();
  BOOST_TEST(alive == 2);
  BOOST_TEST(third.alive());
  check(failures.texts, {"first: bad work", "second: an exception that is no std::exception"});
  BOOST_TEST(host.counters().failed == 2U);
}

BOOST_AUTO_TEST_CASE(whatever_a_handler_throws_ends_its_actor_and_answers_who_asked_it) {
  Strings log;
  Failures failures;
  Host host(failures.options());
  const auto first = host.system.spawn<Throwing>("first", false, false);
  const auto second = host.system.spawn<Throwing>("second", false, false);
  const auto third = host.system.spawn<Throwing>("third", false, false);
  second.send(Result{});
  host.system.spawn("asker", asker, first, 1h, &log);    // its question is being handled
  host.system.spawn("asker", asker, second, 1h, &log);   // its question waits
  BOOST_TEST(third.send(Work{}).ok());
  host.run_ready();
  check(log, {"the receiver is gone", "the receiver is gone"});
  BOOST_TEST(failures.texts.size() == 3U);
  BOOST_TEST(host.living() == 0U);
  BOOST_TEST(host.clock.armed() == 0U);
}

BOOST_AUTO_TEST_CASE(an_actor_that_throws_at_its_start_fails_and_one_in_its_constructor_is_none) {
  Failures failures;
  Host host(failures.options());
  BOOST_CHECK_THROW(host.system.spawn<Throwing>("never", false, true), std::runtime_error);
  BOOST_TEST(host.living() == 0U);
  host.system.spawn<Throwing>("early", true, false);
  host.run_ready();
  check(failures.texts, {"early: bad start"});
  BOOST_TEST(host.living() == 0U);
}

// ---- blocks ----

BOOST_AUTO_TEST_CASE(a_blocked_handler_holds_its_thread_only_and_is_named_when_the_system_stops) {
  std::latch entered(1);
  std::latch go(1);
  std::latch answered(1000);
  struct Counting final : duet::runtime::HandlerActor<Counting, std::variant<Result>> {
    explicit Counting(std::latch& latch) : latch_(latch) {}
    void on(Result) { latch_.count_down(); }
    std::latch& latch_;
  };
  ManualClock clock;
  boost::asio::io_context io(2);
  SystemOptions options;
  options.pumps = 2;
  options.clock = &clock;
  System system(io.get_executor(), options);
  auto work = boost::asio::make_work_guard(io);
  std::thread one([&io] { io.run(); });
  std::thread two([&io] { io.run(); });
  const auto blocked = system.spawn<Blocking>("blocked", entered, go);
  BOOST_TEST(blocked.send(Work{}).ok());
  entered.wait();
  for (int i = 0; i < 1000; ++i) system.spawn<Counting>("other", answered).send(Result{});
  answered.wait();   // while the blocked one still blocks

  BOOST_TEST(system.kill(blocked, "too late"));   // taken, but code that blocks cannot be ended
  std::latch told(1);
  StopReport report;
  system.stop(1s, [&](StopReport stragglers) {
    report = std::move(stragglers);
    told.count_down();
  });
  while (system.snapshot().actors.size() > 1) std::this_thread::yield();
  clock.advance(1s);
  told.wait();
  BOOST_REQUIRE(report.stragglers.size() == 1U);
  BOOST_TEST(report.stragglers[0].name == "blocked");
  BOOST_TEST((report.stragglers[0].state == ActorState::running));
  BOOST_TEST(report.stragglers[0].message == "Work");
  BOOST_TEST(blocked.alive());
  go.count_down();
  work.reset();
  one.join();
  two.join();
  BOOST_TEST(!blocked.alive());
}

// ---- floods itself ----

BOOST_AUTO_TEST_CASE(an_actor_that_floods_itself_is_refused_at_its_bound) {
  int refused = 0;
  Host host;
  duet::runtime::ActorOptions bounded("flooder");
  bounded.bounded_max = 100;
  const auto flooded = host.system.spawn(bounded, flooder, &refused);
  BOOST_TEST(flooded.send(Work{}).ok());
  for (int i = 0; i < 50; ++i) host.io.poll_one();   // it never ends, so run_ready() would not
  BOOST_TEST(refused > 1000);
  BOOST_TEST(host.system.snapshot().actors.at(0).normal.depth <= 100U);
  host.system.stop(flooded);
  host.run_ready();
  BOOST_TEST(!flooded.alive());
  BOOST_TEST(host.counters().refused == static_cast<std::uint64_t>(refused));
}

BOOST_AUTO_TEST_CASE(an_actor_that_is_never_idle_lets_others_run_and_hears_a_stop) {
  std::atomic<std::uint64_t> turns = 0;
  Strings log;
  Host host;
  const auto busy = host.system.spawn("treadmill", treadmill, &turns);
  busy.send(Result{});
  const auto other = host.system.spawn<Recorder>("other", log);
  for (int i = 0; i < 10; ++i) {
    other.send(Result{i});
    host.io.poll_one();
  }
  for (int i = 0; i < 10; ++i) host.io.poll_one();   // a slice may end before the other's turn
  BOOST_TEST(log.size() == 10U);
  BOOST_TEST(turns > 10U);
  host.system.stop(busy);
  host.run_ready();
  BOOST_TEST(!busy.alive());
}

// ---- never receives ----

BOOST_AUTO_TEST_CASE(who_never_receives_is_refused_its_senders_timed_out_and_unwound_by_a_stop) {
  std::atomic<int> alive = 0;
  Strings log;
  Host host;
  duet::runtime::ActorOptions bounded("deaf");
  bounded.bounded_max = 3;
  const auto deaf = host.system.spawn(bounded, never_receives, &alive);
  host.run_ready();
  BOOST_TEST(deaf.send(Work{}).ok());
  BOOST_TEST(deaf.send(Work{}).ok());
  host.system.spawn("asker", asker, deaf, 5s, &log);
  host.run_ready();
  host.system.spawn("asker", asker, deaf, 5s, &log);
  host.run_ready();
  check(log, {"a bound was reached"});
  host.advance(5s);
  BOOST_TEST(log.back() == "the deadline passed by timer");
  host.system.stop(deaf);
  host.run_ready();
  BOOST_TEST(alive == 0);
  BOOST_TEST(host.clock.armed() == 0U);
}

BOOST_AUTO_TEST_CASE(who_never_looks_at_its_stop_is_named_and_can_be_ended_by_force) {
  std::atomic<int> alive = 0;
  Host host;
  const auto deaf = host.system.spawn("deaf", never_receives_stop, &alive);
  host.run_ready();
  std::vector<StopReport> reports;
  host.system.stop(5s, [&reports](StopReport report) { reports.push_back(std::move(report)); });
  host.advance(5s);
  BOOST_REQUIRE(reports.size() == 1U);
  BOOST_REQUIRE(reports[0].stragglers.size() == 1U);
  const std::string line = describe(reports[0].stragglers[0], host.clock.now());
  BOOST_TEST(line.find("deaf: waiting for timer since 5.000 s at ") == 0U, line);
  BOOST_TEST(line.find("misbehaviour_test.cpp:") != std::string::npos, line);
  BOOST_TEST(host.system.kill(deaf, "enough"));
  host.run_ready();
  BOOST_TEST(alive == 0);
}

// ---- destroys the system from inside ----

BOOST_AUTO_TEST_CASE(an_actor_that_destroys_its_own_system_stops_the_process_and_says_why) {
  int pipe[2];
  BOOST_REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {   // here nobody may use Boost.Test
    ::dup2(pipe[1], 2);
    std::signal(SIGABRT, SIG_DFL);   // Boost.Test would catch it
    struct Suicidal final : duet::runtime::HandlerActor<Suicidal, std::variant<Result>> {
      explicit Suicidal(std::optional<System>& system) : system_(system) {}
      void on(Result) { system_.reset(); }
      std::optional<System>& system_;
    };
    boost::asio::io_context io;
    std::optional<System> system(std::in_place, io.get_executor());
    system->spawn<Suicidal>("suicidal", system).send(Result{});
    io.run();
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string said;
  char buffer[512];
  for (ssize_t size = 0; (size = ::read(pipe[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(pipe[0]);
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(WIFSIGNALED(status));
  BOOST_TEST(WTERMSIG(status) == SIGABRT);
  BOOST_TEST(said.find("a system cannot be destroyed by one of its actors") != std::string::npos,
             said);
}

// ---- hosts and vendors ----

BOOST_AUTO_TEST_CASE(actors_of_a_context_that_is_stopped_go_on_when_it_runs_again) {
  Strings log;
  Host host;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  host.run_ready();
  for (int i = 0; i < 200; ++i) recorder.send(Result{i});
  host.io.stop();
  BOOST_TEST(host.io.poll() == 0U);
  recorder.send(Result{200});   // taken, and nothing runs
  BOOST_TEST(log.empty());
  BOOST_TEST(host.system.snapshot().actors.at(0).normal.depth == 201U);
  host.run_ready();
  BOOST_TEST(log.size() == 201U);
}

/// Makes one blocking call; waits for its Result.
class Caller final : public duet::runtime::HandlerActor<Caller, std::variant<Result>> {
 public:
  Caller(duet::runtime::CompletionLane& lane, std::latch& entered, std::latch& go)
      : lane_(lane), entered_(entered), go_(go) {}
  void started() {
    std::latch* const entered = &entered_;
    std::latch* const go = &go_;
    const auto call = [entered, go] {
      entered->count_down();
      go->wait();   // the vendor does not return
      return Result{1};
    };
    const auto unmade = [] { return Result{2}; };
    static_cast<void>(duet::runtime::call_blocking(lane_, self(), call, unmade));
    set_waits_for("completion");
  }
  void on(Result) { finish(); }

 private:
  duet::runtime::CompletionLane& lane_;
  std::latch& entered_;
  std::latch& go_;
};

BOOST_AUTO_TEST_CASE(a_vendor_call_that_never_returns_is_left_behind_and_the_system_ends) {
  std::latch entered(1);
  std::latch go(1);
  duet::runtime::RealCompletionSource source;
  auto lane = source.open_lane("vendor", 4);
  duet::runtime::Address caller_address;
  {
    Host host;
    Children children;
    const auto caller =
        children.add<Caller>("caller", std::ref(*lane), std::ref(entered), std::ref(go));
    const auto root = host.system.spawn<Supervisor>("root", SupervisorOptions{}, children);
    host.run_ready();
    entered.wait();
    caller_address = caller.ref().address();
    BOOST_TEST(!host.io.stopped());   // the call holds run()
    host.system.stop(root);
    host.run_ready();
    BOOST_TEST(!caller_address.alive());   // it waited for a message, so a stop ends it
    BOOST_TEST(!root.alive());
    BOOST_TEST(lane->abandon());
    BOOST_TEST(source.abandoned() == 1U);
  }
  go.count_down();   // after the system and its context; the result goes nowhere
  while (source.abandoned() != 0) std::this_thread::yield();
  BOOST_TEST(!caller_address.alive());
}

// ---- very many ----

#if !DUET_AWAITABLE_PUBLIC   // no behaviour in it, so once is enough

BOOST_AUTO_TEST_CASE(one_slow_actor_among_a_million_holds_up_none_of_them) {
#if defined(DUET_SANITIZED)
  constexpr int actors_max = 100'000;
#else
  constexpr int actors_max = 1'000'000;
#endif
  struct Small final : duet::runtime::HandlerActor<Small, std::variant<Result>> {
    explicit Small(std::latch& latch) : latch_(latch) {}
    void on(Result) { latch_.count_down(); }
    std::latch& latch_;
  };
  std::latch entered(1);
  std::latch go(1);
  std::latch answered(actors_max);
  boost::asio::io_context io(2);
  SystemOptions options;
  options.pumps = 2;
  System system(io.get_executor(), options);
  auto work = boost::asio::make_work_guard(io);
  std::thread one([&io] { io.run(); });
  std::thread two([&io] { io.run(); });
  const auto slow = system.spawn<Blocking>("slow", entered, go);
  BOOST_TEST(slow.send(Work{}).ok());
  entered.wait();
  for (int i = 0; i < actors_max; ++i) {
    system.spawn<Small>("small", answered).send(Result{});
  }
  answered.wait();   // all of them, while it is still slow
  const auto snapshot = system.snapshot();
  BOOST_TEST(snapshot.actors.size() == actors_max + 1U);
  BOOST_TEST(snapshot.actors.at(0).name == "slow");
  BOOST_TEST((snapshot.actors.at(0).state == ActorState::running));
  std::latch told(1);
  system.stop(10min, [&told](const StopReport&) { told.count_down(); });
  go.count_down();
  told.wait();
  work.reset();
  one.join();
  two.join();
  BOOST_TEST(system.snapshot().actors.empty());
}

#endif

// ---- restart storms ----

struct StormCounts {
  int lives = 0;
  int now = 0;
  int most = 0;
};

/// Fails at once, in every life.
Behaviour doomed(Self<std::variant<Result>> self, StormCounts* counts) {
  static_cast<void>(self);
  ++counts->lives;
  counts->most = std::max(counts->most, ++counts->now);
  --counts->now;
  throw std::runtime_error("doomed");
  co_return;
}

BOOST_AUTO_TEST_CASE(a_restart_storm_ends_at_the_limit_and_the_host_is_told) {
  StormCounts counts;
  Failures failures;
  Host host(failures.options());
  SupervisorOptions options;
  options.limit.restarts_max = 100;
  options.backoff.first = duet::runtime::Duration(0);
  Children children;
  children.add("doomed", doomed, &counts);
  const auto root = host.system.spawn<Supervisor>("root", options, children);
  for (int i = 0; i < 1000 && root.alive(); ++i) host.advance(0s);
  BOOST_TEST(!root.alive());
  BOOST_TEST(counts.lives == 101);
  BOOST_TEST(counts.most == 1);
  BOOST_TEST(failures.texts.size() == 102U);
  BOOST_TEST(failures.texts.back().find("root: root gives up: doomed needs a restart after 100") ==
             0U);
}

BOOST_AUTO_TEST_CASE(a_storm_below_nested_supervisors_is_bounded_by_the_product_of_their_limits) {
  StormCounts counts;
  Strings log;
  Failures failures;
  Host host(failures.options());
  SupervisorOptions options;   // 3 restarts each
  Children leaves;
  leaves.add("doomed", doomed, &counts);
  Children middle;
  add_supervisor(middle, "lower", options, leaves);
  Children top;
  add_supervisor(top, "upper", options, middle);
  top.add<Recorder>("bystander", std::ref(log));
  const auto root = host.system.spawn<Supervisor>("root", options, top);
  for (int i = 0; i < 10000 && root.alive(); ++i) host.advance(50ms);
  BOOST_TEST(!root.alive());
  BOOST_TEST(counts.lives == 4 * 4 * 4);
  BOOST_TEST(counts.most == 1);
  BOOST_TEST(host.living() == 0U);
  BOOST_TEST(host.clock.armed() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
