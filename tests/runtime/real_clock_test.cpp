// real_clock_test.cpp: timers behind one Asio timer. No assertion depends on how long anything
// takes.
#include "runtime/real_clock.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <vector>

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

struct FunctionTimer final : duet::runtime::Timer {
  explicit FunctionTimer(std::function<void()> function) : on_expired(std::move(function)) {}
  void expired() noexcept override { on_expired(); }
  std::function<void()> on_expired;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(real_clock)

BOOST_AUTO_TEST_CASE(timers_expire_in_order_not_before_their_time_and_run_returns) {
  boost::asio::io_context io;
  duet::runtime::RealClock clock(io.get_executor());
  std::vector<int> order;
  const auto start = clock.now();
  FunctionTimer late([&] { order.push_back(2); });
  FunctionTimer early([&] {
    BOOST_TEST((clock.now() >= start + milliseconds(1)));
    order.push_back(1);
  });
  clock.arm(late, start + milliseconds(2));
  clock.arm(early, start + milliseconds(1));   // moves the Asio timer forward
  io.run();
  BOOST_TEST(order == (std::vector<int>{1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_coarse_clock_is_behind_the_other_and_not_far) {
  boost::asio::io_context io;
  const duet::runtime::RealClock clock(io.get_executor());
  for (int i = 0; i < 1000; ++i) {
    const auto coarse = clock.coarse_now();
    const auto now = clock.now();
    BOOST_TEST_REQUIRE((coarse <= now));
    BOOST_TEST_REQUIRE(
        (now - coarse < std::chrono::seconds(10)));   // of the same origin; the machine may be slow
  }
}

BOOST_AUTO_TEST_CASE(a_cancelled_timer_does_not_expire_and_the_next_one_does) {
  boost::asio::io_context io;
  duet::runtime::RealClock clock(io.get_executor());
  int expired = 0;
  FunctionTimer cancelled([&] { expired += 100; });
  FunctionTimer kept([&] { expired += 1; });
  clock.arm(cancelled, clock.now());
  clock.arm(kept, clock.now() + milliseconds(1));
  BOOST_TEST(clock.cancel(cancelled));
  BOOST_TEST(!clock.cancel(cancelled));
  io.run();
  BOOST_TEST(expired == 1);
}

BOOST_AUTO_TEST_CASE(a_timer_may_arm_itself_and_cancel_another_while_it_expires) {
  boost::asio::io_context io;
  duet::runtime::RealClock clock(io.get_executor());
  int runs = 0;
  FunctionTimer far([] { BOOST_FAIL("cancelled"); });
  FunctionTimer again([] {});
  again.on_expired = [&] {
    if (++runs < 3) clock.arm(again, clock.now());
    if (runs == 3) BOOST_TEST(clock.cancel(far));
  };
  clock.arm(far, clock.now() + hours(1));
  clock.arm(again, clock.now());
  while (runs < 3) io.run_one();
  BOOST_TEST(runs == 3);
}

BOOST_AUTO_TEST_SUITE_END()
