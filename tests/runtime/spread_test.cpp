// spread_test.cpp: which work is given to other pumps: measured loads and trials of one pump more,
// with slices and times of our own making.
#include "runtime/detail/spread.hpp"

#include "runtime/detail/pump_load.hpp"
#include "runtime/limits.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace {

using duet::runtime::Duration;
using duet::runtime::TimePoint;
using duet::runtime::detail::PumpLoad;
using duet::runtime::detail::Spread;
namespace limits = duet::runtime::limits;

constexpr Duration slice_time = std::chrono::microseconds(100);

/// Pumps that always have light work; what each handles in a slice depends on how many are busy.
struct Pumps {
  Spread spread;
  TimePoint now{};
  std::vector<bool> busy = {true, false};
  std::vector<std::uint64_t> handled = {0, 1000, 900};   // a slice and pump, by busy ones
  bool light = true;
  bool backlog = true;   // while a pump is idle
  std::vector<TimePoint> widened;
  std::vector<TimePoint> narrowed;

  [[nodiscard]] std::uint32_t count(bool which) const {
    return static_cast<std::uint32_t>(std::count(busy.begin(), busy.end(), which));
  }
  /// Of pump `i`, which goes on or has nothing more to do.
  Spread::Order end_of_slice(std::size_t i, std::uint64_t messages, bool goes_on) {
    busy[i] = goes_on;
    const bool waits = goes_on && backlog && count(false) > 0;
    return spread.slice_ended(
        {now, messages, &handled[i], goes_on, light, waits, count(true), count(false)});
  }
  /// One slice of each busy pump.
  void slice() {
    now += slice_time;
    const std::vector<bool> running = busy;
    const std::uint64_t messages = handled[count(true)];
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (!running[i]) continue;
      switch (end_of_slice(i, messages, true)) {
        case Spread::Order::stay:
          break;
        case Spread::Order::widen:
          BOOST_TEST_REQUIRE(count(false) > 0U);
          *std::find(busy.begin(), busy.end(), false) = true;
          widened.push_back(now);
          break;
        case Spread::Order::narrow:
          BOOST_TEST_REQUIRE(count(true) > 1U);
          busy[i] = false;
          narrowed.push_back(now);
      }
    }
  }
  void run(Duration time) {
    for (const TimePoint end = now + time; now < end;) slice();
  }
};

}   // namespace

BOOST_AUTO_TEST_SUITE(spread)

BOOST_AUTO_TEST_CASE(heavy_work_is_given_away_at_once_also_where_light_work_runs_between) {
  PumpLoad load;
  BOOST_TEST(load.keep() == 1U);   // unknown
  const auto light = [&load] { load.measured(std::chrono::microseconds(6), 32, 4, 4); };
  const auto run = [&load](Duration time) { load.measured(time, 1, 4, 4); };
  for (int i = 0; i < 20; ++i) light();
  BOOST_TEST(load.keep() > 1000U);
  BOOST_TEST(load.batch() == PumpLoad::batch_max);
  load.measured(std::chrono::milliseconds(3), 32, 4, 4);   // its processor was taken away
  BOOST_TEST(load.light());
  for (int i = 0; i < 20; ++i) light();
  run(std::chrono::milliseconds(2));
  BOOST_TEST(load.batch() == 1U);   // the clock is watched
  for (int i = 0; i < 100; ++i) {
    run(std::chrono::nanoseconds(200));
    run(std::chrono::milliseconds(2));   // the second one is believed
    BOOST_TEST(load.keep() == 1U);
  }
  for (int i = 0; i < 20; ++i) light();
  BOOST_TEST(load.light());
}

BOOST_AUTO_TEST_CASE(one_that_makes_many_light_ones_ready_does_not_make_them_heavy) {
  PumpLoad load;
  for (int i = 0; i < 20; ++i) load.measured(std::chrono::microseconds(6), 32, 40, 8);
  for (int i = 0; i < 10; ++i) {
    load.measured(std::chrono::microseconds(160), 1, 0, 1000);
    BOOST_TEST(load.keep() >= 1000U);
    BOOST_TEST(load.batch() == 1U);   // but the clock is watched
  }
  for (int i = 0; i < 2; ++i) load.measured(std::chrono::milliseconds(2), 1, 0, 20);
  BOOST_TEST(load.keep() == 1U);
}

