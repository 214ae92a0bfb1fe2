// script.cpp: stepping by hand, and what to say when it goes another way.
#include "runtime/simulation/script.hpp"

#include "runtime/detail/slot.hpp"

#include <algorithm>

namespace duet::runtime::simulation {
namespace {

SimulationOptions simulation_options(const ScriptOptions& options) {
  SimulationOptions simulation;
  simulation.seed = options.seed;
  simulation.call_times = options.call_times;
  simulation.activation_messages = 1;
  return simulation;
}

SystemOptions system_options(Simulation& simulation, const ScriptOptions& options) {
  const SystemOptions seams = simulation.system_options(options.system.name);
  SystemOptions system = options.system;
  system.stamp_activations = seams.stamp_activations;
  system.scheduler = seams.scheduler;
  system.clock = seams.clock;
  system.random = seams.random;
  system.completions = seams.completions;
  return system;
}

std::string name_of(const Address& actor) {
  return actor.alive() ? actor.slot()->side().name() : "an actor that has ended";
}

std::string join(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all.empty() ? "nothing" : all;
}

}   // namespace

Script::Script(ScriptOptions options)
    : simulation_(simulation_options(options)),
      system_(simulation_.executor(), system_options(simulation_, options)) {}

bool Script::step() {
  const ReadySet& ready = simulation_.ready();
  std::size_t first = 0;
  while (first < ready.size() && is_probe(ready.actor(first))) ++first;
  if (first == ready.size()) return false;
  simulation_.run_ready(first);
  check_forbidden();
  return true;
}

void Script::settle(std::uint64_t steps_max) {
  for (std::uint64_t i = 0; i < steps_max; ++i) {
    if (!step()) return;
  }
  throw ScriptError("settle: after " + std::to_string(steps_max) +
                    " steps there are ready: " + join(line()));
}

void Script::advance(Duration time) {
  const TimePoint until = simulation_.now() + time;
  SimClock& clock = simulation_.clock();
  while (clock.next_due() <= until) {
    if (clock.next_due() > clock.now()) clock.move_to(clock.next_due());
    simulation_.expire_one();
  }
  clock.move_to(until);
  check_forbidden();
}

std::vector<std::string> Script::line() const {
  std::vector<std::string> names;
  const ReadySet& ready = simulation_.ready();
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Address actor = ready.actor(i);
    if (!is_probe(actor)) names.push_back(actor.empty() ? "" : name_of(actor));
  }
  return names;
}

bool Script::is_ready(const Address& actor) const noexcept {
  const ReadySet& ready = simulation_.ready();
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (ready.actor(i) == actor) return true;
  }
  return false;
}

bool Script::is_probe(const Address& actor) const noexcept {
  return std::find(probes_.begin(), probes_.end(), actor) != probes_.end();
}

std::size_t Script::place_of(const Address& actor, const char* what) const {
  const ReadySet& ready = simulation_.ready();
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (!actor.empty() && ready.actor(i) == actor) return i;
  }
  throw ScriptError(std::string(what) + ": " + describe_actor(actor) +
                    " is not ready; there are ready: " + join(line()));
}

void Script::run_ready_actor(const Address& actor) {
  simulation_.run_ready(place_of(actor, "step"));
  check_forbidden();
}

void Script::reorder(const Address& a, const Address& b) {
  const std::size_t place = place_of(a, "reorder");
  simulation_.ready().swap(place, place_of(b, "reorder"));
}

void Script::visit(const Address& actor,
                   const std::function<void(const runtime::detail::Node&)>& function) {
  if (!actor.alive()) return;
  actor.slot()->visit_queued([&](const runtime::detail::Node& node) {
    if (node.generation == actor.generation()) function(node);
  });
}

Script::Queued Script::first_queued(const Address& actor) {
  Queued first;
  visit(actor, [&first](const runtime::detail::Node& node) {
    if (first.ops == nullptr) first.ops = node.ops;
  });
  return first;
}

std::vector<std::string> Script::mailbox(const Address& actor) const {
  std::vector<std::string> types;
  visit(actor, [&types](const runtime::detail::Node& node) { types.emplace_back(node.ops->type); });
  return types;
}

void Script::check_forbidden() {
  for (const Forbidden& forbidden : forbidden_) {
    if (!forbidden.came()) continue;
    throw ScriptError(std::string("forbidden: ") + forbidden.type + " came to " +
                      describe_actor(forbidden.actor));
  }
}

void Script::throw_missing(const char* type, const Address& actor) const {
  throw ScriptError(std::string("expected ") + type + " for " + describe_actor(actor) +
                    "; in its mailbox: " + join(mailbox(actor)));
}

std::string Script::describe_actor(const Address& actor) const {
  if (!actor.alive()) return "an actor that has ended";
  for (const ActorSnapshot& snapshot : system_.snapshot().actors) {
    if (snapshot.number == actor.number()) return describe(snapshot, simulation_.now());
  }
  return name_of(actor);
}

}   // namespace duet::runtime::simulation
