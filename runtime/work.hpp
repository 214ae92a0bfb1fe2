// work.hpp: keeps the host's run() from returning.
#pragma once

#include "runtime/address.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/core.hpp"

#include <utility>

namespace duet::runtime {

/// While one lives something is still to come for a system: a vendor call, a foreign callback. May
/// outlive the actor and the system.
class Work {
 public:
  Work() = default;
  /// Of the system of an actor; nothing if that has ended.
  explicit Work(const Address& actor) noexcept {
    if (actor.empty()) return;
    const detail::Inside inside(actor.slot()->arena());
    if (!inside || !actor.alive()) return;
    actor_ = actor;
    core_ = actor.slot()->arena().core().weak_from_this();
    actor.slot()->arena().core().scheduler().work_started();
  }
  Work(Work&& other) noexcept
      : actor_(std::exchange(other.actor_, Address())), core_(std::move(other.core_)) {}
  Work& operator=(Work&&) = delete;
  ~Work() {
    if (actor_.empty()) return;
    const detail::Inside inside(actor_.slot()->arena());
    if (!inside) return;
    // The place may belong to another system by now.
    const auto core = core_.lock();
    if (core.get() == &actor_.slot()->arena().core()) core->scheduler().work_finished();
  }

 private:
  Address actor_;
  std::weak_ptr<detail::Core> core_;
};

}   // namespace duet::runtime
