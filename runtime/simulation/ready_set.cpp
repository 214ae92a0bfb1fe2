// ready_set.cpp: a vector, so that a seed may pick any of it.
#include "runtime/simulation/ready_set.hpp"

#include "runtime/assert.hpp"
#include "runtime/detail/slot.hpp"

#include <algorithm>
#include <utility>

namespace duet::runtime::simulation {

void ReadySet::push(Runnable& runnable, const SimScheduler* owner) {
  DUET_DEBUG_ASSERT(!has(runnable), "made ready twice");
  entries_.push_back(Entry{&runnable, owner});
}

Runnable& ReadySet::take(std::size_t index) noexcept {
  DUET_ASSERT(index < entries_.size(), index, entries_.size());
  Runnable& runnable = *entries_[index].runnable;
  entries_[index] = entries_.back();
  entries_.pop_back();
  return runnable;
}

Runnable& ReadySet::take_in_order(std::size_t index) noexcept {
  DUET_ASSERT(index < entries_.size(), index, entries_.size());
  Runnable& runnable = *entries_[index].runnable;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
  return runnable;
}

void ReadySet::swap(std::size_t a, std::size_t b) noexcept {
  DUET_ASSERT(a < entries_.size() && b < entries_.size(), a, b, entries_.size());
  std::swap(entries_[a], entries_[b]);
}

Address ReadySet::actor(std::size_t index) const noexcept {
  auto* const slot = dynamic_cast<detail::Slot*>(entries_[index].runnable);
  return slot == nullptr ? Address() : Address(slot, slot->generation());
}

bool ReadySet::has(const Runnable& runnable) const noexcept {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.runnable == &runnable; });
}

void ReadySet::forget(const SimScheduler& owner) noexcept {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.owner == &owner; });
}

void ReadySet::drop_handlers() noexcept {
  std::vector<Entry> entries;
  entries.swap(entries_);   // what is dropped may post once more
  for (const Entry& entry : entries) {
    if (entry.owner != nullptr) {
      entries_.push_back(entry);
    } else {
      static_cast<HostHandler*>(entry.runnable)->drop();
    }
  }
}

}   // namespace duet::runtime::simulation
