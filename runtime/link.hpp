// link.hpp: actors that end together.
#pragma once

#include "runtime/detail/spawn.hpp"
#include "runtime/monitor.hpp"

#include <utility>

namespace duet::runtime::detail {

/// Two halves: one lies at `other` and reaches `self`, one lies here and ends `other`. On the
/// strand of `self`.
void link(ActorBase& self, const Address& other);

/// The half that lies at an actor and ends `to_end` when it ends abnormally.
void add_end_of(ActorBase& self, const Address& to_end);

/// A half for an actor that is being spawned.
[[nodiscard]] MonitorNode* make_link(const Address& to_end);

/// Both halves. What is on its way already still comes.
void unlink(ActorBase& self, const Address& other);

/// As link(), with a Down for us instead of the end.
template <typename M>
void link_told(ActorBase& self, const Address& other) {
  send_monitor(other, *create<TypedMonitor<M>>(other, self.address(), true));
  add_end_of(self, other);
}

/// Spawns with `node` in place before the new actor runs: no end is missed. The node is ours until
/// then.
template <typename X, typename... Args>
auto spawn_watched(Core& core, MonitorNode& node, const ActorOptions& options, Args&&... args) {
  ActorOptions watched(options);
  watched.first_watcher = &node;
  try {
    const auto ref = spawn<X>(core, watched, std::forward<Args>(args)...);
    if (ref.empty()) node.fire(node, Address(), nullptr);
    return ref;
  } catch (...) {
    node.fire(node, Address(), nullptr);
    throw;
  }
}

template <typename X, typename... Args>
auto spawn_linked(ActorBase& self, const ActorOptions& options, Args&&... args) {
  const auto ref = spawn_watched<X>(self.core(), *make_link(self.address()), options,
                                    std::forward<Args>(args)...);
  if (!ref.empty()) add_end_of(self, ref.address());
  return ref;
}

template <typename M, typename X, typename... Args>
auto spawn_monitored(ActorBase& self, const ActorOptions& options, Args&&... args) {
  auto* const node = create<TypedMonitor<M>>(Address(), self.address(), false);
  return spawn_watched<X>(self.core(), *node, options, std::forward<Args>(args)...);
}

}   // namespace duet::runtime::detail
