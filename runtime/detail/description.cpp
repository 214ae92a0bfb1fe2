// description.cpp: a node in a mailbox that takes away what the actor says.
#include "runtime/detail/description.hpp"

#include "runtime/actor_base.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/detail/slot.hpp"

#include <utility>

namespace duet::runtime::detail {
namespace {

struct DescribeNode : Node {
  explicit DescribeNode(DescribedCallback callback) : done(std::move(callback)) {}

  static void run(Node& node, ActorBase& actor) {
    std::optional<Properties> said;
    try {
      said = actor.properties();
    } catch (...) {   // it is the reader's loss, not the actor's end
    }
    finish(node, std::move(said));
  }
  static void drop(Node& node, errc) noexcept { finish(node, std::nullopt); }

  static void finish(Node& node, std::optional<Properties> said) noexcept {
    auto& self = static_cast<DescribeNode&>(node);
    const DescribedCallback done = std::move(self.done);
    destroy(&self);
    done(std::move(said));
  }

  DescribedCallback done;
};

constexpr NodeOps describe_ops = {
    &DescribeNode::drop, &DescribeNode::run,       nullptr,     "describe",
    NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};

}   // namespace

void describe(const Address& actor, DescribedCallback done) {
  if (!actor.empty()) {
    const Inside inside(actor.slot()->arena());
    if (inside && actor.alive()) {
      auto* const node = create<DescribeNode>(std::move(done));
      node->ops = &describe_ops;
      node->generation = actor.generation();
      if (!actor.slot()->push(*node)) DescribeNode::drop(*node, errc::receiver_gone);
      return;
    }
  }
  done(std::nullopt);
}

}   // namespace duet::runtime::detail