BOOST_AUTO_TEST_CASE(what_waits_for_long_together_is_given_away) {
  PumpLoad load;
  for (int i = 0; i < 40; ++i) load.measured(std::chrono::microseconds(32), 32, 4, 4);
  BOOST_TEST(load.keep() == limits::backlog_ns_max / 1000);
}

BOOST_AUTO_TEST_CASE(what_has_waited_for_a_window_is_tried_on_one_more_pump) {
  Pumps pumps;
  pumps.run(limits::spread_window);
  BOOST_TEST(pumps.count(true) == 1U);
  pumps.slice();
  BOOST_TEST(pumps.count(true) == 2U);
}

BOOST_AUTO_TEST_CASE(what_gains_stays_until_it_is_reviewed_and_then_longer) {
  Pumps pumps;
  pumps.run(10 * limits::spread_rest_max);
  BOOST_TEST(pumps.count(true) == 2U);
  BOOST_TEST_REQUIRE(pumps.narrowed.size() >= 6U);
  const auto kept = [&pumps](std::size_t i) { return pumps.narrowed[i] - pumps.widened[i]; };
  BOOST_TEST((kept(0) >= limits::spread_rest_min));
  for (std::size_t i = 1; i < pumps.narrowed.size(); ++i) {
    BOOST_TEST((kept(i) >= kept(i - 1)));
    // Alone for as long as it takes to measure that, no longer.
    BOOST_TEST(
        (pumps.widened[i] - pumps.narrowed[i - 1] <= limits::spread_window + 2 * slice_time));
  }
  BOOST_TEST((kept(pumps.narrowed.size() - 1) >= limits::spread_rest_max));
}

BOOST_AUTO_TEST_CASE(what_does_not_gain_is_given_back_and_the_next_trial_waits_longer) {
  Pumps pumps;
  pumps.handled = {0, 1000, 400};
  pumps.run(10 * limits::spread_rest_max);
  BOOST_TEST_REQUIRE(pumps.narrowed.size() >= 7U);
  Duration rested = Duration::zero();
  for (std::size_t i = 0; i + 1 < pumps.narrowed.size(); ++i) {
    BOOST_TEST((pumps.narrowed[i] - pumps.widened[i] <= 2 * limits::spread_window + slice_time));
    const Duration rest = pumps.widened[i + 1] - pumps.narrowed[i];
    BOOST_TEST((rest >= rested));
    rested = rest;
  }
  BOOST_TEST((rested >= limits::spread_rest_max));
  BOOST_TEST((rested <= limits::spread_rest_max + limits::spread_window + slice_time));
}

BOOST_AUTO_TEST_CASE(a_trial_without_a_clear_result_goes_on_for_a_while) {
  Pumps late;
  late.handled = {0, 1000, 500};   // both on one processor, at first
  late.run(limits::spread_window + slice_time);
  BOOST_TEST_REQUIRE(late.count(true) == 2U);
  late.run(8 * limits::spread_window);
  BOOST_TEST(late.count(true) == 2U);
  late.handled = {0, 1000, 900};
  late.run(limits::spread_rest_min / 2);
  BOOST_TEST(late.count(true) == 2U);
  BOOST_TEST(late.narrowed.empty());

  Pumps never;
  never.handled = {0, 1000, 600};   // together a fifth more, which is not worth it
  never.run(limits::spread_window + slice_time);
  BOOST_TEST_REQUIRE(never.count(true) == 2U);
  never.run((limits::spread_windows_max + 2) * limits::spread_window);
  BOOST_TEST(never.count(true) == 1U);
}

BOOST_AUTO_TEST_CASE(what_gains_no_more_is_given_back_at_the_review) {
  Pumps pumps;
  pumps.run(limits::spread_rest_min);
  BOOST_TEST_REQUIRE(pumps.count(true) == 2U);
  pumps.handled = {0, 1000, 300};   // the actors begin to send to each other
  pumps.run(3 * limits::spread_rest_min);
  BOOST_TEST(pumps.count(true) == 1U);
}

