// wake_history.hpp: whether it can be foretold that a message wakes its receiver.
#pragma once

#include <bit>
#include <cstdint>

namespace duet::runtime::detail {

/// Of the usual messages that one thread has sent: to a normal lane, not contended. Where they
/// always wake the receiver, or never, or in turn, the processor predicts the branch on it and pays
/// nothing. Where senders and receivers meet at random, it mispredicts every other time, about
/// twenty cycles each by estimate; then a longer way without the branch is faster
/// (docs/decisions/0006).
class WakeHistory {
 public:
  void add(bool woke) noexcept { newest_ = 2 * newest_ + static_cast<std::uint64_t>(woke); }
  /// Judges the last 64 messages; call it now and then.
  void look() noexcept {
    const int changes = std::popcount(newest_ ^ (newest_ << 1U));
    vary_ = changes >= changes_min && changes <= 64 - changes_min;
  }
  /// Instead of a look: a simulation goes both ways.
  void assume(bool vary) noexcept { vary_ = vary; }
  /// As of the last look: as good as random. What repeats after 3 to 9 messages counts as that too.
  [[nodiscard]] bool vary() const noexcept { return vary_; }

 private:
  static constexpr int changes_min = 13;   // 32 are usual at random, with a deviation of 4

  std::uint64_t newest_ = 0;   // a bit each, the last one lowest
  bool vary_ = false;
};

}   // namespace duet::runtime::detail
