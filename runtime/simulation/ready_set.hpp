// ready_set.hpp: what could run next in a simulation.
#pragma once

#include "runtime/address.hpp"
#include "runtime/scheduler.hpp"

#include <cstddef>
#include <vector>

namespace duet::runtime::simulation {

class SimScheduler;

/// A handler that was posted to the simulation's executor: of the host, not of an actor.
class HostHandler : public Runnable {
 public:
  /// Destroys it unrun.
  virtual void drop() noexcept = 0;

 protected:
  ~HostHandler() override = default;
};

/// In the order in which things became ready, unless taken out of it at random. Bounded by the
/// number of actors and posted handlers, since each is in it once. One thread.
class ReadySet {
 public:
  ReadySet() = default;
  ReadySet(const ReadySet&) = delete;
  ReadySet& operator=(const ReadySet&) = delete;
  ~ReadySet() { drop_handlers(); }

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

  /// `owner` is null for a host's handler.
  void push(Runnable& runnable, const SimScheduler* owner);

  /// Takes one out; the last one gets its place.
  [[nodiscard]] Runnable& take(std::size_t index) noexcept;
  /// Takes one out; the order of the others stays.
  [[nodiscard]] Runnable& take_in_order(std::size_t index) noexcept;
  void swap(std::size_t a, std::size_t b) noexcept;

  /// The actor, or an empty address for anything else.
  [[nodiscard]] Address actor(std::size_t index) const noexcept;
  [[nodiscard]] bool has(const Runnable& runnable) const noexcept;

  /// Forgets what a scheduler made ready.
  void forget(const SimScheduler& owner) noexcept;
  void drop_handlers() noexcept;

 private:
  struct Entry {
    Runnable* runnable;
    const SimScheduler* owner;
  };
  std::vector<Entry> entries_;
};

}   // namespace duet::runtime::simulation
