// core.hpp: what a system is inside.
#pragma once

#include "runtime/clock.hpp"
#include "runtime/completion_source.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/slot.hpp"
#include "runtime/detail/type_row.hpp"
#include "runtime/exit_reason.hpp"
#include "runtime/random.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/snapshot.hpp"
#include "runtime/system_options.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace duet::runtime::detail {

class HostService;

/// Why a message never reached a handler.
enum class DeadLetter : std::uint8_t { receiver_gone, refused, expired, superseded, late_reply };
inline constexpr std::size_t dead_letter_reasons = 5;

class Core final : public std::enable_shared_from_this<Core> {
 public:
  Core(boost::asio::any_io_executor executor, SystemOptions options);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  /// After construction: tells the host's context about us.
  void attach();

  /// Begins an actor's life; it owns `actor` from now on. An empty address, and the actor is
  /// destroyed, if the system is stopping or has ended.
  Address spawn(const ActorOptions& options, ActorBase& actor);

  /// The end: nobody enters any more, running slices are waited for, all actors are destroyed and
  /// the seams let go of. Not from inside an activation. Once; further calls do nothing.
  void finish() noexcept;

  void stop(Duration patience, std::function<void(StopReport)> done);
  /// Asks one actor to end. False if it has ended.
  static bool request_stop(const Address& address) noexcept;
  /// Ends one actor by force: a handler actor at its next turn, a behaviour where it waits. False
  /// if it has ended.
  static bool kill(const Address& address, std::exception_ptr why) noexcept;

  void make_ready(Slot& slot) noexcept {
    ThreadState& state = thread_state();
    if (state.ready_of == scheduler_) [[likely]] {
      state.ready->push(slot);
    } else {
      scheduler_->post(slot);
    }
  }
  /// As make_ready() if `woken`, else nothing; without a branch on that where this system's actors
  /// run.
  void make_ready_if(Slot& slot, bool woken) noexcept {
    ThreadState& state = thread_state();
    if (state.ready_of == scheduler_) [[likely]] {
      state.ready->push_if(slot, woken);
    } else if (woken) {
      scheduler_->post(slot);
    }
  }

  /// The time for side records: read once for a few activations.
  [[nodiscard]] TimePoint stamp(ThreadState& state) noexcept {
    if (state.stamps_left == 0) {
      state.stamp = clock_->now();
      state.stamps_left = options_.stamp_activations;
    }
    --state.stamps_left;
    return state.stamp;
  }

  /// Called by a slot whose actor has been destroyed.
  void ended(Slot& slot, std::uint64_t sent, std::uint64_t handled) noexcept;
  void report_failure(Slot& slot, std::uint64_t generation, const ExitReason& reason) noexcept;

  void count(DeadLetter reason) noexcept {
    dead_letters_[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  void count(DeadLetter reason, const TypeRow& row) noexcept {
    count(reason);
    dead_by_type_[row.index()][static_cast<std::size_t>(reason)].fetch_add(
        1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t next_outside_id() noexcept {
    return sent_outside_.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  /// A call to the compute threads; false if all their queues are full.
  [[nodiscard]] bool compute(BlockingCall& call);

  [[nodiscard]] SystemSnapshot snapshot() const;
  /// The living actor of that number, or an empty address.
  [[nodiscard]] Address find(std::uint64_t number) const;
  [[nodiscard]] std::vector<TypeSnapshot> type_snapshots() const;
  [[nodiscard]] ActorSnapshot snapshot(const Slot& slot) const;
  /// Slots of living actors in the order they were spawned, so that nothing depends on which place
  /// an actor got.
  [[nodiscard]] std::vector<Slot*> living() const;

  [[nodiscard]] Scheduler& scheduler() const noexcept { return *scheduler_; }
  [[nodiscard]] Clock& clock() const noexcept { return *clock_; }
  [[nodiscard]] Random& random() const noexcept { return *random_; }
  [[nodiscard]] CompletionSource& completions() const noexcept { return *completions_; }
  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return executor_; }
  [[nodiscard]] Arena& arena() const noexcept { return *arena_; }
  [[nodiscard]] const SystemOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }

 private:
  struct Stopping;
  void complete_stop() noexcept;

  SystemOptions options_;
  boost::asio::any_io_executor executor_;
  HostService* host_ = nullptr;   // null once the context is gone

  std::unique_ptr<Scheduler> own_scheduler_;
  std::unique_ptr<Clock> own_clock_;
  std::unique_ptr<Random> own_random_;
  std::unique_ptr<CompletionSource> own_completions_;
  Scheduler* scheduler_ = nullptr;
  Clock* clock_ = nullptr;
  Random* random_ = nullptr;
  CompletionSource* completions_ = nullptr;

  Arena* arena_ = nullptr;
  std::atomic<std::uint64_t> live_ = 0;
  std::atomic<bool> stop_begun_ = false;
  std::atomic<bool> finished_ = false;
  ShortLock stop_lock_;
  Stopping* stopping_ = nullptr;   // guarded by stop_lock_

  ShortLock lanes_lock_;
  std::vector<std::unique_ptr<CompletionLane>> lanes_;   // compute threads, opened on first use
  std::atomic<std::uint32_t> next_lane_ = 0;

  std::atomic<std::uint64_t> spawned_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::atomic<std::uint64_t> sent_outside_ = 0;
  std::atomic<std::uint64_t> sent_by_dead_ = 0;
  std::atomic<std::uint64_t> handled_by_dead_ = 0;
  using DeadLetters = std::array<std::atomic<std::uint64_t>, dead_letter_reasons>;
  DeadLetters dead_letters_{};
  std::array<DeadLetters, TypeRow::rows_max> dead_by_type_{};
};

}   // namespace duet::runtime::detail
