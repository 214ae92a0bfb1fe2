// supervisor_test.cpp: children start in order, restart by their rules, and stop in reverse order;
// one file because every case is told with the same parts, log and events.
#include "runtime/supervisor.hpp"

#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

using namespace duet::test;
using duet::runtime::Address;
using duet::runtime::Backoff;
using duet::runtime::backoff_delay;
using duet::runtime::Behaviour;
using duet::runtime::ChildOptions;
using duet::runtime::ChildRef;
using duet::runtime::Children;
using duet::runtime::Duration;
using duet::runtime::errc;
using duet::runtime::ExitKind;
using duet::runtime::Ref;
using duet::runtime::Restart;
using duet::runtime::RestartLimit;
using duet::runtime::RestartWindow;
using duet::runtime::Self;
using duet::runtime::Spawner;
using duet::runtime::StartChild;
using duet::runtime::Stop;
using duet::runtime::StopReport;
using duet::runtime::Strategy;
using duet::runtime::Supervisor;
using duet::runtime::SupervisorError;
using duet::runtime::SupervisorEvent;
using duet::runtime::SupervisorMessage;
using duet::runtime::SupervisorOptions;
using duet::runtime::TimePoint;
using Strings = std::vector<std::string>;

namespace {

/// Work fails, Result finishes, Gauge makes it deaf to Stop.
class Part final : public duet::runtime::HandlerActor<Part, Language> {
 public:
  Part(Strings& log, std::string name) : log_(log), name_(std::move(name)) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() override { log_.push_back(name_ + " down"); }
  void started() { log_.push_back(name_ + " up"); }
  void on(Work) { throw std::runtime_error(name_ + " is broken"); }
  void on(Cancel) {}
  void on(Result) { finish(); }
  void on(Gauge) { deaf_ = true; }
  void on(Question question) { question.reply(2 * question.number); }
  void on(Stop) {
    if (!deaf_) finish();
  }

 private:
  Strings& log_;
  const std::string name_;
  bool deaf_ = false;
};

/// The same as a behaviour, without Stop in its language.
struct LogEntry {
  LogEntry(Strings& to, std::string value) : log(to), name(std::move(value)) {
    log.push_back(name + " up");
  }
  LogEntry(const LogEntry&) = delete;
  LogEntry& operator=(const LogEntry&) = delete;
  ~LogEntry() { log.push_back(name + " down"); }
  Strings& log;
  std::string name;
};
Behaviour part(Self<std::variant<Work, Result>> self, Strings* log, std::string name) {
  const LogEntry entry(*log, name);
  const auto message = co_await self.receive();
  if (std::holds_alternative<Work>(message)) throw std::runtime_error(name + " is broken");
}

/// Half of every range, so that jitter takes a quarter off.
class HalfRandom final : public duet::runtime::Random {
 public:
  [[nodiscard]] std::uint64_t next() noexcept override { return 1ULL << 63U; }
};

struct Fixture {
  Fixture() : host(with_random()) {
    options.on_event = [this](const SupervisorEvent& event) {
      if (event.kind != SupervisorEvent::Kind::started &&
          event.kind != SupervisorEvent::Kind::ended) {
        events.push_back(describe(event));
      }
    };
    options.backoff = Backoff{100ms, 400ms, 0.5};
  }
  duet::runtime::SystemOptions with_random() {
    duet::runtime::SystemOptions with;
    with.random = &random;
    with.on_failure = [this](const duet::runtime::ActorFailure& failure) {
      failures.push_back(failure.name + ": " + failure.reason.text());
    };
    return with;
  }
  Ref<SupervisorMessage> start() {
    root = host.system.spawn<Supervisor>("root", options, children);
    host.run_ready();
    return root;
  }
  ChildRef<Language> add(ChildOptions child) {
    const std::string name = child.name;
    return children.add<Part>(std::move(child), std::ref(log), name);
  }
  static void fail(const ChildRef<Language>& child) { BOOST_TEST(child.send(Work{}).ok()); }
  Strings take_log() { return std::exchange(log, {}); }

