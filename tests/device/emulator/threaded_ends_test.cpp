// threaded_ends_test.cpp: how jobs on real threads end: resets, faults, close, destruction.
#include "device/emulator/threaded_cores.hpp"
#include "tests/device/emulator/threaded_rig.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace duet::device::emulator {
namespace {

using namespace fixture;

BOOST_AUTO_TEST_SUITE(threaded_ends)

BOOST_AUTO_TEST_CASE(a_chip_reset_waits_for_the_computation_and_ends_its_job_as_stale) {
  Rig rig{1, nullptr, true};
  ThreadedBoard& board = rig.configured();
  rig.gate.hold(0);
  const JobTicket running = rig.start(a_prefill, 1, 0, {1});
  rig.gate.await_arrival(0);
  const JobTicket queued = rig.start(a_prefill, 2, 0, {1}, 1);
  bool reset = false;
  std::thread resetter{[&] { reset = board.reset(ResetScope::chip, 0).has_value(); }};
  // The queued job ends at once; only the running one is waited for.
  BOOST_TEST((board.wait(queued, no_deadline)->status == errc::stale_generation));
  BOOST_TEST(run_sequence(rig, 1, 1001, 3, 0));
  rig.gate.let_go(0);
  BOOST_TEST((board.wait(running, no_deadline)->status == errc::stale_generation));
  resetter.join();
  BOOST_TEST(reset);
  BOOST_TEST(run_sequence(rig, 0, 3, 3, 0));
}

BOOST_AUTO_TEST_CASE(buffers_stay_mapped_through_a_device_reset_until_released) {
  Rig rig;
  ThreadedBoard& board = rig.configured();
  IoBuffers old = rig.io[a_prefill][0];
  BOOST_REQUIRE(board.reset(ResetScope::device, 0).has_value());
  old.tokens[0] = 5;
  old.logits[0] = 1;
  BOOST_TEST(board.release_io(old.id).has_value());
  REFUSED(board.release_io(old.id), errc::unknown_name);
  BOOST_REQUIRE(board.load_package("demo").has_value());
  BOOST_REQUIRE(board.configure().has_value());
  BOOST_REQUIRE(board.kv_reserve(0, 1, 1, 1).has_value());
  REFUSED(board.submit(rig.job(a_prefill, 1, 0, {1}, 1)), errc::bad_argument);
}

// no AlreadyConfigured, no leak of accounting over many cycles.
BOOST_AUTO_TEST_CASE(configure_run_and_reset_can_go_round_and_round) {
  Rig rig;
  ThreadedBoard& board = rig.make();
  BOOST_REQUIRE(board.open().has_value());
  for (int cycle = 0; cycle < 20; ++cycle) {
    BOOST_REQUIRE(board.load_package("demo").has_value());
    BOOST_REQUIRE(board.configure().has_value());
    for (GraphHandle graph = 0; graph < 4; ++graph) {
      rig.io[graph][0] = board.allocate_io(graph).value();
    }
    BOOST_REQUIRE(run_sequence(rig, 1, 1001, 2, 0));
    for (GraphHandle graph = 0; graph < 4; ++graph) {
      BOOST_REQUIRE(board.release_io(rig.io[graph][0].id).has_value());
    }
    BOOST_REQUIRE(board.reset_configuration().has_value());
    BOOST_REQUIRE(board.memory_usage(1)->used_bytes.value() == 0U);
  }
  BOOST_TEST(board.counters().configures == 20U);
}

BOOST_AUTO_TEST_CASE(close_with_a_job_in_flight_ends_the_waits_and_frees_the_board) {
  Rig rig{1, nullptr, true};
  ThreadedBoard& board = rig.configured();
  rig.gate.hold(0);
  const JobTicket ticket = rig.start(a_prefill, 1, 0, {1});
  rig.gate.await_arrival(0);
  bool told = false;
  bool closed = false;
  std::thread closer{[&] { closed = board.close().has_value(); }};
  std::thread waiter{[&] {
    // It gets the job's end, which is success if it came before the close, or learns of the close.
    const auto end = board.wait(ticket, no_deadline);
    told = end.has_error() ? end.error().code == errc::not_open
                           : !end->status || end->status == errc::stale_generation;
  }};
  rig.gate.let_go(0);
  closer.join();
  waiter.join();
  BOOST_TEST(closed);
  BOOST_TEST(told);
  BOOST_TEST(board.open().has_value());
  BOOST_TEST(board.memory_usage(0)->used_bytes.value() == 0U);
}

BOOST_AUTO_TEST_CASE(a_board_is_destroyed_while_jobs_run_and_its_lock_is_free_after) {
  Rig rig{2, nullptr, true};
  rig.configured();
  rig.gate.hold(0);
  rig.start(a_prefill, 1, 0, {1});
  rig.start(b_prefill, 1001, 0, {1});
  rig.gate.await_arrival(0);
  std::thread destroyer{[&] { rig.board.reset(); }};
  rig.gate.let_go(0);
  destroyer.join();
  BOOST_TEST(ThreadedBoard{rig.options}.open().has_value());
}

BOOST_AUTO_TEST_CASE(a_job_that_never_ends_leaves_by_reset_or_close) {
  for (const bool by_close : {false, true}) {
    OneFault hook{FaultPoint::compute_start, Fault::never_ends()};
    Rig rig{1, &hook};
    ThreadedBoard& board = rig.configured();
    const JobTicket ticket = rig.start(a_prefill, 1, 0, {1});
    REFUSED(board.wait(ticket, past_deadline), errc::wait_timeout);
    BOOST_TEST(run_sequence(rig, 1, 1001, 2, 0));
    if (by_close) {
      BOOST_TEST(board.close().has_value());
      REFUSED(board.wait(ticket, no_deadline), errc::not_open);
    } else {
      BOOST_TEST(board.reset(ResetScope::ccu, 0).has_value());
      BOOST_TEST((board.wait(ticket, no_deadline)->status == errc::stale_generation));
      BOOST_TEST(run_sequence(rig, 0, 5, 2, 0));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_output_that_is_not_finite_never_reaches_the_host) {
  OneFault hook{FaultPoint::compute_start, Fault::spoil_output()};
  Rig rig{1, &hook};
  ThreadedBoard& board = rig.configured();
  const JobTicket ticket = rig.start(a_prefill, 1, 0, {1});
  const VendorJobEnd end = board.wait(ticket, no_deadline).value();
  BOOST_TEST((end.status == errc::bad_output));
  BOOST_TEST(rig.io[a_prefill][0].logits[0] == 0.0F);
  BOOST_TEST(!std::isnan(rig.io[a_prefill][0].logits[0]));
  BOOST_TEST(board.health(0)->jobs_failed.value() == 1U);
  BOOST_TEST(board.kv_rollback(0, 1, 1).has_value());
  BOOST_TEST(run_sequence(rig, 0, 2, 2, 0));
}

BOOST_AUTO_TEST_CASE(finite_means_neither_infinite_nor_nan) {
  std::vector<float> values{0.0F, -0.0F, 1e-45F, std::numeric_limits<float>::max()};
  BOOST_TEST(all_finite(values));
  BOOST_TEST(all_finite({}));
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    values[2] = bad;
    BOOST_TEST(!all_finite(values));
  }
}

BOOST_AUTO_TEST_CASE(an_exception_of_the_cores_halts_the_chip_until_its_reset) {
  OneFault hook{FaultPoint::compute_end, Fault::fail(errc::ccu_exception)};
  Rig rig{1, &hook};
  ThreadedBoard& board = rig.configured();
  const JobTicket ticket = rig.start(a_prefill, 1, 0, {1});
  BOOST_TEST((board.wait(ticket, no_deadline)->status == errc::ccu_exception));
  BOOST_REQUIRE(board.kv_reserve(0, 1, 2, 1).has_value());
  REFUSED(board.submit(rig.job(a_prefill, 2, 0, {1})), errc::ccu_exception);
  BOOST_TEST(run_sequence(rig, 1, 1001, 2, 0));
  BOOST_TEST(board.reset(ResetScope::ccu, 0).has_value());
  BOOST_TEST(run_sequence(rig, 0, 3, 2, 0));
}

BOOST_AUTO_TEST_CASE(a_lost_driver_wakes_those_who_wait_and_can_be_closed) {
  OneFault hook{FaultPoint::submit, Fault::fail(errc::driver_lost), 1};
  Rig rig{1, &hook, true};
  ThreadedBoard& board = rig.configured();
  rig.gate.hold(0);
  const JobTicket ticket = rig.start(a_prefill, 1, 0, {1});
  rig.gate.await_arrival(0);
  BOOST_REQUIRE(board.kv_reserve(1, 1, 1001, 1).has_value());
  bool told = false;
  std::thread waiter{[&] {
    const auto end = board.wait(ticket, no_deadline);
    told = end.has_error() && end.error().code == errc::driver_lost;
  }};
  REFUSED(board.submit(rig.job(b_prefill, 1001, 0, {1})), errc::driver_lost);
  waiter.join();
  BOOST_TEST(told);
  rig.gate.let_go(0);
  BOOST_TEST(board.close().has_value());
  REFUSED(board.open(), errc::driver_lost);
  // A driver that is lost at open keeps no lock.
  Rig other;
  other.options.lock_directory = rig.directory;
  BOOST_TEST(other.make().open().has_value());
  other.board.reset();
}

BOOST_AUTO_TEST_CASE(options_that_cannot_be_throw) {
  Rig rig;
  const auto damaged = [&](auto damage) {
    ThreadedBoardOptions options = rig.options;
    damage(options);
    ThreadedBoard board{std::move(options)};
  };
  BOOST_CHECK_NO_THROW(damaged([](ThreadedBoardOptions&) {}));
  BOOST_CHECK_THROW(damaged([](auto& o) { o.threads_per_chip = 0; }), std::invalid_argument);
  BOOST_CHECK_THROW(damaged([](auto& o) { o.threads_per_chip = 3; }), std::invalid_argument);
  BOOST_CHECK_THROW(damaged([](auto& o) { o.tile = 0; }), std::invalid_argument);
  BOOST_CHECK_THROW(damaged([](auto& o) { o.open_package = nullptr; }), std::invalid_argument);
  BOOST_CHECK_THROW(damaged([](auto& o) { o.make_executable = nullptr; }), std::invalid_argument);
  BOOST_CHECK_THROW(damaged([](auto& o) { o.profile.chips = 0; }), std::invalid_argument);
  BOOST_CHECK_THROW(damaged([](auto& o) { o.profile.transfers = TransferTiming::modelled; }),
                    std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(threaded_cores)

BOOST_AUTO_TEST_CASE(both_cores_run_at_the_same_time_and_their_writes_are_seen) {
  CoreTeam team;
  BOOST_TEST(team.parallel());
  struct Context {
    std::atomic<int> arrived{0};
    int plain[2] = {};
  };
  for (int i = 1; i <= 2000; ++i) {
    Context context;
    team.run_cores(
        [](void* raw, std::uint32_t core) {
          auto& shared = *static_cast<Context*>(raw);
          // Neither core returns before both are here: one after the other would never end.
          shared.arrived.fetch_add(1);
          while (shared.arrived.load() < 2) std::this_thread::yield();
          shared.plain[core] = static_cast<int>(core) + 1;
        },
        &context);
    BOOST_REQUIRE(context.plain[0] == 1);
    BOOST_REQUIRE(context.plain[1] == 2);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device::emulator
