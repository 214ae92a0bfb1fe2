// kv_book.cpp: reserve, commit, rollback, release.
#include "device/calrt/kv_book.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <string>

namespace duet::device {

namespace {

std::string of_sequence(SequenceId sequence) {
  return "sequence " + std::to_string(sequence);
}

}   // namespace

KvBook::KvBook(KvBookLimits limits) : limits_(limits), slots_(limits.slots) {}

KvBook::Slot* KvBook::find(SequenceId sequence) noexcept {
  for (Slot& slot : slots_) {
    if (slot.used && slot.sequence == sequence && !slot.released) return &slot;
  }
  return nullptr;
}

result<KvBook::Slot*> KvBook::find_idle(SequenceId sequence) {
  Slot* const slot = find(sequence);
  if (slot == nullptr) return Failure(errc::unknown_name, of_sequence(sequence) + " has no slot");
  if (slot->running) {
    return Failure(errc::device_busy, of_sequence(sequence) + " has a job in flight");
  }
  return slot;
}

result<void> KvBook::reserve(SequenceId sequence, std::uint32_t tokens) {
  if (sequence < limits_.sequence_first || sequence > limits_.sequence_last) {
    return Failure(errc::bad_argument, of_sequence(sequence) + " is outside the model's range " +
                                           std::to_string(limits_.sequence_first) + ".." +
                                           std::to_string(limits_.sequence_last));
  }
  Slot* slot = find(sequence);
  if (slot != nullptr && slot->running) {
    return Failure(errc::device_busy, of_sequence(sequence) + " has a job in flight");
  }
  const std::uint32_t committed = slot == nullptr ? 0 : slot->committed;
  if (tokens == 0 || tokens > limits_.tokens_per_slot - committed) {
    return Failure(errc::bad_argument, of_sequence(sequence) + ": " + std::to_string(committed) +
                                           " committed and " + std::to_string(tokens) +
                                           " to reserve, the context is " +
                                           std::to_string(limits_.tokens_per_slot));
  }
  if (slot == nullptr) {
    const auto free =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.used; });
    if (free == slots_.end()) {
      return Failure(errc::kv_exhausted,
                     "all " + std::to_string(limits_.slots) + " key/value slots are taken");
    }
    slot = &*free;
    *slot = Slot{};
    slot->used = true;
    slot->sequence = sequence;
  }
  if (slot->told) settle(*slot, 0);
  slot->reserved = tokens;
  return {};
}

void KvBook::settle(Slot& slot, std::uint32_t tokens) noexcept {
  if (slot.told) slot.pending_commit = tokens;
  slot.committed += tokens;
  slot.reserved = 0;
  slot.written = 0;
  slot.told = false;
}

result<void> KvBook::commit(SequenceId sequence, std::uint32_t tokens) {
  const result<Slot*> found = find_idle(sequence);
  if (!found) return found.error();
  Slot& slot = **found;
  if (tokens > slot.written) {
    return Failure(errc::bad_argument, of_sequence(sequence) + ": commit of " +
                                           std::to_string(tokens) + " but a job has written " +
                                           std::to_string(slot.written));
  }
  settle(slot, tokens);
  return {};
}

result<void> KvBook::rollback(SequenceId sequence) {
  const result<Slot*> found = find_idle(sequence);
  if (!found) return found.error();
  settle(**found, 0);
  return {};
}

result<bool> KvBook::release(SequenceId sequence) {
  Slot* const slot = find(sequence);
  if (slot == nullptr) return Failure(errc::unknown_name, of_sequence(sequence) + " has no slot");
  if (slot->running) {
    slot->released = true;
    return false;
  }
  const bool known = slot->known;
  *slot = Slot{};
  return known;
}

result<KvOrders> KvBook::begin_job(SequenceId sequence, std::uint32_t past, std::uint32_t tokens) {
  const result<Slot*> found = find_idle(sequence);
  if (!found) return found.error();
  Slot& slot = **found;
  if (past != slot.committed) {
    return Failure(errc::bad_argument, of_sequence(sequence) + ": past is " + std::to_string(past) +
                                           " but " + std::to_string(slot.committed) +
                                           " positions are committed");
  }
  if (tokens == 0 || tokens > slot.reserved) {
    return Failure(errc::bad_argument, of_sequence(sequence) + ": a job of " +
                                           std::to_string(tokens) + " tokens but " +
                                           std::to_string(slot.reserved) + " are reserved");
  }
  KvOrders orders;
  orders.commit = slot.pending_commit;
  orders.reserve = slot.reserved;
  orders.slot = static_cast<std::size_t>(&slot - slots_.data());
  slot.running = true;
  return orders;
}

bool KvBook::end_job(std::size_t index, bool told, std::uint32_t written) {
  DUET_ASSERT(index < slots_.size(), index, slots_.size());
  Slot& slot = slots_[index];
  DUET_ASSERT(slot.used && slot.running, index);
  slot.running = false;
  if (slot.released) {
    const bool known = !slot.forgotten && (slot.known || told);
    slot = Slot{};
    return known;
  }
  slot.written = written;
  if (told) {
    slot.known = true;
    slot.told = true;
    slot.pending_commit.reset();
  }
  return false;
}

void KvBook::forget_all() {
  for (Slot& slot : slots_) {
    if (slot.running) {
      slot.released = true;
      slot.forgotten = true;
    } else {
      slot = Slot{};
    }
  }
}

std::uint32_t KvBook::slots_used() const noexcept {
  return static_cast<std::uint32_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.used; }));
}

}   // namespace duet::device
