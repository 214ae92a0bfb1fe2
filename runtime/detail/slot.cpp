// slot.cpp: an actor's life in its slot.
#include "runtime/detail/slot.hpp"

#include "runtime/actor_base.hpp"
#include "runtime/assert.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"

#include <cstddef>
#include <mutex>
#include <utility>

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
    if (state_.spent != nullptr) free_node(*std::exchange(state_.spent, nullptr));
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
  runs_inline_.store(birth.runs_inline, std::memory_order_relaxed);
  supervised_.store(birth.supervised, std::memory_order_relaxed);
  parent_.store(birth.parent.slot(), std::memory_order_relaxed);
  parent_generation_.store(birth.parent.generation(), std::memory_order_relaxed);
  sent_.store(0, std::memory_order_relaxed);
  handled_.store(0, std::memory_order_relaxed);
  number_.store(birth.number, std::memory_order_relaxed);
  side_.enter(Activity::starting, now);
  inbox_.open(birth.bounded_max);
  generation_.store(generation, std::memory_order_release);
  return generation;
}

void Slot::run() noexcept {
  __builtin_prefetch(actor_);
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

  inbox_.close(urgent_, normal_);
  {
    const std::lock_guard guard(latest_lock_);
    latest_ = nullptr;
  }
  while (Node* node = tasks_.pop()) node->ops->drop(*node, errc::receiver_gone);
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
  // The activation's lines come while its turn comes.
  const auto* const begin = reinterpret_cast<const std::byte*>(this);
  for (std::size_t line = 64; line < sizeof(Slot); line += 64) __builtin_prefetch(begin + line, 1);
  arena_.core().make_ready(*this);
}

Node* Slot::next_listed() noexcept {
  ThreadState& state = thread_state();
  if (state.spent != nullptr) free_node(*state.spent);
  const bool urgent = !urgent_.empty();
  state.spent = urgent ? urgent_.pop() : normal_.pop();
  if (urgent) add(side_.urgent_depth, ~0U);
  return state.spent;
}

Inbox::Push Slot::push_and_run(Node& node, Lane lane, bool bounded) noexcept {
  const Inbox::Push result = inbox_.push(node, lane, bounded);
  if (result != Inbox::Push::woke) return result;
  note_woken(lane, bounded);
  ThreadState& state = thread_state();
  if (!runs_inline() || state.slot != nullptr || state.collect_core != nullptr) {
    make_ready();
    return result;
  }
  Core& core = arena_.core();
  RunnableQueue ready;
  state.collect = &ready;
  state.collect_core = &core;
  state.stamps_left = 0;   // this thread's stamp may be of any age
  run();
  state.collect_core = nullptr;
  if (!ready.empty()) core.scheduler().post_all(ready);
  return result;
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
  came.append_reversed(inbox_.take_urgent());
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
  side_.urgent_came(messages);
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
  if (message.ops->discard != nullptr) message.ops->discard(message, reason);
  return false;
}

}   // namespace detail
}   // namespace duet::runtime
