// kv_pool.hpp: the key/value slots of one model: who holds them and how far they are written.
#pragma once

#include "device/emulator/board_plan.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace duet::device::emulator {

/// Slots are keyed (generation, sequence). A slot under a running job is never given to another
/// sequence: a release then takes effect when the job ends. The first reservation of a newer
/// generation frees all slots of older ones, whose key/values belong to nobody. Not thread-safe.
class KvPool {
 public:
  explicit KvPool(const PoolPlan& plan);

  [[nodiscard]] bool holds(SequenceId sequence) const noexcept {
    return sequence >= first_ && sequence <= last_;
  }

  /// The four calls of the contract. Errors: kv_exhausted, stale_generation, bad_argument,
  /// unknown_name (the sequence holds no slot); all but release: device_busy while a job of it is
  /// in flight.
  result<void> reserve(Generation generation, SequenceId sequence, std::uint32_t tokens);
  /// `tokens` must have been written by a job since the reservation. The rest is given back.
  result<void> commit(Generation generation, SequenceId sequence, std::uint32_t tokens);
  result<void> rollback(Generation generation, SequenceId sequence);
  result<void> release(Generation generation, SequenceId sequence);

  struct JobSlot {
    std::uint32_t slot = 0;
    std::uint32_t committed = 0;
  };
  /// The slot for a job that writes [past, past + tokens), which is then busy. Errors:
  /// stale_generation, kv_exhausted (not reserved), bad_argument (past), device_busy.
  result<JobSlot> begin_job(Generation generation, SequenceId sequence, std::uint32_t past,
                            std::uint32_t tokens);
  /// `written`: the job succeeded, so its positions may be committed.
  void end_job(std::uint32_t slot, std::uint32_t tokens, bool written);

  /// Frees every slot; those under a job when it ends.
  void release_all();

  [[nodiscard]] std::uint32_t slots_total() const noexcept {
    return static_cast<std::uint32_t>(slots_.size());
  }
  [[nodiscard]] std::uint32_t slots_used() const noexcept;
  /// The most that were used at a time.
  [[nodiscard]] std::uint32_t slots_peak() const noexcept { return slots_peak_; }

 private:
  struct Slot {
    bool used = false;
    bool busy = false;       ///< a job may read and write it.
    bool released = false;   ///< to be freed when the job ends; no call finds it any more.
    Generation generation = 0;
    SequenceId sequence = 0;
    std::uint32_t committed = 0;
    std::uint32_t reserved = 0;   ///< positions after the committed ones.
    std::uint32_t written = 0;    ///< of the reserved ones, by the last successful job.
  };

  Slot* find(Generation generation, SequenceId sequence) noexcept;
  /// The slot of a sequence that no job uses, or why not.
  result<Slot*> idle_slot(Generation generation, SequenceId sequence);
  void free_slot(Slot& slot) noexcept;
  void raise_generation(Generation generation) noexcept;

  std::vector<Slot> slots_;
  std::uint32_t slots_peak_ = 0;
  std::uint32_t tokens_per_slot_;
  SequenceId first_;
  SequenceId last_;
  Generation newest_ = 0;
};

}   // namespace duet::device::emulator
