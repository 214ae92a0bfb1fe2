// simulation_calls_test.cpp: blocking calls in virtual time: delayed, lost, repeated, late, left.
#include "runtime/blocking.hpp"
#include "runtime/simulation/simulation.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace duet;   // NOLINT(google-build-using-namespace)
using namespace duet::test;
using runtime::CompletionLane;
using runtime::Duration;
using runtime::Ref;
using runtime::System;
using runtime::simulation::FaultKind;
using runtime::simulation::RunEnd;
using runtime::simulation::Simulation;
using runtime::simulation::SimulationOptions;

/// A simulation with one fault kind, a system, and an actor that writes down what comes.
struct World {
  explicit World(std::uint64_t seed = 1, double probability = 0,
                 FaultKind kind = FaultKind::call_lost)
      : simulation(with(seed, probability, kind)),
        system(simulation.executor(), simulation.system_options("calls")),
        recorder(system.spawn<Recorder>("recorder", log)) {}

  static SimulationOptions with(std::uint64_t seed, double probability, FaultKind kind) {
    SimulationOptions options;
    options.seed = seed;
    options.faults.set(kind, probability);
    return options;
  }
  bool call(CompletionLane& lane, int number) {
    const auto function = [this, number] {
      ++made;
      return Result{number};
    };
    const auto unmade = [number] { return Result{-number}; };
    return runtime::call_blocking(lane, recorder, function, unmade);
  }
  std::unique_ptr<CompletionLane> open(std::size_t queued_max = 64) {
    return system.completions().open_lane("lane", queued_max);
  }

  std::vector<std::string> log;
  int made = 0;
  Simulation simulation;
  System system;
  Ref<Language> recorder;
};

using Log = std::vector<std::string>;

}   // namespace

BOOST_AUTO_TEST_SUITE(simulation_calls)

BOOST_AUTO_TEST_CASE(calls_of_a_lane_are_made_in_order_and_take_time) {
  World world;
  const auto lane = world.open();
  for (int i = 1; i <= 3; ++i) BOOST_TEST(world.call(*lane, i));
  BOOST_TEST(world.made == 0);
  BOOST_TEST((world.simulation.run_until_quiet(1h) == RunEnd::quiet));
  BOOST_TEST((world.log == Log{"result 1", "result 2", "result 3"}));
  BOOST_TEST(world.simulation.now().time_since_epoch().count() > 0);
}

BOOST_AUTO_TEST_CASE(calls_of_two_lanes_come_back_in_both_orders) {
  bool first = false;
  bool second = false;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World world(seed);
    const auto a = world.open();
    const auto b = world.open();
    BOOST_TEST(world.call(*a, 1));
    BOOST_TEST(world.call(*b, 2));
    world.simulation.run_until_quiet(1h);
    (world.log == Log{"result 1", "result 2"} ? first : second) = true;
  }
  BOOST_TEST(first);
  BOOST_TEST(second);
}

BOOST_AUTO_TEST_CASE(a_full_lane_refuses_and_a_closed_one_too) {
  World world;
  const auto lane = world.open(1);
  BOOST_TEST(world.call(*lane, 1));   // runs
  BOOST_TEST(world.call(*lane, 2));   // waits
  BOOST_TEST(!world.call(*lane, 3));
  lane->close();   // makes the running one come back, finishes the other unmade
  BOOST_TEST(!world.call(*lane, 4));
  world.simulation.run_until_quiet(1h);
  BOOST_TEST((world.log == Log{"result 1", "result -2"}));
  BOOST_TEST(world.made == 1);
}

BOOST_AUTO_TEST_CASE(a_lost_call_never_comes_back_and_is_made_in_some_runs) {
  int made = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    World world(seed, 1, FaultKind::call_lost);
    const auto lane = world.open();
    BOOST_TEST(world.call(*lane, 1));
    BOOST_TEST(world.call(*lane, 2));   // waits behind it for ever
    BOOST_TEST((world.simulation.run_until_quiet(24h) == RunEnd::quiet));
    BOOST_TEST(world.log.empty());
    made += world.made;
    BOOST_TEST(lane->abandon());
    BOOST_TEST(world.system.completions().abandoned() == 1U);
    world.simulation.run_until_quiet(24h);
    BOOST_TEST((world.log == Log{"result -2"}));
  }
  BOOST_TEST((made > 8 && made < 32), made);
}

BOOST_AUTO_TEST_CASE(closing_a_lane_on_a_lost_call_is_counted_since_a_thread_would_hang) {
  World world(1, 1, FaultKind::call_lost);
  auto lane = world.open();
  BOOST_TEST(world.call(*lane, 1));
  world.simulation.run_until_quiet(24h);
  lane->close();
  BOOST_TEST(world.simulation.completions().counters().closed_on_lost == 1U);
}

BOOST_AUTO_TEST_CASE(a_repeated_call_is_made_once_and_told_twice) {
  World world(1, 1, FaultKind::call_repeated);
  const auto lane = world.open();
  BOOST_TEST(world.call(*lane, 1));
  world.simulation.run_until_quiet(24h);
  BOOST_TEST((world.log == Log{"result 1", "result 1"}));
  BOOST_TEST(world.made == 1);
}

BOOST_AUTO_TEST_CASE(a_lane_goes_on_before_the_second_result_of_a_repeated_call) {
  bool overtaken = false;
  for (std::uint64_t seed = 1; seed <= 40 && !overtaken; ++seed) {
    World world(seed, 1, FaultKind::call_repeated);
    const auto lane = world.open();
    BOOST_TEST(world.call(*lane, 1));
    BOOST_TEST(world.call(*lane, 2));
    world.simulation.run_until_quiet(24h);
    BOOST_TEST(world.log.size() == 4U);
    overtaken = world.log[1] == "result 2";
  }
  BOOST_TEST(overtaken);
}

