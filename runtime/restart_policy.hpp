// restart_policy.hpp: when, how often and how soon an ended child is started again. Pure.
#pragma once

#include "runtime/limits.hpp"
#include "runtime/time.hpp"

#include <chrono>
#include <cstdint>
#include <deque>

namespace duet::runtime {

/// Which ends of a child call for another life.
enum class Restart : std::uint8_t {
  permanent,   ///< Every end.
  transient,   ///< An abnormal one: ExitReason::abnormal().
  temporary,   ///< None; the child is forgotten once it has ended.
};

/// Who is started again when one child is. Children are ordered as they were added. With a group
/// those start that had finished by themselves, too; temporary ones that it stops are forgotten.
enum class Strategy : std::uint8_t {
  one_for_one,    ///< That child.
  rest_for_one,   ///< It and all after it, which are stopped first, the last one first.
  one_for_all,    ///< All, stopped likewise.
};

/// A supervisor whose children need more restarts than this gives up.
struct RestartLimit {
  std::uint32_t restarts_max = limits::restarts_max_default;   ///< 0: the first failure is too many
  Duration window = std::chrono::seconds(60);
};

/// How long a child stays away before its next life.
struct Backoff {
  Duration first = std::chrono::milliseconds(50);
  Duration longest = std::chrono::seconds(10);
  double jitter = 0.5;   ///< 0..1: the share of a delay that chance may take off
};

/// min(longest, first * 2^(restart - 1)), less chance * jitter of it. `restart` counts from 1,
/// `chance` is uniform in [0, 1).
[[nodiscard]] Duration backoff_delay(const Backoff& backoff, std::uint32_t restart,
                                     double chance) noexcept;

/// The restarts of the last while. Keeps at most restarts_max times.
class RestartWindow {
 public:
  explicit RestartWindow(const RestartLimit& limit) : limit_(limit) {}

  /// One more at `now`, which never goes back. False if that is one too many; it is not counted
  /// then.
  [[nodiscard]] bool admit(TimePoint now);

  [[nodiscard]] std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(times_.size());
  }

 private:
  RestartLimit limit_;
  std::deque<TimePoint> times_;
};

}   // namespace duet::runtime
