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

  /// False: the life is over, the node is still the caller's.
  [[nodiscard]] bool push(Node& node) noexcept {
    if (generation_.load(std::memory_order_relaxed) != node.generation) return false;
    const Inbox::Push result = inbox_.push(node, node.ops->lane);
    if (result == Inbox::Push::woke) make_ready();
    return result != Inbox::Push::dead;
  }

  /// Of class latest. `superseded` is what came out: the node itself, holding the older content, or
  /// null if the message was queued.
  [[nodiscard]] bool push_latest(MessageHeader& node, Node*& superseded) noexcept;

  enum class Reserve : std::uint8_t { reserved, full, dead };
  /// Room for one bounded message; exact, also among racing senders.
  [[nodiscard]] Reserve reserve_bounded(std::uint64_t generation) noexcept;

  [[nodiscard]] Arena& arena() const noexcept { return arena_; }
  [[nodiscard]] std::uint64_t number() const noexcept {
    return number_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const SideRecord& side() const noexcept { return side_; }
  [[nodiscard]] const Inbox& inbox() const noexcept { return inbox_; }
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

  /// As push(); if the actor was idle and wants it, it then runs right here.
  [[nodiscard]] bool push_and_run(Node& node) noexcept;

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
  void take_normal() noexcept {
    if (!inbox_.has(Lane::normal)) return;
    const std::uint32_t count = normal_.append_reversed(inbox_.take(Lane::normal));
    side_.stashed(side_.normal_depth, side_.normal_peak, count);
  }
  [[nodiscard]] bool urgent_came() const noexcept { return inbox_.has(Lane::urgent); }

  [[nodiscard]] Node* next_task() noexcept { return tasks_.pop(); }
  [[nodiscard]] bool has_task() const noexcept { return !tasks_.empty(); }

  /// The next message that may still be started, or null. Takes from the inbox as needed.
  [[nodiscard]] MessageHeader* next_message() noexcept;
  [[nodiscard]] bool has_message() const noexcept {
    return !urgent_.empty() || !normal_.empty() || inbox_.has(Lane::normal);
  }

  /// A message of our own making, before the normal ones.
  void inject(MessageHeader& message) noexcept {
    urgent_.push(message);
    side_.stashed(side_.urgent_depth, side_.urgent_peak, 1);
  }

  [[nodiscard]] Inbox::Idle try_idle() noexcept { return inbox_.try_idle(); }

  /// Before `node` is handled.
  void observe(const Node& node) const noexcept {
    Observer* const observer = thread_state().observer;
    if (observer != nullptr) [[unlikely]]
      observer->handling(*this, node);
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
  void handling(const MessageHeader& message) noexcept {
    side_.set_message(message.ops->type);
    handled_.store(handled_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    thread_state().block->count_handled(*message.ops->row);
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
  void make_ready() noexcept;
  void sort_urgent() noexcept;
  [[nodiscard]] bool admit(MessageHeader& message) noexcept;
  void forget_latest(MessageHeader& message) noexcept;

  // First line: what senders touch.
  Inbox inbox_;
  std::atomic<std::uint64_t> generation_ = 0;
  std::atomic<std::uint64_t> bounded_ = 0;   // generation's low half, then messages ever reserved
  std::atomic<std::uint32_t> bounded_taken_ = 0;
  std::atomic<std::uint32_t> bounded_max_ = 0;
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
  MessageHeader* latest_ = nullptr;   // guarded by latest_lock_
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> handled_ = 0;

  // The rest: inspection.
  SideRecord side_;
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