BOOST_AUTO_TEST_CASE(a_call_left_behind_comes_back_late) {
  World world(1, 1, FaultKind::call_late);
  auto lane = world.open();
  BOOST_TEST(world.call(*lane, 1));
  world.simulation.run_for(10us);
  BOOST_TEST(lane->abandon());
  lane.reset();
  BOOST_TEST(world.system.completions().abandoned() == 1U);
  world.simulation.run_until_quiet(1h);
  BOOST_TEST((world.log == Log{"result 1"}));
  BOOST_TEST(world.system.completions().abandoned() == 0U);
  BOOST_TEST(world.simulation.completions().counters().after_abandon == 1U);
}

BOOST_AUTO_TEST_CASE(no_call_goes_wrong_after_the_faults_ended) {
  World world(1, 1, FaultKind::call_lost);
  world.simulation.end_faults();
  const auto lane = world.open();
  for (int i = 1; i <= 20; ++i) BOOST_TEST(world.call(*lane, i));
  world.simulation.run_until_quiet(1h);
  BOOST_TEST(world.log.size() == 20U);
}

BOOST_AUTO_TEST_CASE(computations_are_slow_at_times_but_never_lost_nor_repeated) {
  for (const FaultKind kind :
       {FaultKind::call_lost, FaultKind::call_repeated, FaultKind::call_late}) {
    World world(1, 1, kind);
    const auto lane = world.system.completions().open_lane("calls-compute0", 64);
    for (int i = 1; i <= 5; ++i) BOOST_TEST(world.call(*lane, i));
    world.simulation.run_until_quiet(1s);
    BOOST_TEST(world.log.size() == 5U);
  }
}

BOOST_AUTO_TEST_CASE(a_call_may_stand_still_in_the_middle_while_others_go_on) {
  World world;
  auto& completions = world.simulation.completions();
  completions.let_calls_block();
  bool open = false;
  std::vector<std::string> steps;
  const auto lane = world.open();
  const auto other = world.open();
  const auto blocks = [&] {
    steps.emplace_back("before");
    const bool opened =
        completions.block_until([&open] { return open; }, runtime::TimePoint::max());
    steps.emplace_back(opened ? "open" : "given up");
    return Result{1};
  };
  BOOST_TEST(runtime::call_blocking(*lane, world.recorder, blocks, blocks));
  BOOST_TEST((world.simulation.run_until_quiet(1h) == RunEnd::quiet));
  BOOST_TEST((steps == Log{"before"}));
  BOOST_TEST(world.call(*other, 2));
  world.simulation.run_until_quiet(1h);
  BOOST_TEST((world.log == Log{"result 2"}));
  completions.wake_blocked();   // looks again: in vain
  world.simulation.run_until_quiet(1h);
  BOOST_TEST((steps == Log{"before"}));
  open = true;
  completions.wake_blocked();
  world.simulation.run_until_quiet(1h);
  BOOST_TEST((steps == Log{"before", "open"}));
  BOOST_TEST((world.log == Log{"result 2", "result 1"}));
}

BOOST_AUTO_TEST_CASE(a_blocked_call_comes_back_at_its_deadline_or_when_its_lane_is_closed) {
  World world;
  auto& completions = world.simulation.completions();
  completions.let_calls_block();
  int given_up = 0;
  const auto blocks_until = [&](runtime::TimePoint deadline) {
    return [&completions, &given_up, deadline] {
      if (!completions.block_until([] { return false; }, deadline)) ++given_up;
      return Result{1};
    };
  };
  const auto lane = world.open();
  const auto timed = blocks_until(world.simulation.now() + 5s);
  BOOST_TEST(runtime::call_blocking(*lane, world.recorder, timed, timed));
  world.simulation.run_for(4s);
  BOOST_TEST(given_up == 0);
  world.simulation.run_for(2s);
  BOOST_TEST(given_up == 1);
  const auto for_ever = blocks_until(runtime::TimePoint::max());
  BOOST_TEST(runtime::call_blocking(*lane, world.recorder, for_ever, for_ever));
  world.simulation.run_for(1h);
  BOOST_TEST(given_up == 1);
  lane->close();
  BOOST_TEST(given_up == 2);
  const auto left = world.open();   // and what is left behind comes back with the simulation's end
  BOOST_TEST(runtime::call_blocking(*left, world.recorder, for_ever, for_ever));
  world.simulation.run_for(1h);
  BOOST_TEST(left->abandon());
}

// A result that comes from a completion thread runs its actor right there.
BOOST_AUTO_TEST_CASE(an_actor_may_run_where_its_call_comes_back) {
  World world;
  runtime::ActorOptions options("inline");
  options.run_on_completion_thread = true;
  world.simulation.run_until_quiet(1s);
  world.recorder = world.system.spawn<Recorder>(options, world.log);
  world.simulation.run_until_quiet(1s);
  const auto lane = world.open();
  BOOST_TEST(world.call(*lane, 1));
  const std::uint64_t before = world.simulation.activations();
  world.simulation.run_until_quiet(1s);
  BOOST_TEST((world.log == Log{"result 1"}));
  BOOST_TEST(world.simulation.activations() == before);
}

BOOST_AUTO_TEST_SUITE_END()
