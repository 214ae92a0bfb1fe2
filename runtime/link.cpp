// link.cpp: the halves of links, and the way of monitors to whom they watch.
#include "runtime/link.hpp"

#include <exception>
#include <string>

namespace duet::runtime::detail {
namespace {

/// Ends its watcher when the one it lies at ends abnormally.
struct LinkNode final : MonitorNode {
  LinkNode(const Address& of, const Address& to_end) {
    ops = &node_ops;
    watched = of;
    generation = of.generation();
    watcher = to_end;
    link = true;
    fire = &pass_on;
  }
  static void pass_on(MonitorNode& node, const Address& actor, const ExitReason* reason) {
    const Address to_end = node.watcher;
    destroy(static_cast<LinkNode*>(&node));
    if (reason == nullptr || !reason->abnormal()) return;
    if (reason->kind() == ExitKind::killed) {   // its reason is that of the first who failed
      Core::kill(to_end, reason->exception());
      return;
    }
    const bool gone = reason->kind() == ExitKind::gone;
    const std::string text =
        gone ? "linked to an actor that had ended"
             : "linked to " + actor.slot()->side().name() + ", which failed: " + reason->text();
    Core::kill(to_end, std::make_exception_ptr(LinkedActorEnded(actor, text)));
  }
  static void drop(Node& node, errc) noexcept {
    auto& half = static_cast<LinkNode&>(node);
    const Address gone = half.watched;
    const ExitReason reason(ExitKind::gone);
    pass_on(half, gone, &reason);
  }
  static void run(Node& node, ActorBase& actor) {
    actor.slot().monitors().add(static_cast<LinkNode&>(node));
  }
  static constexpr NodeOps node_ops = {
      &LinkNode::drop,     &LinkNode::run,           nullptr,     "link",
      NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};
  Address watched;
};

struct UnmonitorNode final : Node {
  UnmonitorNode(const Address& of, const Address& by, bool linked) : watcher(by), link(linked) {
    ops = &node_ops;
    generation = of.generation();
  }
  static void drop(Node& node, errc) noexcept { destroy(static_cast<UnmonitorNode*>(&node)); }
  static void run(Node& node, ActorBase& actor) {
    const auto& order = static_cast<UnmonitorNode&>(node);
    actor.slot().monitors().remove(order.watcher, order.link);
    drop(node, errc::cancelled);
  }
  static constexpr NodeOps node_ops = {
      &UnmonitorNode::drop, &UnmonitorNode::run,      nullptr,     "unmonitor",
      NodeOps::Kind::task,  MessageClass::guaranteed, Lane::urgent};
  const Address watcher;
  const bool link;
};

}   // namespace

void send_monitor(const Address& watched, MonitorNode& node) noexcept {
  if (!watched.empty()) {
    const Inside inside(watched.slot()->arena());
    if (inside && watched.slot()->push(node)) return;
  }
  node.ops->drop(node, errc::receiver_gone);
}

void send_unmonitor(const Address& watched, const Address& watcher, bool link) noexcept {
  if (watched.empty()) return;
  auto* const node = create<UnmonitorNode>(watched, watcher, link);
  const Inside inside(watched.slot()->arena());
  if (!inside || !watched.slot()->push(*node)) destroy(node);
}

void add_end_of(ActorBase& self, const Address& to_end) {
  self.slot().monitors().add(*create<LinkNode>(self.address(), to_end));
}

MonitorNode* make_link(const Address& to_end) {
  return create<LinkNode>(Address(), to_end);
}

void link(ActorBase& self, const Address& other) {
  send_monitor(other, *create<LinkNode>(other, self.address()));
  add_end_of(self, other);
}

void unlink(ActorBase& self, const Address& other) {
  self.slot().monitors().remove(other, true);
  send_unmonitor(other, self.address(), true);
}

}   // namespace duet::runtime::detail
