// spread.hpp: how many pumps share light work, found by trial.
#pragma once

#include "runtime/time.hpp"

#include <cstdint>

namespace duet::runtime::detail {

/// Light activations that wait for each other may be done sooner with one more pump, or later: the
/// actors may live apart from each other, or send to each other all the time, so that each message
/// goes from one processor's cache to the other's. Nothing tells but to try. So where light work
/// has waited for a while and a pump is idle, that one is given half of it; unless clearly more
/// messages a second are handled then, one gives its work back and the next trial waits longer.
/// Where several pumps are busy with light work, one less is tried in the same way now and then.
///
/// Knows no clock and has no lock: the scheduler tells it of the end of each slice.
class Spread {
 public:
  enum class Order : std::uint8_t {
    stay,
    widen,   ///< give half of this pump's work to an idle one
    narrow   ///< give all of this pump's work to the others and become idle
  };

  struct Slice {
    TimePoint end;
    std::uint64_t handled;   // messages and completions in it
    const void* pump;        // that has run it
    bool goes_on;            // that pump is not idle now
    bool light;              // what it has to do is light
    bool backlog;            // and waits for other light work
    std::uint32_t busy;      // pumps
    std::uint32_t idle;
  };
  [[nodiscard]] Order slice_ended(const Slice& slice) noexcept;

 private:
  [[nodiscard]] Order measure(const Slice& slice) noexcept;
  [[nodiscard]] Order judge(const Slice& slice) noexcept;
  void begin_window(TimePoint now) noexcept;
  [[nodiscard]] double rate(TimePoint now) const noexcept;
  /// The trial is over, without success.
  void rest(TimePoint now, Duration least) noexcept;
  void succeeded(TimePoint now) noexcept;

  enum class Phase : std::uint8_t { steady, settling, trial };

  std::uint64_t total_ = 0;   // handled, ever
  Phase phase_ = Phase::steady;
  std::uint32_t busy_ = 0;           // in a trial, pumps that take part
  std::uint32_t windows_left_ = 0;   // of a trial without a clear result
  const void* waiting_ = nullptr;    // the pump whose work has waited since the window began
  TimePoint window_begin_{};
  std::uint64_t window_total_ = 0;
  double rate_before_ = 0;   // a nanosecond
  TimePoint next_trial_{};
  TimePoint review_ = TimePoint::max();
  bool reviewing_ = false;   // the next trial shows whether the review was right
  Duration rest_{};          // after the next failure
  Duration trust_{};         // after the next success
};

}   // namespace duet::runtime::detail
