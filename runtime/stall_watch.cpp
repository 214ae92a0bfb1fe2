// stall_watch.cpp: two looks at what threads run.
#include "runtime/stall_watch.hpp"

#include "runtime/assert.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"

#include <algorithm>
#include <utility>

namespace duet::runtime {

/// What a thread ran at a look. The same actor with the same count of messages and the same
/// beginning of its activation has not come back in between: a beginning is read anew at least
/// once a slice, and a slice is shorter than any budget.
struct StallWatch::Held {
  const detail::Slot* slot;
  std::uint64_t generation;
  std::uint64_t handled;
  TimePoint since;
  TimePoint first_seen;
  bool told;

  [[nodiscard]] bool same(const Held& other) const noexcept {
    return slot == other.slot && generation == other.generation && handled == other.handled &&
           since == other.since;
  }
};

StallWatch::StallWatch(const System& system, Duration budget)
    : core_(system.core()), budget_(budget) {
  DUET_ASSERT(budget > Duration(limits::slice_ns_max), budget.count());
}

StallWatch::~StallWatch() = default;

std::vector<Stall> StallWatch::look() {
  std::vector<Stall> stalls;
  const auto core = core_.lock();
  if (core == nullptr || core->finished()) return stalls;
  detail::Arena& arena = core->arena();
  const detail::Inside inside(arena);
  if (!inside) return stalls;
  const TimePoint now = core->clock().now();
  std::vector<Held> running;
  arena.for_each_block([&](const detail::ThreadBlock& block) {
    const detail::Slot* const slot = block.running.load(std::memory_order_relaxed);
    if (slot == nullptr) return;
    running.push_back(
        {slot, slot->generation(), slot->handled(), slot->side().since(), now, false});
  });
  for (Held& held : running) {
    const auto before = std::find_if(held_.begin(), held_.end(),
                                     [&](const Held& other) { return held.same(other); });
    if (before == held_.end()) continue;
    held.first_seen = before->first_seen;
    held.told = before->told;
    if (held.told || now - held.first_seen < budget_) continue;
    held.told = true;
    ++count_;
    stalls.push_back({core->snapshot(*held.slot), now - held.first_seen});
  }
  held_ = std::move(running);
  return stalls;
}

}   // namespace duet::runtime
