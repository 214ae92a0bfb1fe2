// pending.cpp: linking what waits, and its timers.
#include "runtime/detail/pending.hpp"

#include "runtime/actor_base.hpp"
#include "runtime/assert.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/detail/timer_node.hpp"

namespace duet::runtime::detail {

Pending* PendingList::find(std::uint64_t id) const noexcept {
  for (Pending* pending = first_; pending != nullptr; pending = pending->next()) {
    if (pending->id() == id) return pending;
  }
  return nullptr;
}

void Pending::link(bool holds_work) noexcept {
  DUET_ASSERT(!linked());
  PendingList& list = actor_.pending();
  id_ = actor_.next_pending_id();
  next_ = list.first_;
  link_ = &list.first_;
  if (next_ != nullptr) next_->link_ = &next_;
  list.first_ = this;
  holds_work_ = holds_work;
  if (holds_work) actor_.core().scheduler().work_started();
}

void Pending::unlink() noexcept {
  DUET_ASSERT(linked());
  cancel_timer();
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  id_ = 0;
  next_ = nullptr;
  if (holds_work_) actor_.core().scheduler().work_finished();
}

void Pending::arm(TimePoint due) {
  DUET_ASSERT(linked() && timer_ == nullptr);
  timer_ = create<TimerNode>(actor_.slot(), actor_.address().generation(), *this);
  actor_.core().clock().arm(*timer_, due);
}

void Pending::cancel_timer() noexcept {
  if (timer_ == nullptr) return;
  const bool cancelled = actor_.core().clock().cancel(*timer_);
  std::exchange(timer_, nullptr)->forget(cancelled);
}

const NodeOps TimerNode::node_ops = {
    &TimerNode::drop,    &TimerNode::run,          nullptr,     "timer",
    NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};

TimerNode::TimerNode(Slot& slot, std::uint64_t life, Pending& owner) noexcept
    : slot_(slot), owner_(&owner) {
  ops = &node_ops;
  generation = life;
}

void TimerNode::expired() noexcept {
  const Inside inside(slot_.arena());
  if (!inside || !slot_.push(*this)) release();
}

void TimerNode::run(Node& node, ActorBase&) {
  auto& timer = static_cast<TimerNode&>(node);
  Pending* const owner = timer.owner_;
  if (owner != nullptr) std::exchange(owner->timer_, nullptr)->forget(false);
  timer.release();
  if (owner != nullptr) owner->expired();
}

void TimerNode::drop(Node& node, errc) noexcept {
  static_cast<TimerNode&>(node).release();
}

void TimerNode::release() noexcept {
  if (holds_.fetch_sub(1, std::memory_order_acq_rel) == 1) detail::destroy(this);
}

}   // namespace duet::runtime::detail
