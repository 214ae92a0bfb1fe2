// inbox.hpp: the lock-free mailbox that is also the actor's strand.
#pragma once

#include "runtime/assert.hpp"
#include "runtime/detail/await_link.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/select.hpp"
#include "runtime/limits.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace duet::runtime::detail {

/// Two lanes that any thread pushes to and one activation takes from. The normal lane is a queue
/// linked forwards whose last node its word names; the urgent lane is a stack, taken whole. The
/// normal word carries the idle mark where there is no node: the push that finds it makes the actor
/// ready, and only that one, so an actor never runs on two threads at once.
///
/// The upper 16 bits of the normal word count the bounded messages ever pushed, modulo 65 536, so
/// that one compare-exchange decides about room and place; those of the urgent word count its nodes
/// (they stop at 65 535). A push to the normal lane has a second step: the node before, or
/// `first_`, is made to point to the new one. A reader that comes in between waits for it
/// (await_link).
///
/// A taken node stays in the queue, spent, until its successor is taken or the actor becomes idle:
/// so a handled message costs its receiver no exchange of its own. The header of a spent node lives
/// on; what the message carried is its handler's to destroy.
class Inbox {
 public:
  enum class Push : std::uint8_t { queued, woke, dead, full, contended };   // up to `woke`: taken
  enum class Idle : std::uint8_t {
    idle,       ///< The activation is over: nothing of the actor may be touched any more.
    busy,       ///< Something came; go on.
    reclaimed   ///< Idle for a moment, then taken back: make the slot ready again, touch nothing
                ///< else.
  };

  /// Any thread. `woke`: the caller holds the activation now. After `dead` and `full` the node is
  /// still the caller's.
  Push push(Node& node, Lane lane, bool bounded) noexcept {
    return lane == Lane::normal ? push_normal(node, bounded) : push_urgent(node);
  }
  /// As push() to the normal lane if that is simple now, else `contended`: then call push().
  [[gnu::always_inline]] Push try_push(Node& node, bool bounded) noexcept {
    std::uint64_t head = 0;
    if (!become_last(node, head, bounded)) [[unlikely]]
      return Push::contended;
    return link(node, head, bounded);
  }
  /// As try_push(), but without a branch on whether the result is `queued` or `woke`.
  [[gnu::always_inline]] Push try_push_branchless(Node& node, bool bounded) noexcept {
    std::uint64_t head = 0;
    if (!become_last(node, head, bounded)) [[unlikely]]
      return Push::contended;
    if (!bounded) others_.fetch_add(1, std::memory_order_relaxed);
    Node* const before = node_of(head);
    static_assert(std::is_standard_layout_v<Node> && offsetof(Node, next) == 0);
    auto* const next = reinterpret_cast<std::atomic<Node*>*>(before);   // null, if it is
    select(before != nullptr, next, &first_)->store(&node, std::memory_order_release);
    return is_idle(head) ? Push::woke : Push::queued;
  }

  /// Nodes of the urgent lane.
  [[nodiscard]] std::uint32_t urgent() const noexcept {
    return static_cast<std::uint32_t>(urgent_.load(std::memory_order_relaxed) >> count_shift);
  }
  /// Bounded messages that were not taken yet.
  [[nodiscard]] std::uint32_t bounded() const noexcept {
    const std::uint16_t taken = taken_.load(std::memory_order_acquire);   // before what was pushed
    const std::uint64_t head = normal_.load(std::memory_order_relaxed);
    return is_dead(head) ? 0 : distance(head, taken);
  }
  /// Messages without a bound that were ever pushed to the normal lane, modulo 2^32.
  [[nodiscard]] std::uint32_t others() const noexcept {
    return others_.load(std::memory_order_relaxed);
  }

  /// True while an activation is due or running.
  [[nodiscard]] bool active() const noexcept {
    const std::uint64_t mark = normal_.load(std::memory_order_relaxed) & address_mask;
    return mark != idle_mark && mark != dead_mark;
  }

  // What follows is for the one who holds the activation.

  [[nodiscard]] bool has(Lane lane) const noexcept {
    if (lane == Lane::urgent) return urgent_.load(std::memory_order_relaxed) != 0;
    const Node* const last = node_of(normal_.load(std::memory_order_relaxed));
    return last != nullptr && last != resident();
  }

