// timer_heap_test.cpp: the order of timers.
#include "runtime/timer_heap.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace {

using duet::runtime::TimePoint;
using std::chrono::nanoseconds;

struct CountingTimer final : duet::runtime::Timer {
  void expired() noexcept override { ++count; }
  int count = 0;
};

TimePoint at(std::int64_t nanosecond) {
  return TimePoint(nanoseconds(nanosecond));
}

}   // namespace

BOOST_AUTO_TEST_SUITE(timer_heap)

BOOST_AUTO_TEST_CASE(timers_come_out_by_due_time_and_ties_by_the_order_of_arming) {
  duet::runtime::TimerHeap heap;
  std::array<CountingTimer, 5> timers;
  const std::array<std::int64_t, 5> due = {30, 10, 30, 20, 10};
  for (std::size_t i = 0; i < timers.size(); ++i) heap.arm(timers[i], at(due[i]));
  std::vector<std::size_t> order;
  while (auto* timer = heap.pop_due(at(30))) {
    order.push_back(static_cast<std::size_t>(static_cast<CountingTimer*>(timer) - timers.data()));
  }
  BOOST_TEST(order == (std::vector<std::size_t>{1, 4, 3, 0, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_timer_that_is_not_due_stays) {
  duet::runtime::TimerHeap heap;
  CountingTimer timer;
  heap.arm(timer, at(11));
  BOOST_TEST(heap.pop_due(at(10)) == nullptr);
  BOOST_TEST(heap.pop_due(at(11)) == &timer);
  BOOST_TEST(heap.empty());
}

BOOST_AUTO_TEST_CASE(arming_again_moves_and_removing_twice_is_told) {
  duet::runtime::TimerHeap heap;
  CountingTimer early;
  CountingTimer late;
  heap.arm(early, at(1));
  heap.arm(late, at(2));
  heap.arm(early, at(3));
  BOOST_TEST(heap.size() == 2U);
  BOOST_TEST(heap.earliest() == &late);
  BOOST_TEST(heap.remove(late));
  BOOST_TEST(!heap.remove(late));
  BOOST_TEST(heap.remove(early));
}

BOOST_AUTO_TEST_CASE(random_arming_and_removing_keeps_the_order) {
  duet::runtime::TimerHeap heap;
  std::vector<CountingTimer> timers(200);
  std::uint64_t state = 1;
  const auto draw = [&state] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return state >> 33U;
  };
  for (int step = 0; step < 5000; ++step) {
    CountingTimer& timer = timers[draw() % timers.size()];
    if (draw() % 3 == 0) {
      heap.remove(timer);
    } else {
      heap.arm(timer, at(static_cast<std::int64_t>(draw() % 50)));
    }
  }
  TimePoint last = at(0);
  while (auto* timer = heap.pop_due(at(50))) {
    BOOST_TEST_REQUIRE((timer->due() >= last));
    last = timer->due();
  }
  BOOST_TEST(heap.empty());
}

BOOST_AUTO_TEST_SUITE_END()
