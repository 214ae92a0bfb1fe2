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
                                        Pool::class_of(sizeof(MessageNode<T>)),
                                        message_class<T> != MessageClass::latest};
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

/// How a message is put into a mailbox.
enum class Put : std::uint8_t {
  plain,
  timed,     ///< with a deadline
  run_here   ///< an idle receiver that wants it runs at once
};

/// A message for an actor that is gone: counted, and destroyed with that reason.
template <typename T>
[[nodiscard, gnu::noinline]] errc receiver_gone(Core* core, T message) {
  if (core != nullptr) core->count(DeadLetter::receiver_gone, type_row<T>);
  const DropScope scope(errc::receiver_gone);
  static_cast<void>(T(std::move(message)));
  return errc::receiver_gone;
}

/// Into a mailbox of a system inside of which we are.
template <typename M, Put how, typename T>
[[nodiscard, gnu::always_inline]] inline errc put_inside(Slot& slot, T& message, TimePoint deadline,
                                                         const Stamp& stamp) {
  if (slot.generation() != stamp.generation) [[unlikely]]
    return receiver_gone<T>(&slot.arena().core(), std::move(message));
  constexpr MessageClass kind = message_class<T>;
  if constexpr (kind == MessageClass::latest) {
    auto* const node = create<TimedNode<T>>(std::move(message), deadline, timed_ops<M, T>, stamp);
    return slot.put_latest(*node);
  } else if constexpr (how == Put::timed) {
    auto* const node = create<TimedNode<T>>(std::move(message), deadline, timed_ops<M, T>, stamp);
    return slot.put(*node, message_lane<T>, kind == MessageClass::bounded);
  } else {
    auto* const node = create<MessageNode<T>>(std::move(message), message_ops<M, T>, stamp);
    if constexpr (how == Put::run_here) {
      return slot.put_and_run(*node, message_lane<T>, kind == MessageClass::bounded);
    } else {
      return slot.put(*node, message_lane<T>, kind == MessageClass::bounded);
    }
  }
}

/// From a thread that runs no actor of the receiver's system.
template <typename M, Put how, typename T>
[[nodiscard, gnu::noinline]] errc put_from_outside(Address to, T message, TimePoint deadline) {
  if (to.empty()) return receiver_gone<T>(nullptr, std::move(message));
  const Inside inside(to.slot()->arena());
  if (!inside) return receiver_gone<T>(nullptr, std::move(message));
  const std::uint64_t number = to.slot()->arena().core().next_outside_id();
  return put_inside<M, how>(*to.slot(), message, deadline, {to.generation(), Address(), number});
}

/// Puts `message` into the mailbox, or destroys it and says why. What is rare lies behind calls at
/// the end that take all by value, so that a small message stays in registers.
template <typename M, Put how, typename T>
[[nodiscard]] errc put(Address to, T message, TimePoint deadline = TimePoint::max()) {
  ThreadState& here = thread_state();
  if (to.empty() || !here.inside(to.slot()->arena())) [[unlikely]]
    return put_from_outside<M, how, T>(to, std::move(message), deadline);
  Slot& from = *here.slot;
  return put_inside<M, how>(*to.slot(), message, deadline,
                            {to.generation(), Address(&from, here.generation), from.next_sent()});
}

}   // namespace duet::runtime::detail
