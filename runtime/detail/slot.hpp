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
    return push_to(node, node.ops->lane);
  }
  /// As push(), for who knows the lane and has just looked at the generation.
  [[nodiscard, gnu::always_inline]] bool push_to(Node& node, Lane lane) noexcept {
    const Inbox::Push result = inbox_.push(node, lane);
    if (result == Inbox::Push::woke) make_ready();
    return result != Inbox::Push::dead;
  }

  /// Of class latest. `superseded` is what came out: the node itself, holding the older content, or
  /// null if the message was queued.
  [[nodiscard]] bool push_latest(LatestHeader& node, Node*& superseded) noexcept;

  enum class Reserve : std::uint8_t { reserved, full, dead };
  /// Room for one bounded message; exact, also among racing senders.
  [[nodiscard, gnu::always_inline]] Reserve reserve_bounded(std::uint64_t generation) noexcept {
    std::uint64_t before = bounded_.load(std::memory_order_relaxed);
    for (;;) {
      if (before >> 32U != (generation & low_half)) return Reserve::dead;
      const auto pushed = static_cast<std::uint32_t>(before);
      // A sender that knows of a handled message, by its answer for instance, sees it taken here.
      if (pushed - bounded_taken_.load(std::memory_order_acquire) >=
          bounded_max_.load(std::memory_order_relaxed)) {
        return Reserve::full;
      }
      const std::uint64_t after = (before & ~low_half) | static_cast<std::uint32_t>(pushed + 1);
      if (bounded_.compare_exchange_weak(before, after, std::memory_order_relaxed)) {
        return Reserve::reserved;
      }
    }
  }

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
    side_.stashed(side_.normal_depth, side_.normal_peak, count, count);
  }
  [[nodiscard]] bool urgent_came() const noexcept { return inbox_.has(Lane::urgent); }

  [[nodiscard]] Node* next_task() noexcept { return tasks_.pop(); }
  [[nodiscard]] bool has_task() const noexcept { return !tasks_.empty(); }

  /// The next message that may still be started, or null. Takes from the inbox as needed.
  [[nodiscard]] MessageHeader* next_message() noexcept {
    for (;;) {
      Node* node = nullptr;
      if (!urgent_.empty()) [[unlikely]] {
        node = urgent_.pop();
        one_less(side_.urgent_depth);
      } else if (!normal_.empty()) {
        node = normal_.pop();
        one_less(side_.normal_depth);
      } else if (inbox_.has(Lane::normal)) {
        node = take_first_normal();
      } else {
        return nullptr;
      }
      auto& message = static_cast<MessageHeader&>(*node);
      if (admit(message)) [[likely]]
        return &message;
    }
  }
  [[nodiscard]] bool has_message() const noexcept {
    return !urgent_.empty() || !normal_.empty() || inbox_.has(Lane::normal);
  }

  /// A message of our own making, before the normal ones.
  void inject(MessageHeader& message) noexcept {
    urgent_.push(message);
    side_.stashed(side_.urgent_depth, side_.urgent_peak, 1, 1);
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
  static constexpr std::uint64_t low_half = 0xffffffffULL;

  void make_ready() noexcept;
  void sort_urgent() noexcept;
  static void one_less(std::atomic<std::uint32_t>& depth) noexcept {
    depth.store(depth.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  /// The oldest of those in the inbox, where there are some. A single one never enters the list.
  [[nodiscard]] Node* take_first_normal() noexcept {
    Node* const newest = inbox_.take(Lane::normal);
    if (newest->next == nullptr) {
      side_.stashed(side_.normal_depth, side_.normal_peak, 0, 1);
      return newest;
    }
    const std::uint32_t count = normal_.append_reversed(newest);
    side_.stashed(side_.normal_depth, side_.normal_peak, count - 1, count);
    return normal_.pop();
  }
  [[nodiscard]] bool admit(MessageHeader& message) noexcept {
    const NodeOps& ops = *message.ops;
    if (message.generation != generation_.load(std::memory_order_relaxed)) [[unlikely]]
      return refuse(message, errc::receiver_gone);
    if (ops.message_class == MessageClass::bounded) {
      bounded_taken_.store(bounded_taken_.load(std::memory_order_relaxed) + 1,
                           std::memory_order_release);
    } else if (ops.message_class == MessageClass::latest) {
      take_latest(static_cast<LatestHeader&>(message));
    }
    return ops.deadline == nullptr || in_time(message);
  }
  void take_latest(LatestHeader& message) noexcept;
  /// False: its deadline has passed, and it is freed.
  [[nodiscard]] bool in_time(MessageHeader& message) noexcept;
  /// Frees it; false.
  bool refuse(MessageHeader& message, errc reason) noexcept;
  void forget_latest(LatestHeader& message) noexcept;

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
  LatestHeader* latest_ = nullptr;   // guarded by latest_lock_
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
