// pending.hpp: things an actor waits for: a timer, a reply, a computation.
#pragma once

#include "runtime/error.hpp"
#include "runtime/time.hpp"

#include <cstdint>

namespace duet::runtime {

class ActorBase;

namespace detail {

struct Node;
class Pending;
class TimerNode;

class PendingList {
 public:
  [[nodiscard]] Pending* first() const noexcept { return first_; }
  /// What waits under `id`, or null: it has been resolved already.
  [[nodiscard]] Pending* find(std::uint64_t id) const noexcept;

 private:
  friend class Pending;
  Pending* first_ = nullptr;
};

/// Linked while it waits; resolved once, on the actor's strand. Destroying it forgets it: a timer
/// is cancelled, and what still comes for its id is late.
class Pending {
 public:
  explicit Pending(ActorBase& actor) noexcept : actor_(actor) {}
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  [[nodiscard]] ActorBase& actor() const noexcept { return actor_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] Pending* next() const noexcept { return next_; }
  [[nodiscard]] bool linked() const noexcept { return id_ != 0; }

  /// The timer is due.
  virtual void expired() = 0;
  /// A node with our id arrived: takes what it carries. The node is freed, then resolved() is
  /// called.
  virtual void answered(Node& node) { static_cast<void>(node); }
  virtual void resolved() {}
  /// The actor is being stopped, or this wait lost a race.
  virtual void cancel() noexcept = 0;
  /// The actor ends: let go of whatever waits here, without resuming it.
  virtual void abandon() noexcept = 0;

 protected:
  virtual ~Pending() {
    if (linked()) unlink();
  }

  /// Begins to wait; with `holds_work` the host's run() does not return meanwhile.
  void link(bool holds_work) noexcept;
  void unlink() noexcept;
  void arm(TimePoint due);

 private:
  friend class TimerNode;
  void cancel_timer() noexcept;

  ActorBase& actor_;
  Pending* next_ = nullptr;
  Pending** link_ = nullptr;
  std::uint64_t id_ = 0;
  TimerNode* timer_ = nullptr;
  bool holds_work_ = false;
};

}   // namespace detail
}   // namespace duet::runtime
