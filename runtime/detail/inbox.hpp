// inbox.hpp: the lock-free mailbox that is also the actor's strand.
#pragma once

#include "runtime/assert.hpp"
#include "runtime/detail/node.hpp"

#include <atomic>
#include <cstdint>

namespace duet::runtime::detail {

/// Two stacks that any thread pushes to and one activation takes whole. The head of the normal lane
/// carries the idle mark: the push that finds it makes the actor ready, and only that one, so an
/// actor never runs on two threads at once. A head word is an address, or a mark, with the number
/// of nodes in its upper 16 bits (they stop at 65535).
class Inbox {
 public:
  enum class Push : std::uint8_t { queued, woke, dead };
  enum class Idle : std::uint8_t {
    idle,       ///< The activation is over: nothing of the actor may be touched any more.
    busy,       ///< Something came; go on.
    reclaimed   ///< Idle for a moment, then taken back: make the slot ready again, touch nothing
                ///< else.
  };

  /// Any thread.
  Push push(Node& node, Lane lane) noexcept {
    return lane == Lane::normal ? push_normal(node) : push_urgent(node);
  }

  [[nodiscard]] std::uint32_t count(Lane lane) const noexcept {
    const std::uint64_t head =
        (lane == Lane::normal ? normal_ : urgent_).load(std::memory_order_relaxed);
    return static_cast<std::uint32_t>(head >> count_shift);
  }

  /// True while an activation is due or running.
  [[nodiscard]] bool active() const noexcept {
    const std::uint64_t mark = normal_.load(std::memory_order_relaxed) & address_mask;
    return mark != idle_mark && mark != dead_mark;
  }

  // What follows is for the one who holds the activation.

  [[nodiscard]] bool has(Lane lane) const noexcept {
    return (lane == Lane::normal ? normal_ : urgent_).load(std::memory_order_relaxed) != 0;
  }

  /// All nodes of a lane, newest first.
  [[nodiscard]] Node* take(Lane lane) noexcept {
    auto& head = lane == Lane::normal ? normal_ : urgent_;
    return node_of(head.exchange(0, std::memory_order_acquire));
  }

  [[nodiscard]] Idle try_idle() noexcept {
    std::uint64_t empty = 0;
    if (!normal_.compare_exchange_strong(empty, idle_mark, std::memory_order_seq_cst,
                                         std::memory_order_relaxed)) {
      return Idle::busy;
    }
    // An urgent push that did not see the mark must be seen here: both sides write first, then
    // look.
    if (urgent_.load(std::memory_order_seq_cst) == 0) return Idle::idle;
    std::uint64_t idle = idle_mark;
    return normal_.compare_exchange_strong(idle, 0, std::memory_order_seq_cst,
                                           std::memory_order_relaxed)
               ? Idle::reclaimed
               : Idle::idle;
  }

  /// A new life begins, active and empty.
  void open() noexcept {
    urgent_.store(0, std::memory_order_release);
    normal_.store(0, std::memory_order_release);
  }

  /// A life ends; what was queued is left in `urgent` and `normal`, newest first.
  void close(Node*& urgent, Node*& normal) noexcept {
    urgent = node_of(urgent_.exchange(dead_mark, std::memory_order_seq_cst));
    normal = node_of(normal_.exchange(dead_mark, std::memory_order_seq_cst));
  }

 private:
  static constexpr std::uint64_t idle_mark = 1;
  static constexpr std::uint64_t dead_mark = 2;
  static constexpr unsigned count_shift = 48;
  static constexpr std::uint64_t count_one = 1ULL << count_shift;
  static constexpr std::uint64_t address_mask = count_one - 1;

  [[nodiscard]] static Node* node_of(std::uint64_t head) noexcept {
    const std::uint64_t address = head & address_mask;
    if (address == idle_mark || address == dead_mark) return nullptr;
    return reinterpret_cast<Node*>(address);
  }

  [[nodiscard]] static std::uint64_t pushed(std::uint64_t head, Node& node) noexcept {
    node.next = node_of(head);
    std::uint64_t count = head & ~address_mask;
    if (count != ~address_mask) count += count_one;
    return count | reinterpret_cast<std::uint64_t>(&node);
  }

  [[gnu::always_inline]] Push push_normal(Node& node) noexcept {
    std::uint64_t head = normal_.load(std::memory_order_relaxed);
    for (;;) {
      if ((head & address_mask) == dead_mark) return Push::dead;
      if (normal_.compare_exchange_weak(head, pushed(head, node), std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
        return (head & address_mask) == idle_mark ? Push::woke : Push::queued;
      }
    }
  }

  Push push_urgent(Node& node) noexcept {
    std::uint64_t head = urgent_.load(std::memory_order_relaxed);
    do {
      if ((head & address_mask) == dead_mark) return Push::dead;
    } while (!urgent_.compare_exchange_weak(head, pushed(head, node), std::memory_order_seq_cst,
                                            std::memory_order_relaxed));
    std::uint64_t idle = normal_.load(std::memory_order_seq_cst);
    if (idle != idle_mark) return Push::queued;
    return normal_.compare_exchange_strong(idle, 0, std::memory_order_seq_cst,
                                           std::memory_order_relaxed)
               ? Push::woke
               : Push::queued;
  }

  std::atomic<std::uint64_t> normal_ = dead_mark;
  std::atomic<std::uint64_t> urgent_ = dead_mark;
};

static_assert(sizeof(void*) == 8, "head words keep a count above a 48-bit address");

}   // namespace duet::runtime::detail
