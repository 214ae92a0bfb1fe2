// supervisor_simulation_test.cpp: trees of supervisors under random ends, seed by seed.
#include "runtime/simulation/simulation.hpp"
#include "runtime/supervisor.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

using namespace duet::test;
using duet::runtime::Behaviour;
using duet::runtime::ChildRef;
using duet::runtime::Children;
using duet::runtime::Duration;
using duet::runtime::Ref;
using duet::runtime::Self;
using duet::runtime::Spawner;
using duet::runtime::Stop;
using duet::runtime::Strategy;
using duet::runtime::Supervisor;
using duet::runtime::SupervisorMessage;
using duet::runtime::SupervisorOptions;
using duet::runtime::System;
using duet::runtime::simulation::Faults;
using duet::runtime::simulation::RunEnd;
using duet::runtime::simulation::Simulation;
using duet::runtime::simulation::SimulationOptions;

namespace {

constexpr int members = 8;
constexpr Duration second = std::chrono::seconds(1);

struct World {
  bool chaos = true;
  int lives = 0;
  std::array<int, members> living{};
  int two_at_once = 0;
  std::vector<int> ended;   // in order
};

struct Life {
  Life(World& in, int number) noexcept : world(in), index(number) {
    ++world.lives;
    if (++world.living[index] > 1) ++world.two_at_once;
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
  ~Life() {
    --world.living[index];
    world.ended.push_back(index);
  }
  World& world;
  const int index;
};

/// Fails on Work, finishes on Result; takes its time over a Stop, often more than it has.
Behaviour member(Self<Language> self, World* world, int index) {
  const Life life(*world, index);
  for (;;) {
    const Language message = co_await self.receive();
    if (std::holds_alternative<Work>(message)) throw std::runtime_error("work was bad");
    if (std::holds_alternative<duet::test::Result>(message)) co_return;
    if (std::holds_alternative<Stop>(message)) {
      const Duration linger(static_cast<Duration::rep>(self.random().below(7'000'000'000)));
      co_await self.sleep(linger);
      co_return;
    }
  }
}

/// root: a, left (rest for one): b, c, d; right (one for all): e, f, deep: g, h.
struct Tree {
  Tree(Simulation& simulation, World& in) : random(simulation.workload_random()), world(in) {
    options.limit.restarts_max = 3 + static_cast<std::uint32_t>(simulation.seed() % 40);
    SupervisorOptions left = options;
    left.strategy = Strategy::rest_for_one;
    SupervisorOptions right = options;
    right.strategy = Strategy::one_for_all;
    Children of_left;
    Children of_right;
    Children of_deep;
    add(root_children, 0);
    for (const int index : {1, 2, 3}) add(of_left, index);
    for (const int index : {4, 5}) add(of_right, index);
    for (const int index : {6, 7}) add(of_deep, index);
    supervisors.push_back(add_supervisor(of_right, "deep", options, of_deep));
    supervisors.push_back(add_supervisor(root_children, "left", left, of_left));
    supervisors.push_back(add_supervisor(root_children, "right", right, of_right));
  }
  void add(Children& to, int index) {
    World* const world_ptr = &world;
    duet::runtime::Random* const chance = &random;
    to.add_made(refs[index], "member", [world_ptr, chance, index](Spawner& spawner) {
      if (world_ptr->chaos && chance->below(10) == 0) throw std::runtime_error("not today");
      return spawner.spawn(member, world_ptr, index);
    });
  }
  /// Something bad happens to somebody.
  void harm(const System& system) {
    const ChildRef<Language>& victim = refs[random.below(members)];
    switch (random.below(12)) {
      case 0:
        system.kill(supervisors[random.below(supervisors.size())].ref(), "harm");
        break;
      case 1:
        system.stop(supervisors[random.below(supervisors.size())].ref());
        break;
      case 2:
      case 3:
        system.kill(victim.ref(), "harm");
        break;
      case 4:
      case 5:
        system.stop(victim.ref());
        break;
      case 6:
      case 7:
        victim.send(duet::test::Result{});
        break;
      default:
        static_cast<void>(victim.send(Work{}));
    }
  }
  duet::runtime::Random& random;
  World& world;
  SupervisorOptions options;
  Children root_children;
  std::array<ChildRef<Language>, members> refs;
  std::vector<ChildRef<SupervisorMessage>> supervisors;
};

struct Outcome {
  std::uint64_t hash = 0;
  bool survived = false;
  int lives = 0;
};

Outcome run(std::uint64_t seed) {
  SimulationOptions simulated;
  simulated.seed = seed;
  simulated.faults = Faults::swarm(seed);
  Simulation simulation(simulated);
  System system(simulation.executor(), simulation.system_options("tree"));
  World world;
  Tree tree(simulation, world);
  const auto root = system.spawn<Supervisor>("root", tree.options, tree.root_children);

  for (int i = 0; i < 200; ++i) {
    simulation.run_for(Duration(static_cast<Duration::rep>(tree.random.below(4'000'000'000))));
    tree.harm(system);
  }
  world.chaos = false;
  simulation.end_faults();
  simulation.run_for(300 * second);
  Outcome outcome;
  outcome.survived = root.alive();
  if (root.alive()) {
    for (const auto& ref : tree.refs) BOOST_TEST(ref.alive(), "seed " << seed);
    world.ended.clear();
    system.stop(root);
    const auto ended = [&root] { return !root.alive(); };
    BOOST_TEST((simulation.run_until(ended, 600 * second) == RunEnd::satisfied), "seed " << seed);
    const std::vector<int> reverse = {7, 6, 5, 4, 3, 2, 1, 0};
    // The supervisor "deep" was added after e and f, "left" before "right".
    BOOST_TEST(world.ended == reverse, "seed " << seed);
  }
  BOOST_TEST((simulation.run_until_quiet(600 * second) == RunEnd::quiet), "seed " << seed);
  BOOST_TEST(std::count(world.living.begin(), world.living.end(), 0) == members, "seed " << seed);
  BOOST_TEST(system.snapshot().actors.empty(), "seed " << seed);
  BOOST_TEST(world.two_at_once == 0, "seed " << seed);
  outcome.lives = world.lives;
  outcome.hash = simulation.hash();
  return outcome;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(supervision_simulated)

BOOST_AUTO_TEST_CASE(trees_under_harm_heal_or_give_up_and_never_hold_two_lives_of_a_child) {
#if defined(DUET_SANITIZED)
  constexpr std::uint64_t seeds = 40;
#else
  constexpr std::uint64_t seeds = 400;
#endif
  int survived = 0;
  std::int64_t lives = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = run(seed);
    survived += outcome.survived ? 1 : 0;
    lives += outcome.lives;
  }
  BOOST_TEST_MESSAGE(survived << " of " << seeds << " trees survived, " << lives << " lives");
  // Both ends were seen, or the limits are no limits.
  BOOST_TEST(survived > 0);
  BOOST_TEST(survived < static_cast<int>(seeds));
}

BOOST_AUTO_TEST_CASE(restarts_and_their_jitter_come_from_the_seed) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    BOOST_TEST(run(seed).hash == run(seed).hash, "seed " << seed);
  }
  BOOST_TEST(run(1).hash != run(2).hash);
}

BOOST_AUTO_TEST_SUITE_END()
