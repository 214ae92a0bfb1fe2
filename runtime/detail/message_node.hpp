// message_node.hpp: messages as nodes, and the one way into a mailbox.
#pragma once

#include "runtime/detail/core.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/detail/type_row.hpp"

#include <utility>

namespace duet::runtime::detail {

template <typename M>
struct MessageNode final : MessageHeader {
  template <typename T>
  explicit MessageNode(T&& value) noexcept : message(std::in_place_type<T>, std::move(value)) {}

  static void drop(Node& node, errc reason) noexcept {
    const DropScope scope(reason);
    destroy(static_cast<MessageNode*>(&node));
  }
  static void replace(Node& queued, Node& fresh) noexcept {
    auto& old = static_cast<MessageNode&>(queued);
    auto& young = static_cast<MessageNode&>(fresh);
    std::swap(old.message, young.message);
    std::swap(old.envelope, young.envelope);
  }

  M message;
};

template <typename T>
inline const TypeRow type_row(type_name<T>());

template <typename M, typename T>
inline constexpr NodeOps message_ops = {
    &MessageNode<M>::drop,  nullptr,          &MessageNode<M>::replace, type_name<T>(),
    NodeOps::Kind::message, message_class<T>, message_lane<T>,          &type_row<T>};

/// Puts `message` into the mailbox. On an error it is left to the caller.
template <typename M, typename T>
[[nodiscard]] errc put(const Address& to, T& message, TimePoint deadline, bool run_here) {
  if (to.empty()) return errc::receiver_gone;
  Slot& slot = *to.slot();
  const Inside inside(slot.arena());
  if (!inside) return errc::receiver_gone;
  Core& core = slot.arena().core();
  ThreadState& here = thread_state();
  const bool from_actor = here.core == &core && here.slot != nullptr;
  const std::uint64_t id = from_actor ? here.slot->next_sent() : core.next_outside_id();
  if (slot.generation() != to.generation()) {
    core.count(DeadLetter::receiver_gone, type_row<T>);
    return errc::receiver_gone;
  }
  if constexpr (message_class<T> == MessageClass::bounded) {
    const Slot::Reserve reserve = slot.reserve_bounded(to.generation());
    if (reserve != Slot::Reserve::reserved) {
      const bool full = reserve == Slot::Reserve::full;
      core.count(full ? DeadLetter::refused : DeadLetter::receiver_gone, type_row<T>);
      return full ? errc::overloaded : errc::receiver_gone;
    }
  }
  auto* const node = create<MessageNode<M>>(std::move(message));
  node->ops = &message_ops<M, T>;
  node->generation = to.generation();
  if (from_actor) node->envelope.sender = Address(here.slot, here.generation);
  node->envelope.id = id;
  node->envelope.deadline = deadline;
  bool taken = false;
  if constexpr (message_class<T> == MessageClass::latest) {
    Node* superseded = nullptr;
    taken = slot.push_latest(*node, superseded);
    if (superseded != nullptr) {
      core.count(DeadLetter::superseded, type_row<T>);
      superseded->ops->drop(*superseded, errc::overloaded);
    }
  } else {
    taken = run_here ? slot.push_and_run(*node) : slot.push(*node);
  }
  if (taken) return errc{};
  core.count(DeadLetter::receiver_gone, type_row<T>);
  message = std::move(std::get<T>(node->message));
  node->ops->drop(*node, errc::receiver_gone);
  return errc::receiver_gone;
}

}   // namespace duet::runtime::detail
