// simulation_test.cpp: the simulated seams: order, time, randomness, phases, and the trace hash.
#include "runtime/simulation/simulation.hpp"
#include "runtime/blocking.hpp"
#include "runtime/buggify.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace duet;   // NOLINT(google-build-using-namespace)
using namespace duet::test;
using runtime::Behaviour;
using runtime::Duration;
using runtime::Ref;
using runtime::Self;
using runtime::System;
using runtime::simulation::FaultKind;
using runtime::simulation::Faults;
using runtime::simulation::RunEnd;
using runtime::simulation::SimRandom;
using runtime::simulation::Simulation;
using runtime::simulation::SimulationOptions;

SimulationOptions with_seed(std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  return options;
}

/// Sleeps, sends to another, asks it; ends after some rounds.
Behaviour chatter(Self<Language> self, std::vector<Ref<Language>>* all, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    co_await self.sleep(Duration(1'000'000 + self.random().below(5'000'000)));
    const Ref<Language> other = (*all)[self.random().below(all->size())];
    static_cast<void>(other.send(Work{i}));
    auto message = co_await self.receive_for(2ms);
    if (message.has_value() && std::holds_alternative<runtime::Stop>(*message)) co_return;
    const auto answer = co_await self.ask(other, Question(i), 3ms);
    if (answer.has_value()) static_cast<void>(other.send(Gauge{*answer}));
  }
}

std::uint64_t chatter_hash(SimulationOptions options, int actors = 20) {
  Simulation simulation(options);
  System system(simulation.executor(), simulation.system_options("chatter"));
  std::vector<Ref<Language>> all;
  for (int i = 0; i < actors; ++i) all.push_back(system.spawn("chatter", chatter, &all, 20));
  BOOST_TEST((simulation.run_until_quiet(1h) == RunEnd::quiet));
  BOOST_TEST(simulation.handled() > 0U);
  return simulation.hash();
}

/// Answers on the order in which actors ran.
Behaviour marker(Self<Language> self, std::vector<int>* order, int number) {
  for (;;) {
    const Language message = co_await self.receive();
    if (std::holds_alternative<runtime::Stop>(message)) co_return;
    order->push_back(number);
  }
}

std::vector<int> order_of(std::uint64_t seed, int actors) {
  Simulation simulation(with_seed(seed));
  System system(simulation.executor(), simulation.system_options("order"));
  std::vector<int> order;
  std::vector<Ref<Language>> all;
  for (int i = 0; i < actors; ++i) all.push_back(system.spawn("marker", marker, &order, i));
  simulation.run_until_quiet(1s);
  for (auto& actor : all) static_cast<void>(actor.send(Result{}));
  simulation.run_until_quiet(1s);
  return order;
}

Behaviour sleeper(Self<Language> self, Duration duration, std::vector<std::int64_t>* woke) {
  co_await self.sleep(duration);
  woke->push_back(self.now().time_since_epoch().count());
}

Behaviour asks_nobody(Self<Language> self, Ref<Language> other) {
  static_cast<void>(co_await self.ask(other, Question(1), 24h));
}

/// Makes a blocking call that may never come back, without a deadline of its own.
class Caller final : public runtime::HandlerActor<Caller, Language> {
 public:
  void on(Work) {
    lane_ = core().completions().open_lane("caller", 1);
    const auto function = [] { return Result{1}; };
    BOOST_TEST(runtime::call_blocking(*lane_, self(), function, function));
    set_waits_for("completion");
  }
  void on(Cancel) { static_cast<void>(lane_->abandon()); }
  void on(Result) { set_waits_for(nullptr); }
  void on(Gauge) {}
  void on(Question) {}
  void on(runtime::Stop) { finish(); }

 private:
  std::unique_ptr<runtime::CompletionLane> lane_;
};

/// Takes the question and keeps it.
class Keeper final : public runtime::HandlerActor<Keeper, Language> {
 public:
  void on(Work) {}
  void on(Cancel) {}
  void on(Result) {}
  void on(Gauge) {}
  void on(Question question) { kept_.emplace(std::move(question)); }
  void on(runtime::Stop) { finish(); }

 private:
  std::optional<Question> kept_;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(simulation)

//
BOOST_AUTO_TEST_CASE(equal_seeds_give_equal_hashes_also_in_one_process) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::uint64_t first = chatter_hash(with_seed(seed));
    BOOST_TEST(first == chatter_hash(with_seed(seed)));
  }
}

BOOST_AUTO_TEST_CASE(an_earlier_system_of_another_size_does_not_change_a_hash) {
  const std::uint64_t first = chatter_hash(with_seed(3));
  chatter_hash(with_seed(99), 200);   // leaves slots, nodes and frames in another order
  BOOST_TEST(first == chatter_hash(with_seed(3)));
}

BOOST_AUTO_TEST_CASE(different_seeds_give_different_hashes) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) hashes.insert(chatter_hash(with_seed(seed)));
  BOOST_TEST(hashes.size() == 50U);
}

