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

/// What of a thread's state belongs to the activation that runs.
struct Outer {
  Slot* slot;
  std::uint64_t generation;
  Arena* arena;
  ThreadBlock* block;
  const MessageHeader* message;
  Node* spent;
  TimePoint stamp;
  std::uint32_t stamps_left;
};

/// The lines of a slot that the activation writes come while its turn comes.
void prefetch_activation(const void* slot) noexcept {
  for (const std::size_t line : {64, 128}) {
    __builtin_prefetch(static_cast<const std::byte*>(slot) + line, 1);
  }
}

void enter(ThreadState& state, Arena& arena) noexcept {
  state.arena = &arena;
  state.block = &arena.block_of_thread();
}

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

inline void Slot::run_here(ThreadState& state) noexcept {
  if (state.arena != &arena_) [[unlikely]]
    enter(state, arena_);
  state.slot = this;
  state.generation = generation_.load(std::memory_order_relaxed);
  state.block->running.store(this, std::memory_order_relaxed);
  side_.enter(Activity::running, arena_.core().stamp(state));
  const ActorBase::Outcome outcome = actor_->activate();
  if (outcome == ActorBase::Outcome::ended) [[unlikely]]
    end();
  // Unless it may go on, nothing of the actor may be touched any more.
  if (state.spent != nullptr) [[unlikely]]
    free_node(*std::exchange(state.spent, nullptr));
  state.block->running.store(nullptr, std::memory_order_relaxed);
  state.slot = nullptr;
  if (outcome == ActorBase::Outcome::again) make_ready();
}

void Slot::run() noexcept {
  const auto* const object = reinterpret_cast<const std::byte*>(actor_);
  for (std::size_t line = 0; line < 192; line += 64) __builtin_prefetch(object + line, 1);
  ThreadState& state = thread_state();
  if (state.slot != nullptr) [[unlikely]]
    return run_inside_another(state);
  run_here(state);
}

/// A host may run its context inside of an actor.
void Slot::run_inside_another(ThreadState& state) noexcept {
  const Outer outer{state.slot,  state.generation, state.arena,
                    state.block, state.message,    std::exchange(state.spent, nullptr),
                    state.stamp, state.stamps_left};
  run_here(state);
  state.slot = outer.slot;
  state.generation = outer.generation;
  state.arena = outer.arena;
  state.block = outer.block;
  state.message = outer.message;
  state.spent = outer.spent;
  state.stamp = outer.stamp;
  state.stamps_left = outer.stamps_left;
  state.block->running.store(outer.slot, std::memory_order_relaxed);
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
  inbox_.forget_others();
  side_.reset();
  core.ended(*this, sent, handled);
}

void Slot::make_ready() noexcept {
  prefetch_activation(this);
  arena_.core().make_ready(*this);
}

/// Nothing was taken where it leaves the rest to the slow way.
MessageHeader* Slot::take_usual(Node& front, Node* spent) noexcept {
  const NodeOps& ops = *front.ops;
  if (!ops.plain || front.generation != generation_.load(std::memory_order_relaxed) ||
      is_peak(front)) [[unlikely]] {
    return next_message_slowly();
  }
  count_taken(ops);
  inbox_.spend(front, spent);
  return static_cast<MessageHeader*>(&front);
}

/// Only what is taken makes the depth fall, and only a push makes it rise.
inline bool Slot::is_peak(const Node& front) noexcept {
  const std::uint32_t peak = side_.normal_peak.load(std::memory_order_relaxed);
  if (inbox_.is_last(front)) {
    side_.last_seen = 0;   // a later last one may lie where one lay: moved() must not confuse them
    return peak == 0;
  }
  return inbox_.moved(side_.last_seen) && normal_depth() > peak;
}

MessageHeader* Slot::next_message_slowly() noexcept {
  SideRecord::note_peak(side_.normal_peak, normal_depth());
  for (;;) {
    Node* const node = next_node();
    if (node == nullptr) return nullptr;
    count_taken(*node->ops);
    auto& message = static_cast<MessageHeader&>(*node);
    if (admit(message)) return &message;
  }
}

Node* Slot::next_node() noexcept {
  const bool urgent = !urgent_.empty();
  if (!urgent && normal_.empty()) return inbox_.pop();
  ThreadState& state = thread_state();
  if (state.spent != nullptr) free_node(*state.spent);
  state.spent = urgent ? urgent_.pop() : normal_.pop();
  if (urgent) add(side_.urgent_depth, ~0U);
  return state.spent;
}

