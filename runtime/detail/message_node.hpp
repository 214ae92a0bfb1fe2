// message_node.hpp: messages as nodes, and the one way into a mailbox.
#pragma once

#include "runtime/detail/core.hpp"
#include "runtime/detail/node.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/detail/type_row.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>

namespace duet::runtime::detail {

template <typename T>
using HeaderOf =
    std::conditional_t<message_class<T> == MessageClass::latest, LatestHeader, MessageHeader>;

/// Only as large as its message: which alternative of the language it is, its ops say.
template <typename T>
struct MessageNode : HeaderOf<T> {
  explicit MessageNode(T&& value) noexcept : message(std::move(value)) {}
  T message;
};

/// One with a deadline; always so if its class is latest, so that one can take another's place.
template <typename T>
struct TimedNode final : MessageNode<T> {
  TimedNode(T&& value, TimePoint due) noexcept : MessageNode<T>(std::move(value)), deadline(due) {}
  static TimePoint deadline_of(const MessageHeader& message) noexcept {
    return static_cast<const TimedNode&>(message).deadline;
  }
  static void replace(Node& queued, Node& fresh) noexcept {
    auto& old = static_cast<TimedNode&>(queued);
    auto& young = static_cast<TimedNode&>(fresh);
    std::swap(old.message, young.message);
    std::swap(old.sender, young.sender);
    std::swap(old.id, young.id);
    std::swap(old.deadline, young.deadline);
  }
  TimePoint deadline;
};

/// `N` is the very type of the node.
template <typename N>
void drop_message(Node& node, errc reason) noexcept {
  const DropScope scope(reason);
  destroy(static_cast<N*>(&node));
}

/// Frees a node whose message was moved out, or used.
template <typename T>
class NodeOwner {
 public:
  explicit NodeOwner(MessageNode<T>& node) noexcept : node_(node) {}
  NodeOwner(const NodeOwner&) = delete;
  NodeOwner& operator=(const NodeOwner&) = delete;
  ~NodeOwner() {
    if (node_.ops->deadline != nullptr || !std::is_trivially_destructible_v<T>) {
      node_.ops->drop(node_, errc::receiver_gone);
    } else {
      destroy(&node_);
    }
  }

 private:
  MessageNode<T>& node_;
};

/// Which alternative of M a T is.
template <typename M, typename T>
consteval std::size_t index_in() {
  return []<typename... U>(std::in_place_type_t<std::variant<U...>>) {
    std::size_t index = 0;
    static_cast<void>(((std::is_same_v<T, U> ? true : (++index, false)) || ...));
    return index;
  }(std::in_place_type<M>);
}

template <typename T>
inline const TypeRow type_row(type_name<T>());

template <typename M, typename T>
inline constexpr NodeOps message_ops = {&drop_message<MessageNode<T>>,
                                        nullptr,
                                        nullptr,
                                        type_name<T>(),
                                        NodeOps::Kind::message,
                                        message_class<T>,
                                        message_lane<T>,
                                        &type_row<T>,
                                        index_in<M, T>(),
                                        nullptr};
template <typename M, typename T>
inline constexpr NodeOps timed_ops = {&drop_message<TimedNode<T>>,
                                      nullptr,
                                      &TimedNode<T>::replace,
                                      type_name<T>(),
                                      NodeOps::Kind::message,
                                      message_class<T>,
                                      message_lane<T>,
                                      &type_row<T>,
                                      index_in<M, T>(),
                                      &TimedNode<T>::deadline_of};

/// Whether a node with these ops is a T, sent to an actor whose language is M.
template <typename M, typename T>
[[nodiscard]] bool carries(const NodeOps* ops) noexcept {
  return ops == &message_ops<M, T> || ops == &timed_ops<M, T>;
}

template <typename M, typename T>
[[nodiscard]] MessageNode<T>* make_message(T& message, TimePoint deadline) {
  if (message_class<T> == MessageClass::latest || deadline != TimePoint::max()) {
    auto* const node = create<TimedNode<T>>(std::move(message), deadline);
    node->ops = &timed_ops<M, T>;
    return node;
  }
  auto* const node = create<MessageNode<T>>(std::move(message));
  node->ops = &message_ops<M, T>;
  return node;
}

/// The message as its language, moved out of its node, which is freed.
template <typename M, std::size_t I = 0>
[[nodiscard]] M take_message(MessageHeader& header) noexcept {
  if constexpr (I + 1 < std::variant_size_v<M>) {
    if (header.ops->index != I) return take_message<M, I + 1>(header);
  }
  auto& node = static_cast<MessageNode<std::variant_alternative_t<I, M>>&>(header);
  const NodeOwner owner(node);
  return M(std::in_place_index<I>, std::move(node.message));
}

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
  auto* const node = make_message<M, T>(message, deadline);
  node->generation = to.generation();
  if (from_actor) node->sender = Address(here.slot, here.generation);
  node->id = id;
  bool taken = false;
  if constexpr (message_class<T> == MessageClass::latest) {
    Node* superseded = nullptr;
    taken = slot.push_latest(*node, superseded);
    if (superseded != nullptr) {
      core.count(DeadLetter::superseded, type_row<T>);
      superseded->ops->drop(*superseded, errc::overloaded);
    }
  } else {
    taken = run_here ? slot.push_and_run(*node) : slot.push_to(*node, message_lane<T>);
  }
  if (taken) return errc{};
  core.count(DeadLetter::receiver_gone, type_row<T>);
  message = std::move(node->message);
  node->ops->drop(*node, errc::receiver_gone);
  return errc::receiver_gone;
}

}   // namespace duet::runtime::detail