  /// Whether something was pushed to the normal lane since the call before, but for rare chances.
  [[nodiscard]] bool moved(std::uint16_t& before) const noexcept {
    const auto now = static_cast<std::uint16_t>(normal_.load(std::memory_order_relaxed) >> 6U);
    return std::exchange(before, now) != now;
  }
  /// Of the normal lane.
  [[nodiscard]] bool is_last(const Node& node) const noexcept {
    return node_of(normal_.load(std::memory_order_relaxed)) == &node;
  }

  /// The oldest of the normal lane.
  struct Front {
    Node* node;    // null if there is none, or if it cannot be seen yet
    Node* spent;   // the one that was taken before it
  };
  [[nodiscard, gnu::always_inline]] Front front() const noexcept {
    Node* const first = first_.load(std::memory_order_acquire);
    if (!is_spent(first)) return {first, nullptr};
    Node* const before = without_mark(first);
    return {before->next.load(std::memory_order_acquire), before};
  }
  /// Of what front() said, if it has no node: whether nothing is on its way either.
  [[nodiscard]] bool is_dry(const Front& oldest) const noexcept {
    const std::uint64_t last = normal_.load(std::memory_order_relaxed) & address_mask;
    return last <= dead_mark || reinterpret_cast<const Node*>(last) == oldest.spent;
  }
  /// Takes what front() said.
  [[gnu::always_inline]] void spend(Node& front, Node* spent_before) noexcept {
    first_.store(with_mark(front), std::memory_order_relaxed);
    __builtin_prefetch(front.after());   // comes while this one is handled
    if (spent_before != nullptr) free_node(*spent_before);
  }
  /// Takes the oldest of the normal lane, or null.
  [[nodiscard]] Node* pop() noexcept {
    Front oldest = front();
    if (oldest.node == nullptr) {
      if (is_dry(oldest)) return nullptr;
      oldest.node = await_link(oldest.spent == nullptr ? first_ : oldest.spent->next);
    }
    spend(*oldest.node, oldest.spent);
    return oldest.node;
  }

