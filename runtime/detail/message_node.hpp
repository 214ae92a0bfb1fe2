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

/// What a message is stamped with: the life it is meant for, and where it comes from.
struct Stamp {
  std::uint64_t generation;
  Address sender;
  std::uint64_t id;
};

/// Only as large as its message: which alternative of the language it is, its ops say.
template <typename T>
struct MessageNode : HeaderOf<T> {
  MessageNode(T&& value, const NodeOps& node_ops, const Stamp& stamp) noexcept
      : message(std::move(value)) {
    this->ops = &node_ops;
    this->generation = stamp.generation;
    this->sender = stamp.sender;
    this->id = stamp.id;
  }
  T message;
};

/// One with a deadline; always so if its class is latest, so that one can take another's place.
template <typename T>
struct TimedNode final : MessageNode<T> {
  TimedNode(T&& value, TimePoint due, const NodeOps& node_ops, const Stamp& stamp) noexcept
      : MessageNode<T>(std::move(value), node_ops, stamp), deadline(due) {}
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

/// Destroys what a node carries that was taken from a mailbox.
template <typename T>
void discard_message(Node& node, errc reason) noexcept {
  const DropScope scope(reason);
  static_cast<MessageNode<T>&>(node).message.~T();
}
template <typename T>
inline constexpr auto discard_of =
    std::is_trivially_destructible_v<T> ? nullptr : &discard_message<T>;

/// Destroys the message at the end of its scope; the node belongs to the mailbox.
template <typename T>
class MessageOwner {
 public:
  explicit MessageOwner(MessageNode<T>& node) noexcept : node_(node) {}
  MessageOwner(const MessageOwner&) = delete;
  MessageOwner& operator=(const MessageOwner&) = delete;
  ~MessageOwner() {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      discard_message<T>(node_, errc::receiver_gone);
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
                                        nullptr,
                                        discard_of<T>,
                                        Pool::class_of(sizeof(MessageNode<T>))};
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
                                      &TimedNode<T>::deadline_of,
                                      discard_of<T>,
                                      Pool::class_of(sizeof(TimedNode<T>))};

/// Whether a node with these ops is a T, sent to an actor whose language is M.
template <typename M, typename T>
[[nodiscard]] bool carries(const NodeOps* ops) noexcept {
  return ops == &message_ops<M, T> || ops == &timed_ops<M, T>;
}

template <typename M, typename T>
[[nodiscard, gnu::always_inline]] inline MessageNode<T>* make_message(T& message,
                                                                      TimePoint deadline,
                                                                      const Stamp& stamp) {
  if (message_class<T> == MessageClass::latest || deadline != TimePoint::max()) {
    return create<TimedNode<T>>(std::move(message), deadline, timed_ops<M, T>, stamp);
  }
  return create<MessageNode<T>>(std::move(message), message_ops<M, T>, stamp);
}

/// The message as its language, moved out of its node.
template <typename M, std::size_t I = 0>
[[nodiscard]] M take_message(MessageHeader& header) noexcept {
  if constexpr (I + 1 < std::variant_size_v<M>) {
    if (header.ops->index != I) return take_message<M, I + 1>(header);
  }
  auto& node = static_cast<MessageNode<std::variant_alternative_t<I, M>>&>(header);
  const MessageOwner owner(node);
  return M(std::in_place_index<I>, std::move(node.message));
}

/// Puts `message` into a mailbox of `core`, inside of which we are.
template <typename M, typename T>
[[nodiscard, gnu::always_inline]] inline errc put_inside(Core& core, const Address& to, T& message,
                                                         TimePoint deadline, bool run_here,
                                                         const Address& sender, std::uint64_t id) {
  Slot& slot = *to.slot();
  if (slot.generation() != to.generation()) [[unlikely]] {
    core.count(DeadLetter::receiver_gone, type_row<T>);
    return errc::receiver_gone;
  }
  auto* const node = make_message<M, T>(message, deadline, {to.generation(), sender, id});
  Inbox::Push result = Inbox::Push::dead;
  if constexpr (message_class<T> == MessageClass::latest) {
    Node* superseded = nullptr;
    if (slot.push_latest(*node, superseded)) result = Inbox::Push::queued;
    if (superseded != nullptr) {
      core.count(DeadLetter::superseded, type_row<T>);
      superseded->ops->drop(*superseded, errc::overloaded);
    }
  } else {
    constexpr bool bounded = message_class<T> == MessageClass::bounded;
    result = run_here ? slot.push_and_run(*node, message_lane<T>, bounded)
                      : slot.push_to(*node, message_lane<T>, bounded);
  }
  if (result <= Inbox::Push::woke) [[likely]]
    return errc{};
  const bool full = result == Inbox::Push::full;
  core.count(full ? DeadLetter::refused : DeadLetter::receiver_gone, type_row<T>);
  message = std::move(node->message);
  node->ops->drop(*node, errc::receiver_gone);
  return full ? errc::overloaded : errc::receiver_gone;
}

/// From a thread that runs no actor of the receiver's system.
template <typename M, typename T>
[[nodiscard, gnu::noinline]] errc put_from_outside(const Address& to, T& message,
                                                   TimePoint deadline, bool run_here) {
  const Inside inside(to.slot()->arena());
  if (!inside) return errc::receiver_gone;
  Core& core = to.slot()->arena().core();
  return put_inside<M>(core, to, message, deadline, run_here, Address(), core.next_outside_id());
}

/// Puts `message` into the mailbox. On an error it is left to the caller.
template <typename M, typename T>
[[nodiscard]] errc put(const Address& to, T& message, TimePoint deadline, bool run_here) {
  if (to.empty()) return errc::receiver_gone;
  ThreadState& here = thread_state();
  Slot* const from = here.slot;
  if (from == nullptr || here.core != to.slot()->arena().core_if_any()) {
    return put_from_outside<M>(to, message, deadline, run_here);
  }
  return put_inside<M>(*here.core, to, message, deadline, run_here, Address(from, here.generation),
                       from->next_sent());
}

}   // namespace duet::runtime::detail
