// core_snapshot.cpp: reads side records; takes no lock that an actor could hold for long.
#include "runtime/detail/core.hpp"

#include <algorithm>

namespace duet::runtime::detail {
namespace {

LaneSnapshot lane_of(const Slot& slot, Lane lane) {
  const SideRecord& side = slot.side();
  const bool normal = lane == Lane::normal;
  LaneSnapshot snapshot;
  snapshot.depth = normal ? slot.normal_depth() : slot.urgent_depth();
  snapshot.peak =
      std::max(snapshot.depth,
               (normal ? side.normal_peak : side.urgent_peak).load(std::memory_order_relaxed));
  return snapshot;
}

std::string text_of(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

}   // namespace

ActorSnapshot Core::snapshot(const Slot& slot) const {
  const SideRecord& side = slot.side();
  ActorSnapshot actor;
  actor.number = slot.number();
  actor.parent = slot.parent().number();
  actor.generation = slot.generation();
  actor.name = side.name();
  actor.since = side.since();
  switch (side.activity()) {
    case Activity::none:
    case Activity::starting:
      actor.state = ActorState::starting;
      break;
    case Activity::running:
      actor.state = ActorState::running;
      break;
    case Activity::waiting:
      actor.state = slot.inbox().active() ? ActorState::ready : ActorState::waiting;
      break;
  }
  actor.message = text_of(side.message());
  // A handler actor leaves word of what it waits for even while it runs.
  if (actor.state != ActorState::running) actor.waits_for = text_of(side.waits_for());
  if (!actor.waits_for.empty() || actor.state == ActorState::running) {
    actor.file = side.where().file_name();
    actor.line = side.where().line();
  }
  if (!actor.waits_for.empty()) {
    actor.waits_on = Address(side.waits_on(), side.waits_on_generation()).number();
  }
  if (actor.waits_for.empty() && actor.state == ActorState::waiting) actor.waits_for = "message";
  actor.normal = lane_of(slot, Lane::normal);
  actor.urgent = lane_of(slot, Lane::urgent);
  actor.sent = slot.sent();
  actor.handled = slot.handled();
  return actor;
}

Address Core::find(std::uint64_t number) const {
  const Inside inside(*arena_);
  if (finished() || !inside) return {};
  for (Slot* const slot : arena_->slots()) {
    const std::uint64_t generation = slot->generation();
    if (generation % 2 == 1 && slot->number() == number) return Address(slot, generation);
  }
  return {};
}

std::vector<TypeSnapshot> Core::type_snapshots() const {
  std::vector<TypeSnapshot> types(TypeRow::count());
  for (std::uint32_t i = 0; i < types.size(); ++i) {
    const auto dead = [this, i](DeadLetter reason) {
      return dead_by_type_[i][static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
    };
    types[i].name = TypeRow::name(i);
    types[i].refused = dead(DeadLetter::refused);
    types[i].receiver_gone = dead(DeadLetter::receiver_gone);
    types[i].expired = dead(DeadLetter::expired);
    types[i].superseded = dead(DeadLetter::superseded);
  }
  arena_->for_each_block([&](const ThreadBlock& block) {
    for (std::uint32_t i = 0; i < types.size(); ++i) {
      types[i].handled += block.handled[i].load(std::memory_order_relaxed);
    }
  });
  std::erase_if(types, [](const TypeSnapshot& type) {
    return type.handled + type.refused + type.receiver_gone + type.expired + type.superseded == 0;
  });
  std::sort(types.begin(), types.end(),
            [](const TypeSnapshot& a, const TypeSnapshot& b) { return a.name < b.name; });
  return types;
}

SystemSnapshot Core::snapshot() const {
  SystemSnapshot system;
  system.name = options_.name;
  const auto count = [this](DeadLetter reason) {
    return dead_letters_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  };
  SystemCounters& counters = system.counters;
  counters.spawned = spawned_.load(std::memory_order_relaxed);
  counters.failed = failed_.load(std::memory_order_relaxed);
  counters.sent =
      sent_outside_.load(std::memory_order_relaxed) + sent_by_dead_.load(std::memory_order_relaxed);
  counters.delivered = handled_by_dead_.load(std::memory_order_relaxed);
  counters.refused = count(DeadLetter::refused);
  counters.receiver_gone = count(DeadLetter::receiver_gone);
  counters.expired = count(DeadLetter::expired);
  counters.superseded = count(DeadLetter::superseded);
  counters.late_replies = count(DeadLetter::late_reply);
  const Inside inside(*arena_);
  if (finished() || !inside) return system;
  system.now = clock_->now();
  system.types = type_snapshots();
  for (const Slot* const slot : living()) {
    system.actors.push_back(snapshot(*slot));
    counters.sent += system.actors.back().sent;
    counters.delivered += system.actors.back().handled;
  }
  return system;
}

}   // namespace duet::runtime::detail
