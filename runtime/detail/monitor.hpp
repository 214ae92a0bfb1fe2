// monitor.hpp: who wants to hear of an actor's end.
#pragma once

#include "runtime/detail/node.hpp"

namespace duet::runtime {
class ExitReason;
}   // namespace duet::runtime

namespace duet::runtime::detail {

/// Lies in the watched slot's list until the actor ends. `fire` tells the watcher and frees it.
struct MonitorNode : Node {
  void (*fire)(MonitorNode& monitor, const Address& actor, const ExitReason& reason) = nullptr;
  Address watcher;
  MonitorNode* next_monitor = nullptr;
};

}   // namespace duet::runtime::detail