Inbox::Push Slot::push(Node& node, Lane lane, bool bounded) noexcept {
  const Inbox::Push result = inbox_.push(node, lane, bounded);
  if (result == Inbox::Push::woke) make_ready();
  return result;
}

errc Slot::woken() noexcept {
  thread_state().wakes.add(true);
  make_ready();
  return errc{};
}

errc Slot::put_branchless(Node& node, bool bounded) noexcept {
  const Inbox::Push result = inbox_.try_push_branchless(node, bounded);
  if (result == Inbox::Push::contended) [[unlikely]]
    return put_slowly(node, bounded);
  const bool woke = result == Inbox::Push::woke;
  ThreadState& state = thread_state();
  state.wakes.add(woke);
  // If it is not ours to run: lines of our own, which are here anyway.
  prefetch_activation(select<const void>(woke, this, &state));
  arena_.core().make_ready_if(*this, woke);
  return errc{};
}

errc Slot::put_slowly(Node& node, bool bounded) noexcept {
  const Inbox::Push result = push(node, node.ops->lane, bounded);
  return result <= Inbox::Push::woke ? errc{} : undelivered(node, result);
}

errc Slot::undelivered(Node& node, Inbox::Push why) noexcept {
  const bool full = why == Inbox::Push::full;
  const errc error = full ? errc::overloaded : errc::receiver_gone;
  arena_.core().count(full ? DeadLetter::refused : DeadLetter::receiver_gone, *node.ops->row);
  node.ops->drop(node, error);
  return error;
}

errc Slot::put_and_run(Node& node, Lane lane, bool bounded) noexcept {
  const Inbox::Push result = inbox_.push(node, lane, bounded);
  if (result == Inbox::Push::queued) return errc{};
  if (result != Inbox::Push::woke) return undelivered(node, result);
  ThreadState& state = thread_state();
  if (!runs_inline() || state.slot != nullptr || state.ready_of != nullptr) {
    make_ready();
    return errc{};
  }
  Scheduler& scheduler = arena_.core().scheduler();
  RunnableQueue ready;
  state.ready = &ready;
  state.ready_of = &scheduler;
  state.slice_of = &scheduler;   // work that ends in here counts until what is ready is posted
  state.stamps_left = 0;         // this thread's stamp may be of any age
  run();
  state.ready_of = nullptr;
  state.slice_of = nullptr;
  scheduler.post_all(ready);
  return errc{};
}

errc Slot::put_latest(LatestHeader& node) noexcept {
  bool replaced = false;
  {
    const std::lock_guard guard(latest_lock_);
    if (generation_.load(std::memory_order_relaxed) == node.generation) {
      LatestHeader* queued = latest_;
      while (queued != nullptr && queued->ops != node.ops) queued = queued->latest_next;
      replaced = queued != nullptr;
      if (replaced) {
        node.ops->replace(*queued, node);
      } else {
        node.latest_next = std::exchange(latest_, &node);
      }
    }
  }
  if (replaced) {   // the node holds the older content now
    arena_.core().count(DeadLetter::superseded, *node.ops->row);
    node.ops->drop(node, errc::overloaded);
    return errc{};
  }
  if (push(node)) return errc{};
  {
    const std::lock_guard guard(latest_lock_);
    if (generation_.load(std::memory_order_relaxed) == node.generation) forget_latest(node);
  }
  return undelivered(node, Inbox::Push::dead);
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

bool Slot::admit(MessageHeader& message) noexcept {
  if (message.generation != generation_.load(std::memory_order_relaxed)) {
    return refuse(message, errc::receiver_gone);
  }
  const NodeOps& ops = *message.ops;
  if (ops.message_class == MessageClass::latest) take_latest(static_cast<LatestHeader&>(message));
  if (ops.deadline == nullptr) return true;
  const Clock& clock = arena_.core().clock();
  const TimePoint deadline = ops.deadline(message);
  if (deadline > clock.coarse_now() + limits::coarse_clock_lag) return true;   // most are far away
  return clock.now() <= deadline ? true : refuse(message, errc::timed_out);
}

bool Slot::refuse(MessageHeader& message, errc reason) noexcept {
  arena_.core().count(reason == errc::timed_out ? DeadLetter::expired : DeadLetter::receiver_gone,
                      *message.ops->row);
  if (message.ops->discard != nullptr) message.ops->discard(message, reason);
  return false;
}

}   // namespace detail
}   // namespace duet::runtime
