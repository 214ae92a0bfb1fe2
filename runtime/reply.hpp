// reply.hpp: the one-shot way back to the one who asked.
#pragma once

#include "runtime/actor_base.hpp"
#include "runtime/address.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"
#include "runtime/detail/pending.hpp"
#include "runtime/detail/pool.hpp"

#include <optional>
#include <type_traits>
#include <utility>

namespace duet::runtime {

namespace detail {

/// Made by the asker, filled by the answerer, freed by the asker.
struct ReplyHeader : Node {
  Address asker;
  std::uint64_t id = 0;   // of the asker's Pending
  errc error = errc::receiver_gone;

  /// To the asker; an answer for which nobody waits there any more is late.
  void deliver(bool answer) noexcept {
    Slot& slot = *asker.slot();
    const Inside inside(slot.arena());
    if (inside && slot.push(*this)) return;
    if (inside && answer) slot.arena().core().count(DeadLetter::late_reply);
    ops->drop(*this, errc::receiver_gone);
  }
};

template <typename T>
struct ReplyNode final : ReplyHeader {
  ReplyNode(const Address& to, std::uint64_t pending) {
    ops = &node_ops;
    generation = to.generation();
    asker = to;
    id = pending;
  }
  static void drop(Node& node, errc) noexcept { destroy(static_cast<ReplyNode*>(&node)); }
  static void run(Node& node, ActorBase& actor) {
    auto& reply = static_cast<ReplyNode&>(node);
    Pending* const pending = actor.pending().find(reply.id);
    if (pending != nullptr) {
      pending->answered(node);   // takes the value; it does not resume anything yet
    } else if (reply.value.has_value()) {
      actor.core().count(DeadLetter::late_reply);
    }
    drop(node, errc::cancelled);
    if (pending != nullptr) pending->resolved();
  }

  static constexpr NodeOps node_ops = {
      &ReplyNode::drop,    &ReplyNode::run,          nullptr,     "reply",
      NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};
  std::optional<T> value;
};

}   // namespace detail

/// Carried by a request as its member `reply`; `self.ask()` fills it in. Calling it answers, on any
/// thread; destroying it unanswered tells the asker why: `receiver_gone`, or `overloaded` or
/// `timed_out` if the runtime refused or expired the request. An empty one may be called and says
/// nothing: then nobody asked.
template <typename T>
class Reply {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  using value_type = T;

  Reply() noexcept = default;
  explicit Reply(detail::ReplyNode<T>& node) noexcept : node_(&node) {}
  Reply(Reply&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Reply& operator=(Reply&& other) noexcept {
    Reply old(std::move(*this));
    node_ = std::exchange(other.node_, nullptr);
    return *this;
  }
  ~Reply() {
    if (node_ != nullptr) fail(detail::thread_state().drop_reason);
  }

  /// True until it was answered.
  [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }

  void operator()(T value) noexcept {
    if (node_ == nullptr) return;
    node_->value.emplace(std::move(value));
    std::exchange(node_, nullptr)->deliver(true);
  }

  /// Answers that there is no answer.
  void fail(errc reason) noexcept {
    if (node_ == nullptr) return;
    node_->error = reason;
    std::exchange(node_, nullptr)->deliver(false);
  }

 private:
  detail::ReplyNode<T>* node_ = nullptr;
};

}   // namespace duet::runtime
