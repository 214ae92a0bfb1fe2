// monitor.cpp: the list of those who watch one actor.
#include "runtime/detail/monitor.hpp"

#include <algorithm>

namespace duet::runtime::detail {
namespace {

/// Up to here nobody looks for watchers that have ended: few cost little.
constexpr std::uint32_t sweep_min = 16;

}   // namespace

void MonitorList::add(MonitorNode& monitor) noexcept {
  std::uint32_t sweep_at = first_ == nullptr ? sweep_min : first_->sweep_at;
  if (size() >= sweep_at) {
    erase_if([](const MonitorNode& node) { return !node.watcher.alive(); });
    sweep_at = std::max(sweep_min, 2 * size());
  }
  monitor.count = size() + 1;
  monitor.sweep_at = sweep_at;
  monitor.next_monitor = first_;
  first_ = &monitor;
}

void MonitorList::remove(const Address& watcher, bool link) noexcept {
  erase_if([&](const MonitorNode& node) { return node.link == link && node.watcher == watcher; });
}

void MonitorList::tell_all(const Address& actor, const ExitReason& reason) noexcept {
  while (MonitorNode* const monitor = first_) {
    first_ = monitor->next_monitor;
    monitor->fire(*monitor, actor, &reason);
  }
}

template <typename Unwanted>
void MonitorList::erase_if(Unwanted unwanted) noexcept {
  if (first_ == nullptr) return;
  std::uint32_t left = first_->count;
  const std::uint32_t sweep_at = first_->sweep_at;
  for (MonitorNode** link = &first_; *link != nullptr;) {
    MonitorNode* const node = *link;
    if (!unwanted(*node)) {
      link = &node->next_monitor;
      continue;
    }
    *link = node->next_monitor;
    node->fire(*node, Address(), nullptr);
    --left;
  }
  if (first_ == nullptr) return;
  first_->count = left;
  first_->sweep_at = sweep_at;
}

}   // namespace duet::runtime::detail
