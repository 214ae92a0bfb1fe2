// slot.hpp: the place of one actor: mailbox, life, side record.
#pragma once

#include "runtime/address.hpp"
#include "runtime/detail/inbox.hpp"
#include "runtime/detail/monitor.hpp"
#include "runtime/detail/observer.hpp"
#include "runtime/detail/side_record.hpp"
#include "runtime/detail/thread_block.hpp"
#include "runtime/detail/thread_state.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/short_lock.hpp"

#include <atomic>
#include <cstdint>

namespace duet::runtime {

class ActorBase;

namespace detail {

class Arena;
class Core;

/// Its memory stays with the process, so that a reference may be used at any time. Generations are
/// odd while an actor lives here and even between two lives.
///
/// Producers touch the first cache line only; the rest belongs to the activation.
class alignas(64) Slot final : public Runnable {
 public:
  Slot(Arena& arena, Slot* next_free) noexcept : arena_(arena), next_free_(next_free) {}

  // Between two lives, with the arena's lock.
  [[nodiscard]] Slot* next_free() const noexcept { return next_free_; }
  void set_next_free(Slot* slot) noexcept { next_free_ = slot; }

  // Any thread that holds the arena's gate or runs an activation of its system.

  [[nodiscard]] std::uint64_t generation() const noexcept {
    return generation_.load(std::memory_order_acquire);
  }

  /// A message without a bound, or a task. False: the life is over, the node is still the caller's.
  [[nodiscard]] bool push(Node& node) noexcept {
    if (generation_.load(std::memory_order_relaxed) != node.generation) return false;
    return push(node, node.ops->lane, false) != Inbox::Push::dead;
  }

  /// A message, for who has just looked at the generation; it is freed if it is not taken.
  [[nodiscard, gnu::always_inline]] errc put(Node& node, Lane lane, bool bounded) noexcept {
    if (lane == Lane::normal) {
      WakeHistory& wakes = thread_state().wakes;
      if (wakes.vary()) return put_branchless(node, bounded);
      const Inbox::Push result = inbox_.try_push(node, bounded);
      if (result == Inbox::Push::queued) {
        wakes.add(false);
        return errc{};
      }
      if (result == Inbox::Push::woke) return woken();
    }
    return put_slowly(node, bounded);
  }
  /// As put(); if the actor was idle and wants it, it then runs right here.
  [[nodiscard]] errc put_and_run(Node& node, Lane lane, bool bounded) noexcept;
  /// Of class latest. It takes the place of one that waits, which is then counted and freed.
  [[nodiscard]] errc put_latest(LatestHeader& node) noexcept;