BOOST_AUTO_TEST_CASE(a_seed_decides_who_of_the_ready_runs_first) {
  std::set<int> first;
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::vector<int> order = order_of(seed, 4);
    first.insert(order.front());
    orders.insert(order);
    std::sort(order.begin(), order.end());
    BOOST_TEST((order == std::vector<int>{0, 1, 2, 3}));
  }
  BOOST_TEST(first.size() == 4U);
  BOOST_TEST(orders.size() > 15U);   // of 24
}

BOOST_AUTO_TEST_CASE(time_jumps_to_the_next_timer_and_no_further) {
  Simulation simulation(with_seed(1));
  System system(simulation.executor(), simulation.system_options("time"));
  std::vector<std::int64_t> woke;
  system.spawn("late", sleeper, Duration(24h), &woke);
  system.spawn("early", sleeper, Duration(1s), &woke);
  BOOST_TEST((simulation.run_for(2s) == RunEnd::time_over));
  BOOST_TEST((woke == std::vector<std::int64_t>{1'000'000'000}));
  BOOST_TEST(simulation.now().time_since_epoch().count() == 2'000'000'000);
  BOOST_TEST((simulation.run_until_quiet(48h) == RunEnd::quiet));
  BOOST_TEST(woke.size() == 2U);
  BOOST_TEST(woke.back() == Duration(24h).count());
}

BOOST_AUTO_TEST_CASE(streams_of_one_seed_do_not_shift_each_other) {
  SimRandom schedule(7, "schedule");
  SimRandom system(7, "system");
  const std::uint64_t expected = SimRandom(7, "system").next();
  for (int i = 0; i < 5; ++i) static_cast<void>(schedule.next());
  BOOST_TEST(system.next() == expected);
  BOOST_TEST(SimRandom(7, "schedule").next() != SimRandom(7, "system").next());
  BOOST_TEST(SimRandom(7, "system").next() != SimRandom(8, "system").next());
}

BOOST_AUTO_TEST_CASE(a_handler_of_the_host_runs_once_and_never_inside_its_post) {
  Simulation simulation(with_seed(1));
  int ran = 0;
  boost::asio::post(simulation.executor(), [&ran] { ++ran; });
  BOOST_TEST(ran == 0);
  simulation.run_until_quiet(1s);
  BOOST_TEST(ran == 1);
  simulation.after(5s, [&ran] { ++ran; });
  simulation.run_for(4s);
  BOOST_TEST(ran == 1);
  simulation.run_for(2s);
  BOOST_TEST(ran == 2);
  simulation.after(5s, [&ran] { ++ran; });   // destroyed unrun
  boost::asio::post(simulation.executor(), [&ran] { ++ran; });
}

BOOST_AUTO_TEST_CASE(a_stop_reports_within_virtual_time) {
  Simulation simulation(with_seed(5));
  System system(simulation.executor(), simulation.system_options("stop"));
  std::vector<Ref<Language>> all;
  for (int i = 0; i < 5; ++i) all.push_back(system.spawn("chatter", chatter, &all, 1'000'000));
  simulation.run_for(1s);
  std::optional<runtime::StopReport> report;
  system.stop(1h, [&report](runtime::StopReport told) { report = std::move(told); });
  BOOST_TEST(
      (simulation.run_until([&report] { return report.has_value(); }, 2h) == RunEnd::satisfied));
  BOOST_TEST(report->stragglers.empty());
  BOOST_TEST(!simulation.deadlock().has_value());
}

BOOST_AUTO_TEST_CASE(a_system_may_outlive_its_simulation) {
  std::optional<System> system;
  {
    Simulation simulation(with_seed(1));
    system.emplace(simulation.executor(), simulation.system_options("orphan"));
    std::vector<std::int64_t> woke;
    system->spawn("sleeper", sleeper, Duration(1s), &woke);
    simulation.run_for(500ms);
  }
  BOOST_TEST(system->finished());
}

BOOST_AUTO_TEST_CASE(systems_follow_each_other_in_one_simulation) {
  Simulation simulation(with_seed(2));
  std::vector<std::int64_t> woke;
  for (int life = 0; life < 3; ++life) {
    System system(simulation.executor(), simulation.system_options("life"));
    for (int i = 0; i < 10; ++i) system.spawn("sleeper", sleeper, Duration(1s), &woke);
    simulation.run_for(life == 1 ? 100ms : 2s);   // the second dies while all sleep
  }
  BOOST_TEST(woke.size() == 20U);
  BOOST_TEST((simulation.run_until_quiet(1h) == RunEnd::quiet));
}

//
BOOST_AUTO_TEST_CASE(a_deadlock_names_who_waits_for_whom_since_when_and_where) {
  Simulation simulation(with_seed(1));
  System system(simulation.executor(), simulation.system_options("table"));
  const auto keeper = system.spawn<Keeper>("keeper");
  simulation.run_for(3s);
  system.spawn("asker", asks_nobody, keeper);
  simulation.run_for(1s);
  BOOST_REQUIRE(simulation.deadlock().has_value());
  const auto deadlock = *simulation.deadlock();
  BOOST_TEST(deadlock.waiters.size() == 1U);
  const auto& actor = deadlock.waiters[0].actor;
  BOOST_TEST(actor.name == "asker");
  BOOST_TEST(actor.waits_for == "reply");
  BOOST_TEST(actor.waits_on == keeper.address().number());
  BOOST_TEST(actor.since.time_since_epoch().count() == Duration(3s).count());
  BOOST_TEST(actor.file.find("simulation_test.cpp") != std::string::npos);
  BOOST_TEST(actor.line > 0U);
  const std::string text = deadlock.text();
  BOOST_TEST(text.find("of table, asker: waiting for reply of actor 1 since 1.000 s at") !=
                 std::string::npos,
             text);
  // It is an answer that comes: a day later, as timed_out.
  BOOST_TEST((simulation.run_until_quiet(48h) == RunEnd::quiet));
  BOOST_TEST(!simulation.deadlock().has_value());
}

BOOST_AUTO_TEST_CASE(a_lost_call_that_nobody_gives_up_is_a_deadlock) {
  SimulationOptions options = with_seed(1);
  options.faults.set(FaultKind::call_lost, 1);
  Simulation simulation(options);
  System system(simulation.executor(), simulation.system_options("lost"));
  const auto caller = system.spawn<Caller>("caller");
  BOOST_TEST(caller.send(Work{1}).ok());
  BOOST_TEST((simulation.run_until_quiet(1h) == RunEnd::quiet));
  BOOST_REQUIRE(simulation.deadlock().has_value());
  const std::string text = simulation.deadlock()->text();
  BOOST_TEST(text.find("caller: waiting for completion since 0.00") != std::string::npos, text);
  static_cast<void>(caller.send(Cancel{1}));
  simulation.run_until_quiet(1h);
}

BOOST_AUTO_TEST_CASE(a_lost_wakeup_is_a_deadlock) {
  SimulationOptions options = with_seed(1);
  options.lost_wakeups = 1;
  Simulation simulation(options);
  System system(simulation.executor(), simulation.system_options("lost"));
  std::vector<std::string> log;
  const auto recorder = system.spawn<Recorder>("recorder", log);
  static_cast<void>(recorder.send(Result{1}));
  BOOST_TEST((simulation.run_until_quiet(1s) == RunEnd::quiet));
  BOOST_TEST(log.empty());
  BOOST_REQUIRE(simulation.deadlock().has_value());
  BOOST_TEST(simulation.deadlock()->waiters[0].wakeup_lost);
  BOOST_TEST(simulation.deadlock()->text().find("wake-up was lost") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_swarm_switches_each_kind_off_in_about_half_of_the_runs) {
  std::array<int, runtime::simulation::fault_kinds> on{};
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Faults faults = Faults::swarm(seed);
    for (std::size_t i = 0; i < on.size(); ++i) {
      const double probability = faults[static_cast<FaultKind>(i)];
      BOOST_REQUIRE(probability >= 0);
      BOOST_REQUIRE(probability < 1);
      if (probability > 0) ++on[i];
    }
  }
  for (const int count : on) BOOST_TEST((count > 400 && count < 600), count);
}

BOOST_AUTO_TEST_CASE(buggify_fires_in_simulation_alone_and_not_after_the_faults_ended) {
  BOOST_TEST(!runtime::buggify("test.place"));   // no simulation runs here
  int runs_with = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimulationOptions options = with_seed(seed);
    options.faults.set(FaultKind::buggify, 0.5);
    Simulation simulation(options);
    int fired = 0;
    for (int i = 0; i < 200; ++i) {
      boost::asio::post(simulation.executor(),
                        [&fired] { fired += runtime::buggify("test.place") ? 1 : 0; });
    }
    simulation.run_until_quiet(1s);
    BOOST_TEST(fired < 200);
    if (fired > 0) ++runs_with;
    const int before = fired;
    simulation.end_faults();
    for (int i = 0; i < 200; ++i) {
      boost::asio::post(simulation.executor(),
                        [&fired] { fired += runtime::buggify("test.place") ? 1 : 0; });
    }
    simulation.run_until_quiet(1s);
    BOOST_TEST(fired == before);
  }
  BOOST_TEST((runs_with > 25 && runs_with < 75), runs_with);
}

BOOST_AUTO_TEST_CASE(one_message_an_activation_makes_every_message_a_step) {
  SimulationOptions options = with_seed(1);
  options.activation_messages = 1;
  Simulation simulation(options);
  System system(simulation.executor(), simulation.system_options("steps"));
  std::vector<std::string> log;
  const auto recorder = system.spawn<Recorder>("recorder", log);
  for (int i = 0; i < 3; ++i) static_cast<void>(recorder.send(Result{i}));
  for (std::size_t i = 1; i <= 3; ++i) {
    BOOST_TEST(simulation.step());
    BOOST_TEST(log.size() == i);
  }
  while (simulation.step()) {
  }
  BOOST_TEST(log.size() == 3U);
}

BOOST_AUTO_TEST_SUITE_END()
