// node.hpp: what lies in a mailbox.
#pragma once

#include "runtime/address.hpp"
#include "runtime/detail/await_link.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/error.hpp"
#include "runtime/message.hpp"
#include "runtime/time.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace duet::runtime {

class ActorBase;

/// What every message carries beside its content.
struct Envelope {
  Address sender;         // empty from outside the system
  std::uint64_t id = 0;   // the sender's running number; from outside, the system's
  TimePoint deadline = TimePoint::max();
};

namespace detail {

class Slot;
class TypeRow;
struct MessageHeader;
struct Node;

/// What a node is; one constant a type, so that a node carries a pointer only.
struct NodeOps {
  enum class Kind : std::uint8_t { message, task };

  /// Frees the node. A reply that it carries is answered with `reason`.
  void (*drop)(Node& node, errc reason) noexcept;
  /// Of a task: runs on the receiver's strand and frees the node.
  void (*run)(Node& node, ActorBase& actor);
  /// Of a latest message: the content of `fresh` replaces that of `queued`.
  void (*replace)(Node& queued, Node& fresh) noexcept;
  const char* type;
  Kind kind;
  MessageClass message_class;
  Lane lane;
  const TypeRow* row = nullptr;   ///< of a message
  std::size_t index = 0;          ///< of a message: which alternative of its language
  /// Of a message that has one; else null.
  TimePoint (*deadline)(const MessageHeader& message) noexcept = nullptr;
  /// Of a message: destroys what it carries and leaves the node's memory to the mailbox, where it
  /// may still be the last one. Null: there is nothing to destroy.
  void (*discard)(Node& node, errc reason) noexcept = nullptr;
  std::size_t size_class = 0;   ///< of a message's memory, as Pool::class_of() says
  bool plain = false;           ///< of a message: of another class than latest, no deadline
};

struct Node {
  std::atomic<Node*> next = nullptr;
  const NodeOps* ops = nullptr;
  std::uint64_t generation = 0;   // the life of the receiver that is meant

  [[nodiscard]] Node* after() const noexcept { return next.load(std::memory_order_relaxed); }
  void set_after(Node* node) noexcept { next.store(node, std::memory_order_relaxed); }
};

/// Of a message that was taken from a mailbox, once what it carried is destroyed.
inline void free_node(Node& node) noexcept {
#if defined(DUET_SANITIZED)
  ::operator delete(&node);
#else
  Pool::give(&node, node.ops->size_class);
#endif
}

/// The envelope in fewer bytes: with 16 bytes of content a message is one cache line.
struct MessageHeader : Node {
  Address sender;
  std::uint64_t id = 0;
};

/// Of a message of class latest.
struct LatestHeader : MessageHeader {
  LatestHeader* latest_next = nullptr;   // in the slot's list of queued ones
};

[[nodiscard]] inline TimePoint deadline_of(const MessageHeader& message) noexcept {
  return message.ops->deadline == nullptr ? TimePoint::max() : message.ops->deadline(message);
}
[[nodiscard]] inline Envelope envelope_of(const MessageHeader& message) noexcept {
  return {message.sender, message.id, deadline_of(message)};
}

/// FIFO of nodes, of one thread at a time. Circular, so that it is one pointer: the last node's
/// next is the first.
class NodeList {
 public:
  [[nodiscard]] bool empty() const noexcept { return last_ == nullptr; }

  void push(Node& node) noexcept { append(node, node); }

  /// Linked oldest first; links before the last one may still be on their way.
  void append(Node& first, Node& last) noexcept {
    last.set_after(last_ == nullptr ? &first : last_->after());
    if (last_ != nullptr) last_->set_after(&first);
    last_ = &last;
  }

  [[nodiscard]] Node* pop() noexcept {
    if (last_ == nullptr) return nullptr;
    Node* const first = last_->after();
    if (first == last_) {
      last_ = nullptr;
    } else {
      last_->set_after(await_link(first->next));
    }
    return first;
  }

  /// Oldest first.
  template <typename F>
  void visit(F& function) const {
    if (last_ == nullptr) return;
    const Node* node = last_;
    do {
      node = node->after();
      function(*node);
    } while (node != last_);
  }

  /// A chain that was linked newest first.
  void append_reversed(Node* newest) noexcept {
    if (newest == nullptr) return;
    Node* const last = newest;
    Node* oldest = nullptr;
    while (newest != nullptr) {
      Node* const older = newest->after();
      newest->set_after(oldest);
      oldest = std::exchange(newest, older);
    }
    append(*oldest, *last);
  }

 private:
  Node* last_ = nullptr;
};

}   // namespace detail
}   // namespace duet::runtime
