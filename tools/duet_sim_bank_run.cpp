// duet_sim_bank_run.cpp: one run of the bank: chaos first, then everything must be settled.
#include "runtime/simulation/simulation.hpp"
#include "runtime/system.hpp"
#include "tools/duet_sim_bank.hpp"
#include "tools/duet_sim_workload.hpp"

#include <algorithm>
#include <optional>

namespace duet::tools {

using namespace std::chrono_literals;   // NOLINT(google-build-using-namespace): 5s reads well
using runtime::Duration;
using runtime::System;
using runtime::simulation::Faults;
using runtime::simulation::RunEnd;
using runtime::simulation::SimRandom;
using runtime::simulation::Simulation;
using runtime::simulation::SimulationOptions;

namespace {

constexpr Tokens tokens_each = 100;
constexpr Tokens amount_max = 40;         // so that some are refused
constexpr Duration settle_within = 6h;    // of virtual time; the last late call comes after 30 s
constexpr double lost_wakeups = 0.0005;   // of all posts: about one or two a run

SimulationOptions options_of(const SimOrder& order) {
  SimulationOptions options;
  options.seed = order.seed;
  options.faults = Faults::swarm(order.seed);
  if (order.plant == Plant::lost_wakeup) options.lost_wakeups = lost_wakeups;
  return options;
}

Bank make_bank(const SimOrder& order, SimRandom& random) {
  const std::size_t accounts = random.between(2, 8);
  Bank bank(BankDisk(accounts, tokens_each, order.plant != Plant::stale_generation));
  bank.applies_twice = order.plant == Plant::double_delivery;
  bank.chaos_every = Duration(static_cast<std::int64_t>(random.magnitude(5e7, 3e9)));
  bank.orders.resize(random.between(1, 8));
  TransferId id = 0;
  for (auto& orders : bank.orders) {
    orders.resize(random.between(2, 25));
    for (Order& one : orders) {
      one.id = ++id;
      one.from = static_cast<AccountId>(random.below(accounts));
      one.to = static_cast<AccountId>((one.from + random.between(1, accounts - 1)) % accounts);
      one.amount = static_cast<Tokens>(random.between(1, amount_max));
    }
  }
  return bank;
}

/// A process: everything but the disk and the tellers' papers is lost with it.
void start(std::optional<System>& system, Simulation& simulation, Bank& bank,
           runtime::Strategy strategy) {
  system.reset();
  system.emplace(simulation.executor(), simulation.system_options("bank"));
  spawn_accounts(*system, bank, strategy);
  for (std::size_t i = 0; i < bank.orders.size(); ++i) {
    system->spawn("teller-" + std::to_string(i), teller, &bank, i);
  }
  system->spawn("auditor", auditor, &bank);
  system->spawn("chaos", chaos, &bank);
}

std::string check_orders(const Bank& bank) {
  for (const auto& orders : bank.orders) {
    for (const Order& order : orders) {
      if (!order.answered) return "transfer " + std::to_string(order.id) + " is not answered";
      if (order.answer != TransferAnswer::done) continue;
      if (!bank.disk.read(order.from).debits.contains(order.id) ||
          !bank.disk.read(order.to).credits.contains(order.id)) {
        return "transfer " + std::to_string(order.id) + " was called done, but is not on disk";
      }
    }
  }
  const std::size_t unsettled = bank.disk.unsettled();
  return unsettled == 0 ? "" : std::to_string(unsettled) + " transfers are not settled";
}

void judge(const Simulation& simulation, const Bank& bank, RunEnd end, SimOutcome& outcome) {
  const auto add = [&outcome](const char* kind, const std::string& what) {
    if (!what.empty()) outcome.violations.push_back(std::string(kind) + ": " + what);
  };
  if (end == RunEnd::quiet) {
    if (const auto deadlock = simulation.deadlock()) add("deadlock", deadlock->text());
  } else {
    add("liveness", std::string("the run did not come to rest: ") + to_string(end));
  }
  add("conservation", bank.disk.violation());
  if (!bank.violation.empty()) outcome.violations.push_back(bank.violation);
  add("settlement", check_orders(bank));
}

}   // namespace

SimOutcome run_bank(const SimOrder& order) {
  Simulation simulation(options_of(order));
  SimRandom& random = simulation.workload_random();
  Bank bank = make_bank(order, random);
  std::optional<System> system;
  const auto strategy = static_cast<runtime::Strategy>(random.below(3));
  start(system, simulation, bank, strategy);

  const Duration chaos_time = Duration(1s) * random.between(3, 40);
  simulation.run_for(chaos_time / 2);
  if (random.below(4) == 0) start(system, simulation, bank, strategy);   // the whole process dies
  simulation.run_for(chaos_time / 2);

  simulation.end_faults();
  bank.chaos = false;
  const RunEnd end = simulation.run_until_quiet(settle_within);

  SimOutcome outcome;
  judge(simulation, bank, end, outcome);
  if (simulation.completions().counters().closed_on_lost > 0) {
    outcome.violations.emplace_back("hang: a lane was closed on a call that never comes back");
  }
  for (AccountId id = 0; id < bank.disk.size(); ++id) {
    simulation.fold(static_cast<std::uint64_t>(bank.disk.read(id).balance));
  }
  outcome.hash = simulation.hash();
  outcome.simulated = simulation.now().time_since_epoch();
  outcome.activations = simulation.activations();
  outcome.handled = simulation.handled();
  outcome.faults = simulation.faults_drawn().text();
  const auto& calls = simulation.completions().counters();
  outcome.figures = std::to_string(bank.disk.writes()) + " writes, " +
                    std::to_string(bank.disk.fenced_off()) + " fenced off, " +
                    std::to_string(bank.writes_given_up) + " given up, " +
                    std::to_string(calls.lost) + " calls lost, " + std::to_string(calls.repeated) +
                    " repeated, " + std::to_string(calls.late) + " late, " +
                    std::to_string(bank.restarts) + " restarts";
  return outcome;
}

}   // namespace duet::tools
