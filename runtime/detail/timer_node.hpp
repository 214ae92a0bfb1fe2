// timer_node.hpp: a timer that posts itself into its actor's mailbox.
#pragma once

#include "runtime/clock.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/pool.hpp"

#include <atomic>
#include <cstdint>

namespace duet::runtime::detail {

class Pending;
class Slot;

/// Held twice: by the actor that waits, and by the clock, later the mailbox. Whoever lets go last
/// frees it, so that a timer may be due while it is cancelled.
class TimerNode final : public Timer, public Node {
 public:
  TimerNode(Slot& slot, std::uint64_t life, Pending& owner) noexcept;
  ~TimerNode() override = default;

  /// On a thread of the clock.
  void expired() noexcept override;

  /// The actor lets go; `cancelled` says that the clock does so too.
  void forget(bool cancelled) noexcept {
    owner_ = nullptr;
    if (cancelled) return destroy(this);   // the clock will not touch it again
    release();
  }

 private:
  static void run(Node& node, ActorBase& actor);
  static void drop(Node& node, errc reason) noexcept;
  static const NodeOps node_ops;
  void release() noexcept;

  Slot& slot_;
  Pending* owner_;   // of the actor's strand
  std::atomic<std::uint32_t> holds_ = 2;
};

}   // namespace duet::runtime::detail
