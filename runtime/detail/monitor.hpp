// monitor.hpp: who wants to hear of an actor's end.
#pragma once

#include "runtime/detail/node.hpp"

#include <cstdint>

namespace duet::runtime {
class ExitReason;
}   // namespace duet::runtime

namespace duet::runtime::detail {

/// Lies in the watched slot's list until the actor ends.
struct MonitorNode : Node {
  /// Tells the watcher and frees the node; without a reason it only frees it.
  void (*fire)(MonitorNode& monitor, const Address& actor, const ExitReason* reason) = nullptr;
  Address watcher;
  MonitorNode* next_monitor = nullptr;
  bool link = false;   // part of a link, so that unlink() finds it

  // Of the first node of a list: those of the whole list.
  std::uint32_t count = 0;
  std::uint32_t sweep_at = 0;   // at this count the watchers that have ended are taken out
};

/// One pointer long, because every actor has one. Used on the watched actor's strand.
class MonitorList {
 public:
  MonitorList() = default;
  MonitorList(const MonitorList&) = delete;
  MonitorList& operator=(const MonitorList&) = delete;

  /// Takes watchers that have ended out now and then, so that who outlives many of them holds at
  /// most twice as many as live, and a few.
  void add(MonitorNode& monitor) noexcept;

  /// Takes out what `watcher` has here: its links, or its monitors.
  void remove(const Address& watcher, bool link) noexcept;

  /// The watched actor has ended; the list is empty after it.
  void tell_all(const Address& actor, const ExitReason& reason) noexcept;

  [[nodiscard]] std::uint32_t size() const noexcept {
    return first_ == nullptr ? 0 : first_->count;
  }

 private:
  template <typename Unwanted>
  void erase_if(Unwanted unwanted) noexcept;

  MonitorNode* first_ = nullptr;
};

}   // namespace duet::runtime::detail