  Strings log;
  Strings events;
  Strings failures;
  HalfRandom random;
  Host host;
  SupervisorOptions options;
  Children children;
  Ref<SupervisorMessage> root;
};

void check(const Strings& got, const Strings& expected) {
  BOOST_TEST(got == expected, boost::test_tools::per_element());
}

}   // namespace

BOOST_AUTO_TEST_SUITE(restart_policy)

BOOST_AUTO_TEST_CASE(a_delay_doubles_up_to_its_bound_and_chance_only_shortens_it) {
  const Backoff backoff{100ms, 1000ms, 0.5};
  BOOST_TEST((backoff_delay(backoff, 1, 0.0) == 100ms));
  BOOST_TEST((backoff_delay(backoff, 2, 0.0) == 200ms));
  BOOST_TEST((backoff_delay(backoff, 4, 0.0) == 800ms));
  BOOST_TEST((backoff_delay(backoff, 5, 0.0) == 1000ms));
  BOOST_TEST((backoff_delay(backoff, 4'000'000'000U, 0.0) == 1000ms));
  BOOST_TEST((backoff_delay(backoff, 1, 0.5) == 75ms));
  BOOST_TEST((backoff_delay(backoff, 5, 0.5) == 750ms));
  BOOST_TEST((backoff_delay(Backoff{Duration(0), 1s, 0.5}, 9, 0.5) == Duration(0)));
  BOOST_TEST((backoff_delay(Backoff{2s, 1s, 0.0}, 1, 0.0) == 1s));
  BOOST_TEST((backoff_delay(Backoff{1s, Duration::max(), 0.0}, 100, 0.0) == Duration::max()));
}

BOOST_AUTO_TEST_CASE(a_window_admits_its_number_and_forgets_what_is_older_than_itself) {
  RestartWindow window(RestartLimit{2, 10s});
  const TimePoint start{};
  BOOST_TEST(window.admit(start));
  BOOST_TEST(window.admit(start + 5s));
  BOOST_TEST(!window.admit(start + 9s));
  BOOST_TEST(window.admit(start + 10s));
  BOOST_TEST(!window.admit(start + 14s));
  BOOST_TEST(window.count() == 2U);
  BOOST_TEST(!RestartWindow(RestartLimit{0, 10s}).admit(start));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(supervisor, Fixture)

BOOST_AUTO_TEST_CASE(children_start_in_order_and_stop_in_reverse_order_one_after_the_other) {
  add("a");
  children.add("b", part, &log, "b");
  add("c");
  start();
  check(take_log(), {"a up", "b up", "c up"});
  host.system.stop(root);
  host.run_ready();
  check(log, {"c down", "b down", "a down"});
  BOOST_TEST(!root.alive());
  BOOST_TEST(host.living() == 0U);
  BOOST_TEST(host.clock.armed() == 0U);
  check(events, {"root: stopped"});
}

BOOST_AUTO_TEST_CASE(a_failed_child_is_reached_again_after_its_back_off_by_the_same_reference) {
  const auto child = add("a");
  add("b");
  BOOST_TEST((child.send(Result{}) == errc::receiver_gone));
  start();
  const Address first = child.ref().address();
  fail(child);
  host.run_ready();
  BOOST_TEST(child.ref().empty());
  BOOST_TEST((child.send(Result{}) == errc::receiver_gone));
  host.advance(74ms);
  BOOST_TEST(!child.alive());
  host.advance(1ms);
  BOOST_TEST(child.alive());
  BOOST_TEST((child.ref().address() != first));
  check(log, {"a up", "b up", "a down", "a up"});
  check(events, {"root: a starts again in 0.075 s, restart 1 of late"});
  check(failures, {"a: a is broken"});
}

BOOST_AUTO_TEST_CASE(a_behaviour_is_restarted_with_fresh_copies_of_its_arguments) {
  const auto child = children.add("b", part, &log, std::string("b"));
  start();
  BOOST_TEST(child.send(Work{}).ok());
  host.advance(75ms);
  check(log, {"b up", "b down", "b up"});
  BOOST_TEST(child.alive());
}

BOOST_AUTO_TEST_CASE(each_kind_of_child_restarts_after_the_ends_that_call_for_it) {
  ChildOptions transient("transient");
  transient.restart = Restart::transient;
  ChildOptions temporary("temporary");
  temporary.restart = Restart::temporary;
  options.limit.restarts_max = 10;
  const auto a = add("permanent");
  const auto b = add(transient);
  const auto c = add(temporary);
  start();
  for (const auto& child : {a, b, c}) child.send(Result{});   // they finish
  host.advance(1s);
  BOOST_TEST(a.alive());
  BOOST_TEST(!b.alive());
  BOOST_TEST(!c.alive());
  host.system.stop(a.ref());   // stopped from outside: a permanent child comes back
  host.advance(1s);
  BOOST_TEST(a.alive());
}

BOOST_AUTO_TEST_CASE(a_transient_child_comes_back_when_it_failed_or_was_killed) {
  ChildOptions transient("t");
  transient.restart = Restart::transient;
  const auto child = add(transient);
  start();
  fail(child);
  host.advance(1s);
  BOOST_TEST(child.alive());
  BOOST_TEST(host.system.kill(child.ref(), "for a test"));
  host.advance(1s);
  BOOST_TEST(child.alive());
  host.system.stop(child.ref());
  host.advance(1s);
  BOOST_TEST(!child.alive());
  BOOST_TEST(root.alive());
}

BOOST_AUTO_TEST_CASE(rest_for_one_stops_those_behind_in_reverse_order_and_starts_them_in_order) {
  options.strategy = Strategy::rest_for_one;
  add("a");
  const auto b = add("b");
  add("c");
  add("d");
  start();
  take_log();
  fail(b);
  host.advance(75ms);
  check(log, {"b down", "d down", "c down", "b up", "c up", "d up"});
}

BOOST_AUTO_TEST_CASE(one_for_all_restarts_all) {
  options.strategy = Strategy::one_for_all;
  add("a");
  const auto b = add("b");
  add("c");
  start();
  take_log();
  fail(b);
  host.advance(75ms);
  check(log, {"b down", "c down", "a down", "a up", "b up", "c up"});
}

BOOST_AUTO_TEST_CASE(a_child_before_the_group_that_fails_meanwhile_widens_the_group) {
  options.strategy = Strategy::rest_for_one;
  const auto a = add("a");
  const auto b = add("b");
  const auto c = add("c");
  start();
  take_log();
  c.send(Gauge{});   // deaf: the group has to wait for it
  fail(b);
  host.run_ready();
  fail(a);
  host.run_ready();
  check(take_log(), {"b down", "a down"});
  host.advance(5s);   // c is killed
  host.advance(75ms);
  check(log, {"c down", "a up", "b up", "c up"});
  BOOST_TEST(c.alive());
}

BOOST_AUTO_TEST_CASE(a_child_before_the_group_that_fails_during_its_back_off_widens_the_group) {
  options.strategy = Strategy::rest_for_one;
  const auto a = add("a");
  const auto b = add("b");
  start();
  take_log();
  fail(b);
  host.advance(74ms);
  fail(a);
  host.advance(74ms);
  check(log, {"b down", "a down"});
  host.advance(1ms);
  check(log, {"b down", "a down", "a up", "b up"});
}

BOOST_AUTO_TEST_CASE(temporary_children_that_a_group_stops_are_forgotten) {
  options.strategy = Strategy::one_for_all;
  ChildOptions temporary("t");
  temporary.restart = Restart::temporary;
  const auto a = add("a");
  const auto t = add(temporary);
  start();
  fail(a);
  host.advance(1s);
  BOOST_TEST(a.alive());
  BOOST_TEST(!t.alive());
  t.send(Result{});
  host.advance(1s);
  BOOST_TEST(!t.alive());
}

BOOST_AUTO_TEST_CASE(one_restart_too_many_ends_the_supervisor_with_a_reason_that_names_the_child) {
  options.limit = RestartLimit{3, 60s};
  add("steady");
  const auto bad = add("bad");
  start();
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST(root.alive());
    fail(bad);
    host.advance(1s);
  }
  BOOST_TEST(!root.alive());
  BOOST_TEST(host.living() == 0U);
  BOOST_REQUIRE(failures.size() == 5U);
  BOOST_TEST(failures.back() ==
             "root: root gives up: bad needs a restart after 3 within the window, the last time: "
             "bad is broken");
  BOOST_TEST(host.clock.armed() == 0U);
  BOOST_TEST(log.back() == "steady down");
}

BOOST_AUTO_TEST_CASE(failures_further_apart_than_the_window_allows_never_end_the_supervisor) {
  options.limit = RestartLimit{1, 10s};
  const auto child = add("a");
  start();
  for (int i = 0; i < 20; ++i) {
    fail(child);
    host.advance(10s);
    BOOST_TEST_REQUIRE(child.alive());
  }
  // Each life was long enough, so no delay grew.
  BOOST_TEST(events.size() == 20U);
  for (const std::string& event : events) {
    BOOST_TEST(event == "root: a starts again in 0.075 s, restart 1 of late");
  }
}

BOOST_AUTO_TEST_CASE(delays_grow_with_each_failure_in_a_row) {
  options.limit = RestartLimit{5, 60s};
  const auto child = add("a");
  start();
  for (int i = 0; i < 4; ++i) {
    fail(child);
    host.advance(400ms);
  }
  check(events, {"root: a starts again in 0.075 s, restart 1 of late",
                 "root: a starts again in 0.150 s, restart 2 of late",
                 "root: a starts again in 0.300 s, restart 3 of late",
                 "root: a starts again in 0.300 s, restart 4 of late"});
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_gives_up_is_restarted_by_the_one_above) {
  SupervisorOptions inner;
  inner.limit.restarts_max = 0;
  Children below;
  const auto leaf = below.add<Part>("leaf", std::ref(log), "leaf");
  below.add<Part>("neighbour", std::ref(log), "neighbour");
  const auto middle = add_supervisor(children, "middle", inner, below);
  start();
  check(take_log(), {"leaf up", "neighbour up"});
  const Address first = middle.ref().address();
  fail(leaf);
  host.advance(75ms);
  check(log, {"leaf down", "neighbour down", "leaf up", "neighbour up"});
  BOOST_TEST(leaf.alive());
  BOOST_TEST((middle.ref().address() != first));
  check(events, {"middle: leaf gives up (middle gives up: leaf needs a restart after 0 within the "
                 "window, the last time: leaf is broken)",
                 "middle: stopped", "root: middle starts again in 0.075 s, restart 1 of late"});
}

BOOST_AUTO_TEST_CASE(nested_supervisors_stop_from_the_last_leaf_to_the_first) {
  Children one;
  one.add<Part>("1a", std::ref(log), "1a");
  one.add<Part>("1b", std::ref(log), "1b");
  Children two;
  two.add<Part>("2a", std::ref(log), "2a");
  two.add<Part>("2b", std::ref(log), "2b");
  add_supervisor(children, "one", {}, one);
  add("between");
  add_supervisor(children, "two", {}, two);
  start();
  BOOST_TEST(take_log().size() == 5U);
  std::optional<StopReport> report;
  host.system.stop(1h, [&report](StopReport told) { report = std::move(told); });
  host.run_ready();
  check(log, {"2b down", "2a down", "between down", "1b down", "1a down"});
  BOOST_REQUIRE(report.has_value());
  BOOST_TEST(report->stragglers.empty());
}

BOOST_AUTO_TEST_CASE(children_of_one_stage_are_asked_together) {
  ChildOptions b("b");
  ChildOptions c("c");
  b.stage = c.stage = 7;
  const auto a_ref = add("a");
  const auto b_ref = add(b);
  const auto c_ref = add(c);
  start();
  c_ref.send(Gauge{});   // deaf
  host.run_ready();
  take_log();
  host.system.stop(root);
  host.run_ready();
  check(log, {"b down"});   // although c has not ended
  BOOST_TEST(a_ref.alive());
  host.advance(5s);
  check(log, {"b down", "c down", "a down"});
  BOOST_TEST(!b_ref.alive());
}

BOOST_AUTO_TEST_CASE(a_late_child_is_shown_with_what_it_waits_for_and_ended_by_force) {
  ChildOptions slow("slow");
  slow.stop_deadline = 2s;
  add("first");
  const auto child = add(slow);
  start();
  child.send(Gauge{});
  host.run_ready();
  host.advance(1s);
  host.system.stop(root);
  host.advance(1999ms);
  BOOST_TEST(child.alive());
  const auto snapshot = host.system.snapshot();
  BOOST_TEST(snapshot.actors[0].waits_for == "end of a child");
  BOOST_TEST(snapshot.actors[0].waits_on == child.ref().address().number());
  host.advance(1ms);
  BOOST_TEST(!child.alive());
  BOOST_TEST(host.living() == 0U);
  check(events, {"root: slow did not stop in time and is ended by force; slow: waiting for message "
                 "since 2.000 s",
                 "root: stopped; slow: waiting for message since 2.000 s"});
}

/// Waits for an operation that nothing cancels, as a foreign library may have.
Behaviour unstoppable(Self<std::variant<Work>> self, std::vector<std::function<void()>>* held) {
  static_cast<void>(self);
  const auto hold = [held](auto&& handler) {
    auto kept = std::make_shared<std::decay_t<decltype(handler)>>(std::move(handler));
    held->push_back([kept] { boost::asio::post(std::move(*kept)); });   // to its actor
  };
  co_await boost::asio::async_initiate<const duet::runtime::UseAsync, void()>(
      hold, duet::runtime::use_async);
}

BOOST_AUTO_TEST_CASE(a_child_that_nothing_ends_is_abandoned_and_the_others_are_stopped) {
  std::vector<std::function<void()>> held;
  add("first");
  const auto child = children.add("stuck", unstoppable, &held);
  start();
  take_log();
  const Address address = child.ref().address();
  host.system.stop(root);
  host.advance(5s);
  BOOST_TEST(root.alive());
  check(log, {});
  host.advance(1s);
  BOOST_TEST(!root.alive());
  check(log, {"first down"});
  BOOST_TEST(address.alive());
  BOOST_REQUIRE(events.size() == 3U);
  BOOST_TEST(events[1] == "root: stuck cannot be ended and is left behind");
  BOOST_REQUIRE(held.size() == 1U);
  held[0]();   // the operation completes after all
  host.run_ready();
  BOOST_TEST(!address.alive());
}

BOOST_AUTO_TEST_CASE(no_second_life_begins_beside_one_that_cannot_be_ended) {
  std::vector<std::function<void()>> held;
  SupervisorOptions inner;
  inner.strategy = Strategy::one_for_all;
  Children below;
  const auto leaf = below.add<Part>("leaf", std::ref(log), "leaf");
  const auto stuck = below.add("stuck", unstoppable, &held);
  add_supervisor(children, "middle", inner, below);
  start();
  const Address address = stuck.ref().address();
  fail(leaf);
  host.advance(5s);
  host.advance(1s);
  host.advance(1h);
  // Neither the supervisor nor the one above started it anew: the host is told.
  BOOST_TEST(address.alive());
  BOOST_TEST(!root.alive());
  check(take_log(), {"leaf up", "leaf down"});
  BOOST_REQUIRE(failures.size() == 3U);
  BOOST_TEST(failures[1] ==
             "middle: middle gives up: stuck cannot be ended, so nothing is started beside it");
  BOOST_TEST(failures[2] ==
             "root: root gives up: middle failed: middle gives up: stuck cannot be ended, so "
             "nothing is started beside it");
  held[0]();
  host.run_ready();
  BOOST_TEST(host.living() == 0U);
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_left_a_child_behind_while_it_was_stopped_is_not_restarted) {
  std::vector<std::function<void()>> held;
  options.strategy = Strategy::one_for_all;
  const auto first = add("first");
  Children below;
  const auto stuck = below.add("stuck", unstoppable, &held);
  add_supervisor(children, "middle", {}, below);
  start();
  const Address address = stuck.ref().address();
  fail(first);   // so middle has to stop, and cannot
  host.advance(5s);
  host.advance(1s);
  host.advance(1h);
  BOOST_TEST(address.alive());
  BOOST_TEST(!root.alive());
  check(take_log(), {"first up", "first down"});
  check(failures, {"first: first is broken", "middle: middle gives up: stuck could not be ended",
                   "root: root gives up: stuck cannot be ended, so nothing is started beside it"});
  held[0]();
  host.run_ready();
  BOOST_TEST(host.living() == 0U);
}

BOOST_AUTO_TEST_CASE(a_factory_that_throws_is_a_life_that_failed_at_once) {
  int calls = 0;
  ChildRef<Language> child;
  add("before");
  children.add_made(child, "fragile", [&calls, this](Spawner& spawner) {
    if (++calls < 3) throw std::runtime_error("not yet");
    return spawner.spawn<Part>(std::ref(log), "fragile");
  });
  add("behind");
  start();
  check(log, {"before up", "behind up"});   // one for one: the others need not wait
  host.advance(75ms);
  BOOST_TEST(calls == 2);
  host.advance(150ms);
  BOOST_TEST(calls == 3);
  BOOST_TEST(child.alive());
}

BOOST_AUTO_TEST_CASE(those_behind_a_child_that_cannot_be_started_wait_for_it) {
  options.strategy = Strategy::rest_for_one;
  int calls = 0;
  ChildRef<Language> child;
  children.add_made(child, "fragile", [&calls, this](Spawner& spawner) {
    if (++calls < 2) throw std::runtime_error("not yet");
    return spawner.spawn<Part>(std::ref(log), "fragile");
  });
  add("behind");
  start();
  check(log, {});
  host.advance(75ms);
  check(log, {"fragile up", "behind up"});
}

BOOST_AUTO_TEST_CASE(a_factory_that_always_throws_ends_the_supervisor_not_the_process) {
  ChildRef<Language> child;
  add("before");
  children.add_made(child, "broken", [](Spawner&) -> Ref<Language> { throw 42; });
  start();
  for (int i = 0; i < 10; ++i) host.advance(1s);
  BOOST_TEST(!root.alive());
  BOOST_TEST(host.living() == 0U);
  check(failures,
        {"root: root gives up: broken needs a restart after 3 within the window, the last "
         "time: an exception that is no std::exception"});
}

BOOST_AUTO_TEST_CASE(a_factory_that_returns_another_actor_is_refused_and_what_it_spawned_ended) {
  options.limit.restarts_max = 0;
  ChildRef<Language> child;
  const auto other = host.system.spawn<Part>("other", log, "other");
  children.add_made(child, "wrong", [this, other](Spawner& spawner) {
    spawner.spawn<Part>(std::ref(log), "wrong");
    return other;
  });
  start();
  BOOST_TEST(!root.alive());
  BOOST_TEST(other.alive());
  BOOST_TEST(host.living() == 1U);
}

BOOST_AUTO_TEST_CASE(a_stop_during_a_back_off_starts_nobody) {
  const auto child = add("a");
  add("b");
  start();
  fail(child);
  host.run_ready();
  host.system.stop(root);
  host.run_ready();
  BOOST_TEST(!root.alive());
  host.advance(1h);
  check(log, {"a up", "b up", "a down", "b down"});
  BOOST_TEST(host.clock.armed() == 0U);
}

BOOST_AUTO_TEST_CASE(a_stop_during_a_groups_back_off_stops_those_before_it) {
  options.strategy = Strategy::rest_for_one;
  add("a");
  const auto b = add("b");
  add("c");
  start();
  fail(b);
  host.run_ready();
  BOOST_TEST(host.system.snapshot().actors.at(0).waits_for == "back-off");
  take_log();
  host.system.stop(root);
  host.run_ready();
  check(log, {"a down"});
  BOOST_TEST(!root.alive());
  host.advance(1h);
  BOOST_TEST(host.living() == 0U);
}

BOOST_AUTO_TEST_CASE(a_stop_while_a_group_is_stopped_goes_on_to_the_first_child) {
  options.strategy = Strategy::rest_for_one;
  add("a");
  const auto b = add("b");
  const auto c = add("c");
  start();
  c.send(Gauge{});   // deaf
  fail(b);
  host.run_ready();
  take_log();
  host.system.stop(root);
  host.run_ready();
  check(log, {});
  host.advance(5s);
  check(log, {"c down", "a down"});
  BOOST_TEST(!root.alive());
}

BOOST_AUTO_TEST_CASE(a_killed_supervisor_takes_its_children_along) {
  Children below;
  const auto leaf = below.add<Part>("leaf", std::ref(log), "leaf");
  const auto coroutine = below.add("coroutine", part, &log, "coroutine");
  add_supervisor(children, "middle", {}, below);
  start();
  BOOST_TEST(host.system.kill(root, "for a test"));
  host.run_ready();
  BOOST_TEST(host.living() == 0U);
  BOOST_TEST(!leaf.alive());
  BOOST_TEST(!coroutine.alive());
  BOOST_TEST(log.size() == 4U);
}

BOOST_AUTO_TEST_CASE(stopping_the_system_asks_supervisors_and_unsupervised_actors_only) {
  Strings other;
  host.system.spawn<Part>("single", other, "single");
  const auto a = add("a");
  const auto b = add("b");
  start();
  b.send(Gauge{});   // deaf
  host.run_ready();
  take_log();
  std::vector<StopReport> reports;
  host.system.stop(1s, [&reports](StopReport report) { reports.push_back(std::move(report)); });
  host.run_ready();
  BOOST_TEST(other.back() == "single down");
  BOOST_TEST(a.alive());   // its turn comes after b
  host.advance(1s);
  BOOST_REQUIRE(reports.size() == 1U);
  BOOST_REQUIRE(reports[0].stragglers.size() == 3U);
  BOOST_TEST(describe(reports[0].stragglers[0], host.clock.now())
                 .find("root: waiting for end of a child of actor") == 0U);
  host.advance(5s);
  check(log, {"b down", "a down"});
}

BOOST_AUTO_TEST_CASE(a_context_that_goes_first_ends_supervisors_and_children) {
  Strings mine;
  ChildRef<Language> child;
  {
    Host other;
    Children list;
    child = list.add<Part>("a", std::ref(mine), "a");
    other.system.spawn<Supervisor>("root", SupervisorOptions{}, list);
    other.run_ready();
    BOOST_TEST(child.alive());
  }
  BOOST_TEST(!child.alive());
  BOOST_TEST((child.send(Result{}) == errc::receiver_gone));
  check(mine, {"a up", "a down"});
}

// ---- children that are added later ----

struct MoveOnly {
  explicit MoveOnly(Strings& to) : log(&to) {}
  MoveOnly(MoveOnly&& other) noexcept : log(std::exchange(other.log, nullptr)) {}
  MoveOnly& operator=(MoveOnly&&) = delete;
  ~MoveOnly() {
    if (log != nullptr) log->emplace_back("closed");
  }
  Strings* log;
};
Behaviour session(Self<std::variant<Work, Result>> self, MoveOnly socket) {
  static_cast<void>(socket);
  co_await self.receive();
}

using Nothing = std::variant<Stop>;
Behaviour starter(Self<Nothing> self, Ref<SupervisorMessage> sessions, Strings* log, int count) {
  for (int i = 0; i < count; ++i) {
    StartChild command(duet::runtime::child_spec_once("session", session, MoveOnly(*log)));
    const auto answer = co_await self.ask(sessions, std::move(command), 1s);
    log->push_back(answer.has_value() ? "taken" : answer.error().error().message());
    if (i == 0 && answer.has_value()) {
      Ref<std::variant<Work, Result>>(*answer).send(Result{});
    }
  }
}

BOOST_AUTO_TEST_CASE(a_session_with_its_socket_is_started_on_demand_and_forgotten_at_its_end) {
  options.children_max = 2;
  const auto sessions = start();
  host.system.spawn("starter", starter, sessions, &log, 1);
  host.run_ready();
  check(take_log(), {"taken", "closed"});   // it got a Result and finished
  host.system.spawn("starter", starter, sessions, &log, 1);
  host.run_ready();
  check(take_log(), {"taken", "closed"});
}

BOOST_AUTO_TEST_CASE(sessions_over_the_bound_are_refused_and_their_sockets_closed) {
  options.children_max = 2;
  const auto sessions = start();
  host.system.spawn("starter", starter, sessions, &log, 4);
  host.run_ready();
  // The first one has ended before the third came.
  check(take_log(), {"taken", "closed", "taken", "taken", "closed", "a bound was reached"});
  host.system.stop(root);
  host.run_ready();
  check(log, {"closed", "closed"});
  BOOST_TEST(host.living() == 0U);
  BOOST_TEST(events.front() == "root: session is not taken");
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_restarts_groups_takes_no_children_later) {
  options.strategy = Strategy::one_for_all;
  const auto sessions = start();
  host.system.spawn("starter", starter, sessions, &log, 1);
  host.run_ready();
  check(log, {"closed", "the wait was cancelled"});
}

BOOST_AUTO_TEST_CASE(a_permanent_child_that_was_added_later_is_restarted_and_stopped_first) {
  add("a");
  const auto sessions = start();
  ChildRef<Language> added;
  BOOST_TEST(
      sessions
          .send(StartChild(duet::runtime::child_spec<Part>(added, "late", std::ref(log), "late")))
          .ok());
  host.run_ready();
  fail(added);
  host.advance(75ms);
  BOOST_TEST(added.alive());
  take_log();
  host.system.stop(root);
  host.run_ready();
  check(log, {"late down", "a down"});
}

BOOST_AUTO_TEST_CASE(references_are_read_on_threads_while_children_restart_on_others) {
  struct Fragile final : duet::runtime::HandlerActor<Fragile, std::variant<Work, Result>> {
    explicit Fragile(std::atomic<int>& count) : lives(count) { ++lives; }
    void on(Work) { throw std::runtime_error("broken"); }
    void on(Result) {}
    std::atomic<int>& lives;
  };
  std::atomic<int> lives = 0;
  options = SupervisorOptions{};
  options.limit.restarts_max = 1'000'000;
  options.backoff.first = Duration(0);
  std::vector<ChildRef<std::variant<Work, Result>>> refs;
  for (int i = 0; i < 4; ++i) refs.push_back(children.add<Fragile>("fragile", std::ref(lives)));
  boost::asio::io_context io(2);
  duet::runtime::SystemOptions threaded;
  threaded.pumps = 2;
  duet::runtime::System system(io.get_executor(), threaded);
  const auto top = system.spawn<Supervisor>("top", options, children);
  auto work = boost::asio::make_work_guard(io);
  std::thread pump([&io] { io.run(); });
  std::thread second_pump([&io] { io.run(); });
  while (lives < 400) {
    for (const auto& ref : refs) static_cast<void>(ref.send(Work{}));
  }
  system.stop(top);
  work.reset();
  pump.join();
  second_pump.join();
  BOOST_TEST(!top.alive());
  for (const auto& ref : refs) BOOST_TEST(!ref.alive());
  BOOST_TEST(system.snapshot().actors.empty());
}

BOOST_AUTO_TEST_SUITE_END()