  /// Takes the rest of the normal lane, so that the actor may become idle although it leaves
  /// messages for later. False: there is nothing.
  [[nodiscard]] bool take_normal(NodeList& list) noexcept {
    if (!has(Lane::normal)) return false;
    Node* first = nullptr;
    Node* last = nullptr;
    std::uint64_t word = normal_.load(std::memory_order_relaxed);
    take_rest(first, last, [&] {
      while (!normal_.compare_exchange_weak(word, word & ~address_mask, std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {
      }
      return node_of(word);
    });
    list.append(*first, *last);
    return true;
  }

  /// All nodes of the urgent lane, newest first.
  [[nodiscard]] Node* take_urgent() noexcept {
    return node_of(urgent_.exchange(0, std::memory_order_acquire));
  }

  /// A bounded message was taken, to be begun or to be refused.
  void taken_bounded() noexcept {
    taken_.store(static_cast<std::uint16_t>(taken_.load(std::memory_order_relaxed) + 1),
                 std::memory_order_release);
  }

  [[nodiscard, gnu::always_inline]] Idle try_idle() noexcept {
    Node* const first = first_.load(std::memory_order_relaxed);
    if (first != nullptr && !is_spent(first)) return Idle::busy;
    Node* const last = without_mark(first);
    const auto address = reinterpret_cast<std::uint64_t>(last);
    std::uint64_t head = normal_.load(std::memory_order_relaxed);
    if ((head & address_mask) != address) return Idle::busy;
    // Before the mark, because who finds the mark writes it.
    if (last != nullptr) first_.store(nullptr, std::memory_order_relaxed);
    while (!normal_.compare_exchange_weak(head, (head & ~address_mask) | idle_mark,
                                          std::memory_order_seq_cst, std::memory_order_relaxed)) {
      if ((head & address_mask) == address) continue;
      if (last != nullptr) first_.store(first, std::memory_order_relaxed);
      return Idle::busy;
    }
    // An urgent push that did not see the mark must be seen here: both sides write first, then
    // look.
    Idle idle = Idle::idle;
    if (urgent_.load(std::memory_order_seq_cst) != 0 && wake()) [[unlikely]]
      idle = Idle::reclaimed;
    if (last != nullptr) free_node(*last);
    return idle;
  }

  /// A new life begins, active and empty, with room for `bound` bounded messages.
  void open(std::uint32_t bound) noexcept {
    DUET_ASSERT(bound > 0 && bound <= limits::bounded_messages_max, bound);
    bound_.store(static_cast<std::uint16_t>(bound), std::memory_order_relaxed);
    taken_.store(0, std::memory_order_relaxed);
    first_.store(nullptr, std::memory_order_relaxed);
    urgent_.store(0, std::memory_order_release);
    normal_.store(0, std::memory_order_release);
  }

  /// A life ends; what was queued is left in `urgent` and `normal`. Once that is gone, call
  /// forget_others().
  void close(NodeList& urgent, NodeList& normal) noexcept {
    urgent.append_reversed(node_of(urgent_.exchange(dead_mark, std::memory_order_seq_cst)));
    Node* first = nullptr;
    Node* last = nullptr;
    take_rest(first, last,
              [this] { return node_of(normal_.exchange(dead_mark, std::memory_order_seq_cst)); });
    if (first != nullptr) normal.append(*first, *last);
  }

  /// Nobody counts any more.
  void forget_others() noexcept { others_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t idle_mark = 1;
  static constexpr std::uint64_t dead_mark = 2;
  static constexpr unsigned count_shift = 48;
  static constexpr std::uint64_t count_one = 1ULL << count_shift;
  static constexpr std::uint64_t address_mask = count_one - 1;
  static constexpr std::uintptr_t spent_mark = 1;   // in first_: the node was taken

  [[nodiscard]] static Node* node_of(std::uint64_t head) noexcept {
    const std::uint64_t address = head & address_mask;
    if (address <= dead_mark) return nullptr;
    return reinterpret_cast<Node*>(address);
  }

  [[nodiscard]] static bool is_dead(std::uint64_t head) noexcept {
    return (head & address_mask) == dead_mark;
  }
  [[nodiscard]] static bool is_idle(std::uint64_t head) noexcept {
    return (head & address_mask) == idle_mark;
  }

  /// The taken node that is still in the queue, or null.
  [[nodiscard]] const Node* resident() const noexcept {
    Node* const first = first_.load(std::memory_order_relaxed);
    return is_spent(first) ? without_mark(first) : nullptr;
  }

  [[nodiscard]] static bool is_spent(const Node* first) noexcept {
    return (reinterpret_cast<std::uintptr_t>(first) & spent_mark) != 0;
  }
  [[nodiscard]] static Node* with_mark(Node& node) noexcept {
    return reinterpret_cast<Node*>(reinterpret_cast<std::uintptr_t>(&node) | spent_mark);
  }
  [[nodiscard]] static Node* without_mark(Node* first) noexcept {
    return reinterpret_cast<Node*>(reinterpret_cast<std::uintptr_t>(first) & ~spent_mark);
  }

  static std::uint16_t distance(std::uint64_t head, std::uint16_t taken) noexcept {
    return static_cast<std::uint16_t>((head >> count_shift) - taken);
  }
  [[nodiscard, gnu::always_inline]] bool has_room(std::uint64_t head) const noexcept {
    // A sender that knows of a handled message, by its answer for instance, sees it taken here.
    const std::uint16_t taken = taken_.load(std::memory_order_acquire);
    return distance(head, taken) < bound_.load(std::memory_order_relaxed);
  }
  /// Whether there is no room for a bounded message. A refusal is exact: an old value of the word
  /// is read again. A room is there if the word still has the value of `head`, as an exchange says.
  [[gnu::noinline]] bool is_full(std::uint64_t& head) const noexcept {
    do {
      const std::uint64_t before = std::exchange(head, normal_.load(std::memory_order_acquire));
      if (is_dead(head) || (before == head && !has_room(head))) return true;
    } while (!has_room(head));
    return false;
  }

  /// What was not taken of the normal lane. `detach()` leaves the queue without nodes and returns
  /// the last one.
  template <typename F>
  void take_rest(Node*& first, Node*& last, F detach) noexcept {
    Node* begin = first_.load(std::memory_order_acquire);
    if (begin == nullptr && node_of(normal_.load(std::memory_order_relaxed)) != nullptr) {
      begin = await_link(first_);
    }
    // Before the queue is empty, because whoever pushes to an empty one writes it.
    if (begin != nullptr) first_.store(nullptr, std::memory_order_relaxed);
    last = detach();
    // Came meanwhile. It is dead now, so that no other one follows.
    if (begin == nullptr && last != nullptr) begin = await_link(first_);
    Node* const node = without_mark(begin);
    if (!is_spent(begin)) {
      first = node;
    } else {
      first = last == node ? nullptr : await_link(node->next);
      free_node(*node);
    }
  }

  /// From idle to active; false if it is not idle.
  [[gnu::noinline]] bool wake() noexcept {
    std::uint64_t head = normal_.load(std::memory_order_seq_cst);
    while ((head & address_mask) == idle_mark) {
      if (normal_.compare_exchange_weak(head, head & ~address_mask, std::memory_order_seq_cst,
                                        std::memory_order_seq_cst)) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] static std::uint64_t with_last(std::uint64_t head, const Node& node,
                                               bool bounded) noexcept {
    const std::uint64_t count = (head & ~address_mask) + (bounded ? count_one : 0);
    return count | reinterpret_cast<std::uint64_t>(&node);
  }

  /// The first step, after `head`. False if that is not simple now.
  [[gnu::always_inline]] bool become_last(Node& node, std::uint64_t& head, bool bounded) noexcept {
    head = normal_.load(std::memory_order_acquire);
    if (is_dead(head) || (bounded && !has_room(head))) [[unlikely]]
      return false;
    // A copy, so that what follows does not depend on what the exchange returns: the processor goes
    // on meanwhile.
    std::uint64_t expected = head;
    return normal_.compare_exchange_strong(expected, with_last(head, node, bounded),
                                           std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  Push push_normal(Node& node, bool bounded) noexcept {
    std::uint64_t head = normal_.load(std::memory_order_acquire);
    do {
      if (is_dead(head)) return Push::dead;
      if (bounded && !has_room(head) && is_full(head)) {
        return is_dead(head) ? Push::dead : Push::full;
      }
    } while (!normal_.compare_exchange_weak(head, with_last(head, node, bounded),
                                            std::memory_order_acq_rel, std::memory_order_acquire));
    return link(node, head, bounded);
  }

  /// The second step, after `head`.
  [[gnu::always_inline]] Push link(Node& node, std::uint64_t head, bool bounded) noexcept {
    // Counted first: once it is linked, the receiver's life may end and another begin.
    if (!bounded) others_.fetch_add(1, std::memory_order_relaxed);
    Node* const before = node_of(head);
    if (before != nullptr) {
      before->next.store(&node, std::memory_order_release);
      return Push::queued;
    }
    first_.store(&node, std::memory_order_release);
    return is_idle(head) ? Push::woke : Push::queued;
  }

  Push push_urgent(Node& node) noexcept {
    std::uint64_t head = urgent_.load(std::memory_order_relaxed);
    std::uint64_t count = 0;
    do {
      if (is_dead(head)) return Push::dead;
      node.set_after(node_of(head));
      count = head & ~address_mask;
      if (count != ~address_mask) count += count_one;
    } while (!urgent_.compare_exchange_weak(head, count | reinterpret_cast<std::uint64_t>(&node),
                                            std::memory_order_seq_cst, std::memory_order_relaxed));
    return wake() ? Push::woke : Push::queued;
  }

  std::atomic<std::uint64_t> normal_ = dead_mark;
  std::atomic<std::uint64_t> urgent_ = dead_mark;
  std::atomic<Node*> first_ = nullptr;     // where the normal lane begins; may bear spent_mark
  std::atomic<std::uint16_t> taken_ = 0;   // bounded messages ever taken, modulo 65 536
  std::atomic<std::uint16_t> bound_ = 0;
  std::atomic<std::uint32_t> others_ = 0;   // others that were pushed to the normal lane
};

static_assert(sizeof(void*) == 8, "head words keep a count above a 48-bit address");

}   // namespace duet::runtime::detail
