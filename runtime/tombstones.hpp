// tombstones.hpp: what an actor remembers of urgent messages that came before what they are about.
#pragma once

#include "runtime/assert.hpp"
#include "runtime/limits.hpp"
#include "runtime/time.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace duet::runtime {

/// An urgent message may overtake a normal one, so a cancel may come before its request. Whoever
/// gets one about an id that it has not seen buries the id; the request, when it comes, finds its
/// tombstone and is not started.
///
///   void on(Cancel cancel) {
///     if (!requests_.contains(cancel.id)) tombstones_.bury(cancel.id, cancel.deadline, now());
///     ...
///   void on(Request request) {
///     if (tombstones_.take(request.id, now())) return;
///
/// Each is kept until its request comes or its deadline has passed; that is to be no earlier than
/// the request's own, which the mailbox does not start later. So what is forgotten is not missed.
/// At the bound the one with the earliest deadline makes room, being the next to be useless, and is
/// counted: its request, should it come in time after all, is started as if never cancelled.
///
/// A value of its owner, on that strand. Time is what it is given; it never goes back. Both calls
/// look through all that are kept; that is for few, and for no more than the bound.
template <typename Id>
class Tombstones {
 public:
  explicit Tombstones(std::size_t tombstones_max = limits::tombstones_default)
      : max_(tombstones_max) {
    DUET_ASSERT(tombstones_max > 0);
  }

  /// Of two deadlines for one id the later counts. One that has passed leaves nothing.
  void bury(const Id& id, TimePoint deadline, TimePoint now) {
    expire(now);
    if (deadline <= now) return;
    const auto known = find(id);
    if (known != kept_.end()) {
      if (known->deadline >= deadline) return;
      kept_.erase(known);
    }
    if (kept_.size() == max_) {
      kept_.erase(kept_.begin());
      ++evicted_;
    }
    // By deadline; most come in that order already.
    const auto place = std::upper_bound(
        kept_.begin(), kept_.end(), deadline,
        [](TimePoint time, const Tombstone& tombstone) { return time < tombstone.deadline; });
    kept_.insert(place, Tombstone{deadline, id});
  }

  /// True, once, if `id` was buried and its time has not passed.
  [[nodiscard]] bool take(const Id& id, TimePoint now) {
    if (kept_.empty()) return false;
    expire(now);
    const auto known = find(id);
    if (known == kept_.end()) return false;
    kept_.erase(known);
    return true;
  }

  /// How many are kept, those whose time has passed since the last call included.
  [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); }
  /// How many made room before their time.
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }

 private:
  struct Tombstone {
    TimePoint deadline;
    Id id;
  };
  using Kept = std::vector<Tombstone>;

  [[nodiscard]] typename Kept::iterator find(const Id& id) {
    return std::find_if(kept_.begin(), kept_.end(),
                        [&id](const Tombstone& tombstone) { return tombstone.id == id; });
  }
  void expire(TimePoint now) {
    const auto living = std::find_if(kept_.begin(), kept_.end(), [now](const Tombstone& tombstone) {
      return tombstone.deadline > now;
    });
    kept_.erase(kept_.begin(), living);
  }

  std::size_t max_;
  Kept kept_;   // by deadline
  std::uint64_t evicted_ = 0;
};

}   // namespace duet::runtime
