// kv_pool.cpp: reserve, commit, rollback and release of key/value slots, and their use by jobs.
#include "device/emulator/kv_pool.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <string>

namespace duet::device::emulator {
namespace {

std::string named(SequenceId sequence) {
  return "sequence " + std::to_string(sequence);
}

}   // namespace

KvPool::KvPool(const PoolPlan& plan)
    : slots_(plan.slots),
      tokens_per_slot_(plan.tokens_per_slot),
      first_(plan.sequence_first),
      last_(plan.sequence_last) {}

KvPool::Slot* KvPool::find(Generation generation, SequenceId sequence) noexcept {
  for (Slot& slot : slots_) {
    if (slot.used && !slot.released && slot.sequence == sequence && slot.generation == generation) {
      return &slot;
    }
  }
  return nullptr;
}

void KvPool::free_slot(Slot& slot) noexcept {
  if (slot.busy) {
    slot.released = true;
  } else {
    slot = Slot{};
  }
}

void KvPool::raise_generation(Generation generation) noexcept {
  DUET_ASSERT(generation > newest_, generation, newest_);
  newest_ = generation;
  release_all();
}

void KvPool::release_all() {
  for (Slot& slot : slots_) {
    if (slot.used) free_slot(slot);
  }
}

result<KvPool::Slot*> KvPool::idle_slot(Generation generation, SequenceId sequence) {
  if (!holds(sequence)) {
    return Failure{errc::bad_argument, named(sequence) + " is outside its model's range"};
  }
  if (generation < newest_) {
    return Failure{errc::stale_generation, named(sequence) + " is of generation " +
                                               std::to_string(generation) + "; the chip is at " +
                                               std::to_string(newest_)};
  }
  Slot* slot = find(generation, sequence);
  if (slot == nullptr) return Failure{errc::unknown_name, named(sequence) + " holds no slot"};
  if (slot->busy) return Failure{errc::device_busy, named(sequence) + " has a job in flight"};
  return slot;
}

result<void> KvPool::reserve(Generation generation, SequenceId sequence, std::uint32_t tokens) {
  if (tokens == 0) return Failure{errc::bad_argument, "a reservation of 0 positions"};
  if (holds(sequence) && generation > newest_) raise_generation(generation);
  auto found = idle_slot(generation, sequence);
  if (found.has_error() && found.error().code != errc::unknown_name) return found.error();
  Slot* slot = found.has_value() ? found.value() : nullptr;
  const std::uint32_t committed = slot == nullptr ? 0 : slot->committed;
  if (tokens > tokens_per_slot_ - committed) {
    return Failure{errc::kv_exhausted, named(sequence) + " has " + std::to_string(committed) +
                                           " positions; " + std::to_string(tokens) +
                                           " more pass the slot's " +
                                           std::to_string(tokens_per_slot_)};
  }
  if (slot == nullptr) {
    const auto free =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& each) { return !each.used; });
    if (free == slots_.end()) {
      return Failure{errc::kv_exhausted, "all " + std::to_string(slots_.size()) +
                                             " slots are taken; none for " + named(sequence)};
    }
    slot = &*free;
    slot->used = true;
    slot->generation = generation;
    slot->sequence = sequence;
    slots_peak_ = std::max(slots_peak_, slots_used());
  }
  slot->reserved = tokens;
  slot->written = 0;
  return {};
}

result<void> KvPool::commit(Generation generation, SequenceId sequence, std::uint32_t tokens) {
  auto found = idle_slot(generation, sequence);
  if (found.has_error()) return found.error();
  Slot& slot = *found.value();
  if (tokens > slot.written) {
    return Failure{errc::bad_argument, named(sequence) + ": a commit of " + std::to_string(tokens) +
                                           " positions of which " + std::to_string(slot.written) +
                                           " are written"};
  }
  DUET_ASSERT(slot.written <= slot.reserved, slot.written, slot.reserved);
  slot.committed += tokens;
  slot.reserved = 0;
  slot.written = 0;
  DUET_ASSERT(slot.committed <= tokens_per_slot_, slot.committed, tokens_per_slot_);
  return {};
}

result<void> KvPool::rollback(Generation generation, SequenceId sequence) {
  auto found = idle_slot(generation, sequence);
  if (found.has_error()) return found.error();
  found.value()->reserved = 0;
  found.value()->written = 0;
  return {};
}

result<void> KvPool::release(Generation generation, SequenceId sequence) {
  auto found = idle_slot(generation, sequence);
  if (found.has_error() && found.error().code != errc::device_busy) return found.error();
  free_slot(*find(generation, sequence));
  return {};
}

result<KvPool::JobSlot> KvPool::begin_job(Generation generation, SequenceId sequence,
                                          std::uint32_t past, std::uint32_t tokens) {
  auto found = idle_slot(generation, sequence);
  if (found.has_error()) {
    const bool none = found.error().code == errc::unknown_name;
    return none ? Failure{errc::kv_exhausted, named(sequence) + " holds no slot; reserve first"}
                : found.error();
  }
  Slot& slot = *found.value();
  if (past != slot.committed) {
    return Failure{errc::bad_argument, named(sequence) + ": past is " + std::to_string(past) +
                                           ", the device has " + std::to_string(slot.committed) +
                                           " positions"};
  }
  if (tokens > slot.reserved) {
    return Failure{errc::kv_exhausted, named(sequence) + ": a job of " + std::to_string(tokens) +
                                           " tokens, " + std::to_string(slot.reserved) +
                                           " positions reserved"};
  }
  slot.busy = true;
  slot.written = 0;
  return JobSlot{static_cast<std::uint32_t>(&slot - slots_.data()), slot.committed};
}

void KvPool::end_job(std::uint32_t index, std::uint32_t tokens, bool written) {
  DUET_ASSERT(index < slots_.size(), index, slots_.size());
  Slot& slot = slots_[index];
  DUET_ASSERT(slot.used && slot.busy, index);
  slot.busy = false;
  if (slot.released) {
    slot = Slot{};
  } else if (written) {
    DUET_ASSERT(tokens <= slot.reserved, tokens, slot.reserved);
    slot.written = tokens;
  }
}

std::uint32_t KvPool::slots_used() const noexcept {
  return static_cast<std::uint32_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.used; }));
}

}   // namespace duet::device::emulator
