// pump_load.hpp: what the runnables of one pump take.
#pragma once

#include "runtime/limits.hpp"
#include "runtime/time.hpp"

#include <algorithm>
#include <cstdint>

namespace duet::runtime::detail {

/// Measured in batches, because a look at the clock costs as much as a light activation.
class PumpLoad {
 public:
  static constexpr std::uint32_t batch_max = 32;

  /// `ran` runnables, one at least, took `time`; so many were ready `before` and are `now`.
  void measured(Duration time, std::uint32_t ran, std::uint64_t before,
                std::uint64_t now) noexcept {
    const auto took = static_cast<std::uint64_t>(time.count());
    // All fall slowly, as heavy and light ones may take turns. One that makes a thousand light ones
    // ready is heavy, but they are not: its time is shared among them.
    const std::uint64_t each = took / (ran + (now > before ? now - before : 0));
    // And one alone may be a light one whose processor was taken away meanwhile.
    const std::uint64_t believed = std::min(each, any_ns_);
    any_ns_ = std::max({took / ran, any_ns_ / 2, std::uint64_t{1}});
    waiting_ns_ = std::max({believed, waiting_ns_ / 2, std::uint64_t{1}});
    batch_ = batch_max;
    if (any_ns_ * batch_max > look_ns) {
      batch_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(look_ns / any_ns_, 1));
    }
    const bool heavy = waiting_ns_ >= limits::worth_moving_ns;
    keep_ = heavy ? 1 : limits::backlog_ns_max / waiting_ns_;
  }

  /// Runnables until the next look at the clock: 1 .. batch_max.
  [[nodiscard]] std::uint32_t batch() const noexcept { return batch_; }
  /// If more than so many are ready, half of them is worth giving to an idle pump; 1 at least.
  [[nodiscard]] std::uint64_t keep() const noexcept { return keep_; }
  [[nodiscard]] bool light() const noexcept { return keep_ > 1; }

 private:
  static constexpr std::uint64_t look_ns = limits::slice_ns_max / 8;   // so a slice ends in time

  std::uint64_t waiting_ns_ = limits::worth_moving_ns;   // a runnable that waits; heavy at first
  std::uint64_t any_ns_ = limits::worth_moving_ns;       // any
  std::uint64_t keep_ = 1;
  std::uint32_t batch_ = 1;
};

}   // namespace duet::runtime::detail
