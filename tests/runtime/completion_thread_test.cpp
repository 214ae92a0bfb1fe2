// completion_thread_test.cpp: every call is finished exactly once, whatever happens to its lane.
#include "runtime/real_completion_source.hpp"

#include <boost/test/unit_test.hpp>

#include <future>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Waits in run() until it is let go, and tells how it was finished.
class GatedCall final : public duet::runtime::BlockingCall {
 public:
  void run() noexcept override {
    started.set_value();
    gate.get_future().wait();
  }
  void finish(bool ran) noexcept override { finished.set_value(ran); }

  std::promise<void> started;
  std::promise<void> gate;
  std::promise<bool> finished;
};

class NumberedCall final : public duet::runtime::BlockingCall {
 public:
  NumberedCall(std::vector<int>& order, int number) : order_(order), number_(number) {}
  void run() noexcept override { order_.push_back(number_); }
  void finish(bool ran) noexcept override { finished.set_value(ran); }

  std::promise<bool> finished;

 private:
  std::vector<int>& order_;   // only the lane's thread writes; read after the last finish
  int number_;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(completion_thread)

BOOST_AUTO_TEST_CASE(calls_run_in_order_and_each_is_finished_once) {
  duet::runtime::RealCompletionSource source;
  auto lane = source.open_lane("test-lane-with-a-long-name", 100);
  std::vector<int> order;
  std::vector<std::unique_ptr<NumberedCall>> calls;
  for (int i = 0; i < 50; ++i) {
    calls.push_back(std::make_unique<NumberedCall>(order, i));
    BOOST_TEST_REQUIRE(lane->push(*calls.back()));
  }
  for (auto& call : calls) BOOST_TEST(call->finished.get_future().get());
  lane->close();
  BOOST_TEST(order.size() == 50U);
  BOOST_TEST(std::is_sorted(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE(a_full_lane_refuses_and_a_closed_lane_finishes_what_waits_without_running_it) {
  duet::runtime::RealCompletionSource source;
  auto lane = source.open_lane("full", 1);
  GatedCall running;
  std::vector<int> order;
  NumberedCall waiting(order, 1);
  NumberedCall refused(order, 2);
  BOOST_TEST_REQUIRE(lane->push(running));
  running.started.get_future().wait();
  BOOST_TEST(lane->push(waiting));
  BOOST_TEST(!lane->push(refused));

  std::thread closer([&lane] { lane->close(); });
  // close() takes the waiting call out before it waits for the running one, but finishes it only
  // afterwards.
  running.gate.set_value();
  closer.join();
  BOOST_TEST(running.finished.get_future().get());
  // The gate may have opened before the lane was closed; then the waiting call ran.
  const bool ran = waiting.finished.get_future().get();
  BOOST_TEST(order.size() == (ran ? 1U : 0U));
  BOOST_TEST(!lane->push(refused));
}

BOOST_AUTO_TEST_CASE(an_abandoned_call_is_counted_until_it_comes_back) {
  duet::runtime::RealCompletionSource source;
  auto lane = source.open_lane("stuck", 4);
  GatedCall stuck;
  std::vector<int> order;
  NumberedCall waiting(order, 1);
  BOOST_TEST_REQUIRE(lane->push(stuck));
  stuck.started.get_future().wait();
  BOOST_TEST_REQUIRE(lane->push(waiting));

  BOOST_TEST(lane->abandon());
  BOOST_TEST(source.abandoned() == 1U);
  BOOST_TEST(!waiting.finished.get_future().get());
  BOOST_TEST(!lane->abandon());
  lane.reset();

  stuck.gate.set_value();
  BOOST_TEST(stuck.finished.get_future().get());
  // The thread lowers the count right after finish(); nothing else can be waited for.
  while (source.abandoned() != 0) std::this_thread::yield();
  BOOST_TEST(order.empty());
}

BOOST_AUTO_TEST_CASE(abandoning_an_idle_lane_leaves_nothing_behind) {
  duet::runtime::RealCompletionSource source;
  auto lane = source.open_lane("idle", 4);
  BOOST_TEST(!lane->abandon());
  BOOST_TEST(source.abandoned() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