  [[nodiscard]] Arena& arena() const noexcept { return arena_; }
  [[nodiscard]] std::uint64_t number() const noexcept {
    return number_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const SideRecord& side() const noexcept { return side_; }
  [[nodiscard]] const Inbox& inbox() const noexcept { return inbox_; }
  /// Messages of a lane that were not begun. Its parts are read one after the other: what moves
  /// meanwhile may be missed.
  [[nodiscard]] std::uint32_t urgent_depth() const noexcept {
    return inbox_.urgent() + side_.urgent_depth.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t normal_depth() const noexcept {
    const std::uint32_t taken = side_.others_taken.load(std::memory_order_relaxed);
    const auto others = static_cast<std::int32_t>(inbox_.others() - taken);
    return inbox_.bounded() + static_cast<std::uint32_t>(others > 0 ? others : 0);
  }
  [[nodiscard]] Address parent() const noexcept;
  [[nodiscard]] std::uint64_t sent() const noexcept {
    return sent_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t handled() const noexcept {
    return handled_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool runs_inline() const noexcept {
    return runs_inline_.load(std::memory_order_relaxed);
  }

  /// Its supervisor stops it when the system is stopped.
  [[nodiscard]] bool supervised() const noexcept {
    return supervised_.load(std::memory_order_relaxed);
  }

  // What follows is for the one who holds the activation.

  struct Birth {
    ActorBase* actor;
    std::uint32_t bounded_max;
    bool runs_inline;
    bool supervised;
    Address parent;
    std::uint64_t number;   // the system's running number
  };
  /// Begins a life, active but not scheduled. Returns its generation.
  std::uint64_t open(const Birth& birth, TimePoint now) noexcept;

  /// Ends the life: destroys the actor, drops what was queued, tells the monitors.
  void end() noexcept;

  void run() noexcept override;

  [[nodiscard]] SideRecord& side() noexcept { return side_; }
  [[nodiscard]] ActorBase* actor() const noexcept { return actor_; }

  /// Moves what came to the lists of this activation.
  void take_urgent() noexcept {
    if (inbox_.has(Lane::urgent)) sort_urgent();
  }
  void take_normal() noexcept { static_cast<void>(inbox_.take_normal(normal_)); }
  [[nodiscard]] bool urgent_came() const noexcept { return inbox_.has(Lane::urgent); }

  [[nodiscard]] Node* next_task() noexcept { return tasks_.pop(); }
  [[nodiscard]] bool has_task() const noexcept { return !tasks_.empty(); }

  /// The next message that may still be started, or null. Takes from the inbox as needed. Whoever
  /// gets it destroys what it carries; the node itself lives until the next call, and is freed by
  /// us.
  [[nodiscard, gnu::always_inline]] MessageHeader* next_message() noexcept {
    if (urgent_.empty() && normal_.empty()) [[likely]] {
      const Inbox::Front front = inbox_.front();
      if (front.node != nullptr) return take_usual(*front.node, front.spent);
      if (inbox_.is_dry(front)) return nullptr;
    }
    return next_message_slowly();
  }
  [[nodiscard]] bool has_message() const noexcept {
    return !urgent_.empty() || !normal_.empty() || inbox_.has(Lane::normal);
  }

  /// A message of our own making, before the normal ones.
  void inject(MessageHeader& message) noexcept {
    urgent_.push(message);
    side_.urgent_came(1);
  }

  [[nodiscard]] Inbox::Idle try_idle() noexcept { return inbox_.try_idle(); }

  /// Before `node` is handled.
  void observe(const Node& node) const noexcept {
    ThreadState& state = thread_state();
    ++state.handled;
    if (state.observer != nullptr) [[unlikely]]
      state.observer->handling(*this, node);
  }

  /// Calls `visit(node)` for what lies here, in the order in which it is handled if nothing more
  /// comes. For whom nobody runs meanwhile: a simulation between two activations.
  template <typename F>
  void visit_queued(F visit) {
    if (inbox_.active()) {   // an idle one has nothing in its inbox but the mark
      take_urgent();
      take_normal();
    }
    for (const NodeList* const list : {&tasks_, &urgent_, &normal_}) list->visit(visit);
  }

  /// Before `message` is handled: shown, counted, observed.
  [[gnu::always_inline]] void handling(const MessageHeader& message) noexcept {
    const NodeOps& ops = *message.ops;
    side_.set_message(ops.type);
    handled_.store(handled_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    thread_state().block->count_handled(*ops.row);
    observe(message);
  }
  [[nodiscard]] std::uint64_t next_sent() noexcept {
    const std::uint64_t number = sent_.load(std::memory_order_relaxed) + 1;
    sent_.store(number, std::memory_order_relaxed);
    return number;
  }
  /// Who watches this life.
  [[nodiscard]] MonitorList& monitors() noexcept { return monitors_; }

 private:
  inline void run_here(ThreadState& state) noexcept;
  [[gnu::noinline, gnu::cold]] void run_inside_another(ThreadState& state) noexcept;
  Inbox::Push push(Node& node, Lane lane, bool bounded) noexcept;
  [[nodiscard]] errc put_slowly(Node& node, bool bounded) noexcept;
  /// As put() to the normal lane, without a branch on whether the receiver is idle.
  [[nodiscard]] errc put_branchless(Node& node, bool bounded) noexcept;
  /// A message woke the actor, so we hold its activation. Says that all is well.
  [[nodiscard]] errc woken() noexcept;
  [[nodiscard]] errc undelivered(Node& node, Inbox::Push why) noexcept;
  void make_ready() noexcept;
  void sort_urgent() noexcept;
  [[nodiscard]] inline bool is_peak(const Node& front) noexcept;
  /// What is usual: from the inbox, of this life, without a deadline.
  [[nodiscard]] MessageHeader* take_usual(Node& front, Node* spent) noexcept;
  [[nodiscard]] MessageHeader* next_message_slowly() noexcept;
  /// Of the lists, or else of the inbox.
  [[nodiscard]] Node* next_node() noexcept;
  static void add(std::atomic<std::uint32_t>& count, std::uint32_t by) noexcept {
    count.store(count.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  void count_taken(const NodeOps& ops) noexcept {
    if (ops.message_class == MessageClass::bounded) {
      inbox_.taken_bounded();
    } else if (ops.lane == Lane::normal) {
      add(side_.others_taken, 1);
    }
  }
  [[nodiscard]] bool admit(MessageHeader& message) noexcept;
  void take_latest(LatestHeader& message) noexcept;
  /// Destroys what it carries; false.
  bool refuse(MessageHeader& message, errc reason) noexcept;
  void forget_latest(LatestHeader& message) noexcept;

  // First line: what senders touch.
  Inbox inbox_;
  std::atomic<std::uint64_t> generation_ = 0;
  Arena& arena_;

  // Second line: the activation's.
  union {
    Slot* next_free_;   // between two lives
    ActorBase* actor_;
  };
  NodeList normal_;
  NodeList urgent_;
  NodeList tasks_;
  MonitorList monitors_;
  LatestHeader* latest_ = nullptr;   // guarded by latest_lock_
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> handled_ = 0;

  // Third line, and the rest: inspection.
  alignas(64) SideRecord side_;
  std::atomic<Slot*> parent_ = nullptr;
  std::atomic<std::uint64_t> parent_generation_ = 0;
  ShortLock latest_lock_;
  std::atomic<bool> runs_inline_ = false;
  std::atomic<bool> supervised_ = false;
  std::atomic<std::uint64_t> number_ = 0;
};

static_assert(sizeof(Slot) == 256, "the memory of an idle actor is a promise");

}   // namespace detail
}   // namespace duet::runtime
