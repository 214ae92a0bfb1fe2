// slot.cpp: an actor's life in its slot.
#include "runtime/detail/slot.hpp"

#include "runtime/actor_base.hpp"
#include "runtime/assert.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"

#include <mutex>

namespace duet::runtime {

bool Address::alive() const noexcept {
  return slot_ != nullptr && slot_->generation() == generation_;
}

std::uint64_t Address::number() const noexcept {
  if (slot_ == nullptr) return 0;
  const std::uint64_t number = slot_->number();
  return alive() ? number : 0;   // asked last: the number was of this life
}

Address ActorBase::address() const noexcept {
  return {slot_, slot_->generation()};
}

detail::Core& ActorBase::core() const noexcept {
  return slot_->arena().core();
}

namespace detail {
namespace {

/// Who runs on this thread, for the time of one activation.
class Activation {
 public:
  Activation(Core& core, Slot& slot, std::uint64_t generation) noexcept
      : state_(thread_state()),
        core_before_(state_.core),
        slot_before_(state_.slot),
        generation_before_(state_.generation),
        block_before_(state_.block) {
    state_.core = &core;
    state_.slot = &slot;
    state_.generation = generation;
    if (block_before_ == nullptr || &block_before_->arena != &slot.arena()) {
      state_.block = &slot.arena().block_of_thread();
    }
    state_.block->running.store(&slot, std::memory_order_relaxed);
  }
  Activation(const Activation&) = delete;
  Activation& operator=(const Activation&) = delete;
  ~Activation() {
    Slot* const outer = core_before_ == state_.core ? slot_before_ : nullptr;
    state_.block->running.store(outer, std::memory_order_relaxed);
    // Kept for the next activation; an outer one of another system wants its own back.
    if (core_before_ != nullptr) state_.block = block_before_;
    state_.core = core_before_;
    state_.slot = slot_before_;
    state_.generation = generation_before_;
  }
  [[nodiscard]] ThreadState& state() const noexcept { return state_; }

