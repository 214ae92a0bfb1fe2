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
  explicit TypedMonitor(const Address& from) {
    ops = &node_ops;
    watcher = from;
    fire = [](MonitorNode& monitor, const Address& actor, const ExitReason& reason) {
      const Ref<M> to(monitor.watcher);
      destroy(static_cast<TypedMonitor*>(&monitor));
      static_cast<void>(to.send(Down(actor, reason)));
    };
  }
  /// The watched actor ended while we were on our way.
  static void drop(Node& node, errc) noexcept {
    auto& monitor = static_cast<TypedMonitor&>(node);
    const Address gone = monitor.watched;   // the monitor frees itself
    monitor.fire(monitor, gone, ExitReason(ExitKind::gone));
  }
  static void run(Node& node, ActorBase& actor) {
    actor.slot().add_monitor(static_cast<TypedMonitor&>(node));
  }
  static constexpr NodeOps node_ops = {
      &TypedMonitor::drop, &TypedMonitor::run,       nullptr,     "monitor",
      NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};
  Address watched;
};

template <typename M>
void monitor(const Address& watched, const Ref<M>& watcher) {
  auto* const node = create<TypedMonitor<M>>(watcher.address());
  node->watched = watched;
  node->generation = watched.generation();
  if (!watched.empty()) {
    const Inside inside(watched.slot()->arena());
    if (inside && watched.slot()->push(*node)) return;
  }
  node->ops->drop(*node, errc::receiver_gone);
}

}   // namespace duet::runtime::detail
