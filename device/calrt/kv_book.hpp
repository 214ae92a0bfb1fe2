// kv_book.hpp: the host's account of one session's key/value slots. Pure; no runtime, no lock.
#pragma once

#include "device/contract/types.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace duet::device {

struct KvBookLimits {
  std::uint32_t slots = 0;
  std::uint32_t tokens_per_slot = 0;
  SequenceId sequence_first = 0;
  SequenceId sequence_last = 0;
};

/// What a job must tell the runtime about its sequence before it is submitted.
struct KvOrders {
  std::optional<std::uint32_t> commit;   ///< positions; 0 is a rollback.
  std::uint32_t reserve = 0;
  std::size_t slot = 0;   ///< for end_job: after a raised generation an id may run twice.
};

/// reserve → job → commit or rollback, one job of a sequence at a time. Nothing is
/// allocated after construction.
class KvBook {
 public:
  explicit KvBook(KvBookLimits limits);

  /// The errors are those of Device::kv_*. A reserve after a job that was not committed rolls it
  /// back.
  result<void> reserve(SequenceId sequence, std::uint32_t tokens);
  result<void> commit(SequenceId sequence, std::uint32_t tokens);
  result<void> rollback(SequenceId sequence);
  /// True: the slot is free now and the runtime must be told. False: it is freed by end_job.
  result<bool> release(SequenceId sequence);

  /// Errors: unknown_name, device_busy, bad_argument (`past` is not what is committed, more than is
  /// reserved).
  result<KvOrders> begin_job(SequenceId sequence, std::uint32_t past, std::uint32_t tokens);
  /// `told`: the runtime carried out the orders. `written`: positions that may now be committed, 0
  /// after a failure. True: a release waited for this job; the runtime must be told.
  [[nodiscard]] bool end_job(std::size_t slot, bool told, std::uint32_t written);

  /// A raised generation: every slot is free but those of running jobs, which end_job frees without
  /// telling anyone.
  void forget_all();

  [[nodiscard]] std::uint32_t slots_used() const noexcept;

 private:
  struct Slot {
    bool used = false;
    bool running = false;
    bool released = false;    // while running
    bool forgotten = false;   // by a raised generation; the runtime has freed it itself
    bool known = false;       // to the runtime
    SequenceId sequence = 0;
    std::uint32_t committed = 0;
    std::uint32_t reserved = 0;
    std::uint32_t written = 0;   // by a job since the reservation: what may be committed
    bool told = false;           // the runtime knows the reservation
    std::optional<std::uint32_t> pending_commit;   // the runtime must be told before the next job
  };
  [[nodiscard]] Slot* find(SequenceId sequence) noexcept;
  result<Slot*> find_idle(SequenceId sequence);
  static void settle(Slot& slot, std::uint32_t tokens) noexcept;

  KvBookLimits limits_;
  std::vector<Slot> slots_;
};

}   // namespace duet::device