 private:
  ThreadState& state_;
  Core* const core_before_;
  Slot* const slot_before_;
  const std::uint64_t generation_before_;
  ThreadBlock* const block_before_;
};

}   // namespace

Address Slot::parent() const noexcept {
  return {parent_.load(std::memory_order_relaxed),
          parent_generation_.load(std::memory_order_relaxed)};
}

std::uint64_t Slot::open(const Birth& birth, TimePoint now) noexcept {
  const std::uint64_t generation = generation_.load(std::memory_order_relaxed) + 1;
  DUET_ASSERT(generation % 2 == 1, generation);
  actor_ = birth.actor;
  actor_->slot_ = this;
  bounded_max_.store(birth.bounded_max, std::memory_order_relaxed);
  bounded_taken_.store(0, std::memory_order_relaxed);
  bounded_.store((generation & low_half) << 32U, std::memory_order_relaxed);
  runs_inline_.store(birth.runs_inline, std::memory_order_relaxed);
  supervised_.store(birth.supervised, std::memory_order_relaxed);
  parent_.store(birth.parent.slot(), std::memory_order_relaxed);
  parent_generation_.store(birth.parent.generation(), std::memory_order_relaxed);
  sent_.store(0, std::memory_order_relaxed);
  handled_.store(0, std::memory_order_relaxed);
  number_.store(birth.number, std::memory_order_relaxed);
  side_.enter(Activity::starting, now);
  inbox_.open();
  generation_.store(generation, std::memory_order_release);
  return generation;
}

void Slot::run() noexcept {
  Core& core = arena_.core();
  ActorBase::Outcome outcome;
  {
    const Activation activation(core, *this, generation_.load(std::memory_order_relaxed));
    side_.enter(Activity::running, core.stamp(activation.state()));
    outcome = actor_->activate();
    if (outcome == ActorBase::Outcome::ended) end();
  }
  if (outcome == ActorBase::Outcome::again) core.make_ready(*this);
}

void Slot::end() noexcept {
  Core& core = arena_.core();
  const std::uint64_t life = generation_.load(std::memory_order_relaxed);
  const ExitReason reason = actor_->ended() ? actor_->exit_reason() : ExitReason(ExitKind::stopped);
  generation_.store(life + 1, std::memory_order_release);
  if (reason.kind() == ExitKind::failed) core.report_failure(*this, life, reason);
  actor_->destroy();

  Node* urgent = nullptr;
  Node* normal = nullptr;
  inbox_.close(urgent, normal);
  {
    const std::lock_guard guard(latest_lock_);
    latest_ = nullptr;
  }
  while (Node* node = tasks_.pop()) node->ops->drop(*node, errc::receiver_gone);
  urgent_.append_reversed(urgent);
  normal_.append_reversed(normal);
  for (NodeList* const list : {&urgent_, &normal_}) {
    while (Node* node = list->pop()) {
      if (node->ops->kind == NodeOps::Kind::message) {
        core.count(DeadLetter::receiver_gone, *node->ops->row);
      }
      node->ops->drop(*node, errc::receiver_gone);
    }
  }
  monitors_.tell_all(Address(this, life), reason);
  const std::uint64_t sent = sent_.load(std::memory_order_relaxed);
  const std::uint64_t handled = handled_.load(std::memory_order_relaxed);
  side_.reset();
  core.ended(*this, sent, handled);
}

void Slot::make_ready() noexcept {
  arena_.core().make_ready(*this);
}

bool Slot::push_and_run(Node& node) noexcept {
  if (generation_.load(std::memory_order_relaxed) != node.generation) return false;
  const Inbox::Push result = inbox_.push(node, node.ops->lane);
  if (result != Inbox::Push::woke) return result != Inbox::Push::dead;
  ThreadState& state = thread_state();
  if (!runs_inline() || state.slot != nullptr || state.collect_core != nullptr) {
    make_ready();
    return true;
  }
  Core& core = arena_.core();
  RunnableQueue ready;
  state.collect = &ready;
  state.collect_core = &core;
  state.stamps_left = 0;   // this thread's stamp may be of any age
  run();
  state.collect_core = nullptr;
  if (!ready.empty()) core.scheduler().post_all(ready);
  return true;
}

bool Slot::push_latest(LatestHeader& node, Node*& superseded) noexcept {
  superseded = nullptr;
  {
    const std::lock_guard guard(latest_lock_);
    if (generation_.load(std::memory_order_relaxed) != node.generation) return false;
    for (LatestHeader* queued = latest_; queued != nullptr; queued = queued->latest_next) {
      if (queued->ops != node.ops) continue;
      node.ops->replace(*queued, node);
      superseded = &node;
      return true;
    }
    node.latest_next = latest_;
    latest_ = &node;
  }
  if (push(node)) return true;
  const std::lock_guard guard(latest_lock_);
  if (generation_.load(std::memory_order_relaxed) == node.generation) forget_latest(node);
  return false;
}

void Slot::forget_latest(LatestHeader& message) noexcept {
  LatestHeader** link = &latest_;
  while (*link != nullptr && *link != &message) link = &(*link)->latest_next;
  if (*link != nullptr) *link = message.latest_next;
}

/// Tasks apart from messages.
void Slot::sort_urgent() noexcept {
  NodeList came;
  came.append_reversed(inbox_.take(Lane::urgent));
  const std::uint64_t life = generation_.load(std::memory_order_relaxed);
  std::uint32_t messages = 0;
  while (Node* node = came.pop()) {
    if (node->generation != life) {
      node->ops->drop(*node, errc::receiver_gone);
    } else if (node->ops->kind == NodeOps::Kind::task) {
      tasks_.push(*node);
    } else {
      urgent_.push(*node);
      ++messages;
    }
  }
  side_.stashed(side_.urgent_depth, side_.urgent_peak, messages, messages);
}

void Slot::take_latest(LatestHeader& message) noexcept {
  const std::lock_guard guard(latest_lock_);
  forget_latest(message);
}

bool Slot::in_time(MessageHeader& message) noexcept {
  if (arena_.core().clock().now() <= message.ops->deadline(message)) return true;
  return refuse(message, errc::timed_out);
}

bool Slot::refuse(MessageHeader& message, errc reason) noexcept {
  arena_.core().count(reason == errc::timed_out ? DeadLetter::expired : DeadLetter::receiver_gone,
                      *message.ops->row);
  message.ops->drop(message, reason);
  return false;
}

}   // namespace detail
}   // namespace duet::runtime
