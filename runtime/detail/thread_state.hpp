// thread_state.hpp: which actor runs on this thread.
#pragma once

#include "runtime/detail/observer.hpp"
#include "runtime/detail/wake_history.hpp"
#include "runtime/error.hpp"
#include "runtime/limits.hpp"
#include "runtime/scheduler.hpp"
#include "runtime/time.hpp"

#include <cstdint>

namespace duet::runtime {

namespace detail {

class Arena;
class Slot;
struct MessageHeader;
struct Node;
struct ThreadBlock;

struct ThreadState {
  Slot* slot = nullptr;           // the running actor; null between activations
  std::uint64_t generation = 0;   // its life
  Arena* arena = nullptr;         // of the activation that runs, or ran last
  ThreadBlock* block = nullptr;   // where this thread counts for that arena
  // Where what this scheduler is given becomes ready: on a pump, and where an actor runs on a
  // completion thread.
  RunnableQueue* ready = nullptr;
  const Scheduler* ready_of = nullptr;
  const Scheduler* slice_of = nullptr;      // who sees later to work that changes here
  bool holds_run = false;                   // the host's run(), as a slice of a pump does
  std::int64_t work_change = 0;             // work that has started here, less what has finished
  std::uint64_t handled = 0;                // messages and completions that actors have begun here
  WakeHistory wakes;                        // of usual messages sent here
  std::uint32_t stamps_left = 0;            // activations that may still use `stamp`
  errc drop_reason = errc::receiver_gone;   // what an unanswered reply that is destroyed now says
  TimePoint stamp{};
  const MessageHeader* message = nullptr;   // that a handler actor handles
  Node* spent = nullptr;                    // its memory is freed before the next one is taken
  Observer* observer = nullptr;             // of a simulation
  // Messages and completions an activation handles; a simulation takes fewer.
  std::uint32_t activation_messages = limits::activation_messages_max;

  /// Whether an actor of that arena runs here.
  [[nodiscard]] bool inside(const Arena& of) const noexcept {
    return slot != nullptr && arena == &of;
  }
};

[[nodiscard]] inline ThreadState& thread_state() noexcept {
  static constinit thread_local ThreadState state;
  return state;
}

/// Messages destroyed in its scope answer their asker with `reason`.
class DropScope {
 public:
  explicit DropScope(errc reason) noexcept : before_(thread_state().drop_reason) {
    thread_state().drop_reason = reason;
  }
  DropScope(const DropScope&) = delete;
  DropScope& operator=(const DropScope&) = delete;
  ~DropScope() { thread_state().drop_reason = before_; }

 private:
  errc before_;
};

}   // namespace detail
}   // namespace duet::runtime