BOOST_AUTO_TEST_CASE(a_pump_more_is_tried_beside_each_number_that_gains) {
  Pumps pumps;
  pumps.busy = {true, false, false, false};
  pumps.handled = {0, 1000, 950, 900, 500};   // four handle less than three
  std::uint32_t most = 0;
  std::uint32_t at_three = 0;
  for (int i = 0; i < 100'000; ++i) {
    pumps.slice();
    most = std::max(most, pumps.count(true));
    at_three += pumps.count(true) == 3 ? 1 : 0;
  }
  BOOST_TEST(most == 4U);
  BOOST_TEST(at_three >= 90'000U);
}

BOOST_AUTO_TEST_CASE(nothing_is_tried_where_nothing_waits_and_nothing_taken_from_heavy_work) {
  Pumps pumps;
  pumps.backlog = false;
  pumps.run(limits::spread_rest_max);
  for (int i = 0; i < 1000; ++i) {   // now and then something waits, never for a window
    pumps.backlog = i % 9 != 0;
    pumps.slice();
  }
  BOOST_TEST(pumps.widened.empty());

  Pumps heavy;
  heavy.busy = {true, true};
  heavy.light = false;
  heavy.run(limits::spread_rest_max);
  BOOST_TEST(heavy.widened.empty());
  BOOST_TEST(heavy.narrowed.empty());
}

BOOST_AUTO_TEST_CASE(light_work_that_came_to_two_pumps_is_reviewed_too) {
  Pumps pumps;
  pumps.busy = {true, true};
  pumps.handled = {0, 1000, 300};
  pumps.run(limits::spread_rest_min + slice_time);
  BOOST_TEST(pumps.count(true) == 1U);
  BOOST_TEST(pumps.widened.empty());
}

BOOST_AUTO_TEST_CASE(a_trial_ends_when_one_has_nothing_more_to_do) {
  Pumps pumps;
  pumps.run(limits::spread_window + slice_time);
  BOOST_TEST_REQUIRE(pumps.count(true) == 2U);
  pumps.now += slice_time;
  BOOST_TEST((pumps.end_of_slice(1, 10, false) == Spread::Order::stay));
  const TimePoint finished = pumps.now;
  pumps.run(limits::spread_pause + 2 * limits::spread_window);
  BOOST_TEST(pumps.narrowed.empty());
  BOOST_TEST_REQUIRE(pumps.widened.size() == 2U);
  BOOST_TEST((pumps.widened[1] - finished >= limits::spread_pause));
}

BOOST_AUTO_TEST_CASE(a_trial_gives_no_order_to_a_pump_that_is_idle_by_now) {
  Pumps pumps;
  pumps.handled = {0, 1000, 0};
  pumps.run(limits::spread_window + slice_time);
  BOOST_TEST_REQUIRE(pumps.count(true) == 2U);
  pumps.now += 2 * limits::spread_window;   // it settles
  BOOST_TEST((pumps.end_of_slice(0, 0, true) == Spread::Order::stay));
  pumps.now += 2 * limits::spread_window;
  // It became idle, and was woken again before its last slice is told of.
  const auto told =
      pumps.spread.slice_ended({pumps.now, 0, &pumps.handled[1], false, false, false, 2, 0});
  BOOST_TEST((told == Spread::Order::stay));
  BOOST_TEST((pumps.end_of_slice(0, 0, true) == Spread::Order::narrow));
}

BOOST_AUTO_TEST_CASE(a_trial_ends_where_the_work_turns_heavy_or_nothing_is_handled) {
  Pumps pumps;
  pumps.run(limits::spread_window + slice_time);
  BOOST_TEST_REQUIRE(pumps.count(true) == 2U);
  pumps.light = false;
  pumps.run(limits::spread_rest_max);
  BOOST_TEST(pumps.narrowed.empty());

  Pumps nothing;
  nothing.handled = {0, 0, 0};
  nothing.run(3 * limits::spread_window + 3 * slice_time);
  BOOST_TEST(nothing.widened.size() == 1U);
  BOOST_TEST(nothing.narrowed.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
