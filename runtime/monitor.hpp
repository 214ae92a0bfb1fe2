// monitor.hpp: watching another actor's end.
#pragma once

#include "runtime/actor_base.hpp"
#include "runtime/detail/monitor.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/ref.hpp"

namespace duet::runtime::detail {

/// Travels to the watched actor, lies there, and becomes a Down to the watcher.
template <typename M>
struct TypedMonitor final : MonitorNode {
  TypedMonitor(const Address& of, const Address& by, bool linked) {
    ops = &node_ops;
    watched = of;
    generation = of.generation();
    watcher = by;
    link = linked;
    fire = &tell;
  }
  static void tell(MonitorNode& monitor, const Address& actor, const ExitReason* reason) {
    const Ref<M> to(monitor.watcher);
    destroy(static_cast<TypedMonitor*>(&monitor));
    if (reason != nullptr) static_cast<void>(to.send(Down(actor, *reason)));
  }
  /// The watched actor ended while we were on our way.
  static void drop(Node& node, errc) noexcept {
    auto& monitor = static_cast<TypedMonitor&>(node);
    const Address gone = monitor.watched;   // the monitor frees itself
    const ExitReason reason(ExitKind::gone);
    tell(monitor, gone, &reason);
  }
  static void run(Node& node, ActorBase& actor) {
    actor.slot().monitors().add(static_cast<TypedMonitor&>(node));
  }
  static constexpr NodeOps node_ops = {
      &TypedMonitor::drop, &TypedMonitor::run,       nullptr,     "monitor",
      NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};
  Address watched;
};

/// To the watched actor, or dropped if that has ended.
void send_monitor(const Address& watched, MonitorNode& node) noexcept;

/// Takes what `watcher` has at `watched` out again.
void send_unmonitor(const Address& watched, const Address& watcher, bool link) noexcept;

template <typename M>
void monitor(const Address& watched, const Ref<M>& watcher) {
  send_monitor(watched, *create<TypedMonitor<M>>(watched, watcher.address(), false));
}

}   // namespace duet::runtime::detail
