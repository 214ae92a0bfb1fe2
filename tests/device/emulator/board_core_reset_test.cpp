// board_core_reset_test.cpp: key/value slots, resets and faults of the board as tables of events.
#include "tests/device/emulator/core_rig.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <vector>

namespace duet::device::emulator {
namespace {

using namespace fixture;

BOOST_AUTO_TEST_SUITE(board_core_kv)

BOOST_AUTO_TEST_CASE(reservations_and_commits_are_checked_against_slot_and_writes) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  REFUSED(core.kv_reserve(0, 1, 1, 0), errc::bad_argument);
  REFUSED(core.kv_reserve(0, 1, 0, 1), errc::bad_argument);
  REFUSED(core.kv_reserve(0, 1, 1001, 1), errc::bad_argument);
  REFUSED(core.kv_reserve(2, 1, 1, 1), errc::bad_argument);
  REFUSED(core.kv_reserve(0, 1, 1, fixture::context + 1), errc::kv_exhausted);
  REFUSED(core.kv_commit(0, 1, 1, 0), errc::unknown_name);
  REFUSED(core.kv_rollback(0, 1, 1), errc::unknown_name);
  REFUSED(core.kv_release(0, 1, 1), errc::unknown_name);
  BOOST_TEST(core.memory_usage(0).value().kv_slots_used.value() == 0U);
  BOOST_TEST(core.kv_reserve(0, 1, 1, 4).has_value());
  BOOST_TEST(core.kv_reserve(0, 1, 1, 8).has_value());
  BOOST_TEST(core.memory_usage(0).value().kv_slots_used.value() == 1U);
  REFUSED(core.kv_commit(0, 1, 1, 1), errc::bad_argument);
  BOOST_TEST(core.kv_reserve(0, 1, 2, 1).has_value());
  REFUSED(core.kv_reserve(0, 1, 3, 1), errc::kv_exhausted);
  BOOST_TEST(core.kv_release(0, 1, 2).has_value());
  BOOST_TEST(core.kv_reserve(0, 1, 3, 1).has_value());
  BOOST_TEST(core.memory_usage(1).value().kv_slots_used.value() == 0U);
  BOOST_TEST(core.memory_usage(1).value().kv_slots_total.value() == fixture::slots);
}

BOOST_AUTO_TEST_CASE(a_commit_takes_what_was_written_and_gives_the_rest_back) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const auto run = [&](std::uint32_t tokens) {
    const JobTicket ticket = board.prefill(a_prefill, 1, tokens, 0);
    core.transfer_done(ticket, 1, 2);
    core.compute_done(ticket, {}, 3, 4);
    core.transfer_done(ticket, 5, 6);
    board.take<JobEnded>();
    board.end_of(ticket);
  };
  run(8);
  REFUSED(core.kv_commit(0, 1, 1, 9), errc::bad_argument);
  BOOST_TEST(core.kv_rollback(0, 1, 1).has_value());
  REFUSED(core.kv_commit(0, 1, 1, 1), errc::bad_argument);
  // After a rollback the same positions are written again.
  run(8);
  BOOST_TEST(core.kv_commit(0, 1, 1, 5).has_value());
  REFUSED(core.kv_commit(0, 1, 1, 1), errc::bad_argument);
  REFUSED(core.kv_reserve(0, 1, 1, fixture::context - 4), errc::kv_exhausted);
  BOOST_TEST(core.kv_reserve(0, 1, 1, fixture::context - 5).has_value());
}

BOOST_AUTO_TEST_CASE(a_newer_generation_frees_the_slots_of_older_ones_but_not_under_a_job) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket ticket = board.prefill(a_prefill, 1, 4, 0);
  BOOST_REQUIRE(core.kv_reserve(0, 1, 2, 4).has_value());
  BOOST_TEST(core.kv_reserve(0, 2, 5, 4).has_value());
  REFUSED(core.kv_reserve(0, 2, 6, 4), errc::kv_exhausted);
  REFUSED(core.kv_reserve(0, 1, 2, 4), errc::stale_generation);
  REFUSED(core.kv_commit(0, 1, 2, 4), errc::stale_generation);
  REFUSED(core.kv_release(0, 1, 1), errc::stale_generation);
  core.transfer_done(ticket, 1, 2);
  core.compute_done(ticket, {}, 3, 4);
  core.transfer_done(ticket, 5, 6);
  BOOST_TEST(core.kv_reserve(0, 2, 6, 4).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(board_core_resets)

BOOST_AUTO_TEST_CASE(a_chip_reset_ends_its_jobs_and_leaves_the_other_chip_alone) {
  for (const ResetScope scope : {ResetScope::ccu, ResetScope::chip}) {
    Board board{performed()};
    board.configure();
    BoardCore& core = board.core;
    const JobTicket computing = board.prefill(a_prefill, 1, 4, 0, 0);
    core.transfer_done(computing, 1, 2);
    const JobTicket other = board.prefill(b_prefill, 1001, 4, 2);
    core.transfer_done(other, 2, 3);
    const JobTicket moving = board.prefill(a_prefill, 2, 4, 3, 1);
    board.take<JobEnded>();
    BOOST_TEST(core.begin_reset(scope, 0, 10).has_value());
    // Threads still work on both: they have ended for their owner only when the threads let go.
    BOOST_TEST(core.work_in_hand());
    REFUSED(core.submit(board.job(a_decode, 1, 0, 1), board.ids, 10), errc::device_busy);
    core.transfer_done(moving, 10, 11);
    BOOST_TEST(core.work_in_hand());
    core.compute_done(computing, {}, 2, 12);
    BOOST_TEST(!core.work_in_hand());
    core.finish_reset();
    BOOST_TEST((board.end_of(computing).status == errc::stale_generation));
    BOOST_TEST((board.end_of(moving).status == errc::stale_generation));
    BOOST_TEST((core.state() == BoardState::configured));
    BOOST_TEST(core.memory_usage(0).value().kv_slots_used.value() == 0U);
    BOOST_TEST(core.memory_usage(1).value().kv_slots_used.value() == 1U);
    BOOST_TEST(core.health(0).value().resets.value() == 1U);
    BOOST_TEST(core.health(1).value().resets.value() == 0U);
    core.compute_done(other, {}, 3, 20);
    core.transfer_done(other, 20, 21);
    BOOST_TEST(!board.end_of(other).status.failed());
    // The buffers survived, and the chip works again.
    board.prefill(a_prefill, 1, 4, 30);
    BOOST_TEST(core.memory(0).used_bytes() == core.memory(1).used_bytes());
  }
}

BOOST_AUTO_TEST_CASE(a_modelled_transfer_is_cut_by_a_reset_and_the_link_goes_on) {
  Board board{modelled()};
  board.configure();
  const JobTicket a = board.prefill(a_prefill, 1, 10, 0);
  const JobTicket b = board.prefill(b_prefill, 1001, 10, 0);
  BOOST_TEST(board.core.begin_reset(ResetScope::chip, 0, 5).has_value());
  BOOST_TEST(!board.core.work_in_hand());
  board.core.finish_reset();
  BOOST_TEST((board.end_of(a).status == errc::stale_generation));
  board.core.advance(15);
  const auto started = board.take<StartCompute>();
  BOOST_REQUIRE(started.size() == 1U);
  BOOST_TEST(started[0].ticket == b);
}

BOOST_AUTO_TEST_CASE(scopes_that_the_board_lacks_are_unsupported) {
  Profile profile = performed();
  profile.chip_reset = false;
  profile.ccu_reset = false;
  Board board{profile};
  board.configure();
  REFUSED(board.core.begin_reset(ResetScope::session, 0, 0), errc::unsupported);
  REFUSED(board.core.begin_reset(ResetScope::chip, 0, 0), errc::unsupported);
  REFUSED(board.core.begin_reset(ResetScope::ccu, 0, 0), errc::unsupported);
  Board other{performed()};
  other.configure();
  REFUSED(other.core.begin_reset(ResetScope::chip, 2, 0), errc::bad_argument);
}

BOOST_AUTO_TEST_CASE(a_device_reset_retires_buffers_and_keeps_the_ends_of_jobs) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket ticket = board.prefill(a_prefill, 1, 4, 0, 0);
  BOOST_REQUIRE(core.begin_reset(ResetScope::device, 0, 1).has_value());
  core.transfer_done(ticket, 1, 2);
  core.finish_reset();
  BOOST_TEST((core.state() == BoardState::open));
  BOOST_TEST(core.begin_wait(ticket, 3).has_value());
  BOOST_TEST((board.end_of(ticket).status == errc::stale_generation));
  BOOST_REQUIRE(core.load(fixture::manifest(), fixture::hash, 3).has_value());
  BOOST_REQUIRE(core.begin_configure(3).has_value());
  core.finish_configure();
  BOOST_REQUIRE(core.kv_reserve(0, 1, 1, 4).has_value());
  REFUSED(core.submit(board.job(a_prefill, 1, 0, 4), board.ids, 4), errc::bad_argument);
  BOOST_TEST(core.release_io(board.io[a_prefill][0]).has_value());
  BOOST_TEST(core.allocate_io(a_prefill).has_value());
}

BOOST_AUTO_TEST_CASE(a_close_ends_everything_and_the_board_opens_afresh) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket ticket = board.prefill(a_prefill, 1, 4, 0, 0);
  BOOST_REQUIRE(core.begin_close(1).has_value());
  BOOST_TEST(core.work_in_hand());
  core.transfer_done(ticket, 1, 2);
  BOOST_TEST(!core.work_in_hand());
  core.finish_reset();
  REFUSED(core.take_end(ticket), errc::not_open);
  BOOST_TEST(core.open(5).has_value());
  REFUSED(core.take_end(ticket), errc::unknown_name);
  REFUSED(core.release_io(board.io[0][0]), errc::unknown_name);
  BOOST_TEST(core.memory(0).used_bytes() == 0U);
  BOOST_TEST(core.take_trace(0).value().events.empty());
  BOOST_TEST(core.counters().resets == 0U);
  BOOST_TEST(core.counters().opens == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(board_core_faults)

BOOST_AUTO_TEST_CASE(each_call_fails_as_the_hook_says_and_changes_nothing) {
  const auto fails = [](FaultPoint point, errc code, const std::function<void(Board&)>& call) {
    OneFault hook{point, Fault::fail(code)};
    Board board{performed(), &hook};
    call(board);
  };
  fails(FaultPoint::open, errc::reset_failed, [](Board& board) {
    REFUSED(board.core.open(0), errc::reset_failed);
    BOOST_TEST((board.core.state() == BoardState::closed));
    BOOST_TEST(board.core.open(0).has_value());
  });
  fails(FaultPoint::load, errc::package_invalid, [](Board& board) {
    BOOST_REQUIRE(board.core.open(0).has_value());
    REFUSED(board.core.load(fixture::manifest(), fixture::hash, 0), errc::package_invalid);
    BOOST_TEST(board.core.memory(0).used_bytes() == 0U);
  });
  fails(FaultPoint::configure, errc::out_of_memory, [](Board& board) {
    BOOST_REQUIRE(board.core.open(0).has_value());
    BOOST_REQUIRE(board.core.load(fixture::manifest(), fixture::hash, 0).has_value());
    REFUSED(board.core.begin_configure(0), errc::out_of_memory);
    BOOST_TEST((board.core.state() == BoardState::loaded));
    BOOST_TEST(board.core.counters().configures == 0U);
  });
  fails(FaultPoint::submit, errc::device_busy, [](Board& board) {
    board.configure();
    BOOST_REQUIRE(board.core.kv_reserve(0, 1, 1, 4).has_value());
    REFUSED(board.core.submit(board.job(a_prefill, 1, 0, 4), board.ids, 0), errc::device_busy);
    BOOST_TEST(board.core.submit(board.job(a_prefill, 1, 0, 4), board.ids, 0).has_value());
  });
  fails(FaultPoint::wait, errc::wait_timeout, [](Board& board) {
    board.configure();
    const JobTicket ticket = board.prefill(a_prefill, 1, 4, 0);
    REFUSED(board.core.begin_wait(ticket, 0), errc::wait_timeout);
    BOOST_TEST(board.core.begin_wait(ticket, 0).has_value());
  });
  fails(FaultPoint::reset, errc::reset_failed, [](Board& board) {
    board.configure();
    REFUSED(board.core.begin_reset(ResetScope::chip, 1, 0), errc::reset_failed);
    board.prefill(b_prefill, 1001, 4, 0);
  });
  fails(FaultPoint::reset_configuration, errc::reset_failed, [](Board& board) {
    board.configure();
    REFUSED(board.core.begin_reset_configuration(0), errc::reset_failed);
    BOOST_TEST((board.core.state() == BoardState::configured));
  });
}

BOOST_AUTO_TEST_CASE(a_ccu_exception_halts_its_chip_until_a_reset) {
  for (const FaultPoint point : {FaultPoint::compute_start, FaultPoint::compute_end}) {
    OneFault hook{point, Fault::fail(errc::ccu_exception)};
    Board board{performed(), &hook};
    board.configure();
    BoardCore& core = board.core;
    const JobTicket first = board.prefill(a_prefill, 1, 4, 0, 0, Engine::ping);
    const JobTicket queued = board.prefill(a_prefill, 2, 4, 0, 1, Engine::ping);
    core.transfer_done(first, 1, 2);
    if (point == FaultPoint::compute_end) core.compute_done(first, {}, 3, 4);
    BOOST_TEST((board.end_of(first).status == errc::ccu_exception));
    BOOST_TEST((board.end_of(queued).status == errc::ccu_exception));
    BOOST_REQUIRE(core.kv_rollback(0, 1, 1).has_value());
    BOOST_REQUIRE(core.kv_reserve(0, 1, 1, 4).has_value());
    REFUSED(core.submit(board.job(a_prefill, 1, 0, 4), board.ids, 5), errc::ccu_exception);
    board.prefill(b_prefill, 1001, 4, 5);
    BOOST_REQUIRE(core.begin_reset(ResetScope::ccu, 0, 6).has_value());
    BOOST_TEST(!core.work_in_hand());
    core.finish_reset();
    board.prefill(a_prefill, 1, 4, 7);
    BOOST_TEST(core.health(0).value().jobs_failed.value() == 2U);
  }
}

BOOST_AUTO_TEST_CASE(a_job_that_never_ends_blocks_its_chip_until_a_reset_ends_it) {
  OneFault hook{FaultPoint::compute_start, Fault::never_ends()};
  Board board{performed(), &hook};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket hung = board.prefill(a_prefill, 1, 4, 0, 0);
  const JobTicket behind = board.prefill(a_prefill, 2, 4, 0, 1);
  core.transfer_done(hung, 1, 2);
  core.transfer_done(behind, 2, 3);
  BOOST_TEST(board.take<StartCompute>().empty());
  BOOST_TEST((core.cancel(hung, 4).value() == CancelEffect::delivery_only));
  BOOST_TEST(!core.take_end(hung).value().has_value());
  BOOST_REQUIRE(core.begin_reset(ResetScope::ccu, 0, 5).has_value());
  BOOST_TEST(!core.work_in_hand());
  core.finish_reset();
  BOOST_TEST((board.end_of(hung).status == errc::stale_generation));
  BOOST_TEST((board.end_of(behind).status == errc::stale_generation));
}

BOOST_AUTO_TEST_CASE(bad_output_ends_the_job_without_a_transfer_and_its_positions_stay_unwritten) {
  OneFault hook{FaultPoint::compute_start, Fault::spoil_output()};
  Board board{performed(), &hook};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket ticket = board.prefill(a_prefill, 1, 4, 0, 0);
  core.transfer_done(ticket, 1, 2);
  const auto started = board.take<StartCompute>();
  BOOST_REQUIRE(started.size() == 1U);
  BOOST_TEST(started[0].spoil_output);
  core.compute_done(ticket, errc::bad_output, 3, 4);
  const VendorJobEnd end = board.end_of(ticket);
  BOOST_TEST((end.status == errc::bad_output));
  BOOST_TEST(end.kv_after == end.kv_before);
  BOOST_TEST(end.times.d2h_end == 0U);
  REFUSED(core.kv_commit(0, 1, 1, 4), errc::bad_argument);
}

BOOST_AUTO_TEST_CASE(a_lost_driver_answers_nothing_but_close) {
  OneFault hook{FaultPoint::submit, Fault::fail(errc::driver_lost)};
  Board board{performed(), &hook};
  board.configure();
  BoardCore& core = board.core;
  BOOST_REQUIRE(core.kv_reserve(0, 1, 1, 4).has_value());
  REFUSED(core.submit(board.job(a_prefill, 1, 0, 4), board.ids, 0), errc::driver_lost);
  BOOST_TEST(core.lost());
  REFUSED(core.submit(board.job(a_prefill, 1, 0, 4), board.ids, 0), errc::driver_lost);
  REFUSED(core.current_hash(), errc::driver_lost);
  REFUSED(core.begin_wait(1, 0), errc::driver_lost);
  REFUSED(core.take_end(1), errc::driver_lost);
  REFUSED(core.cancel(1, 0), errc::driver_lost);
  REFUSED(core.begin_reset(ResetScope::device, 0, 0), errc::driver_lost);
  REFUSED(core.memory_usage(0), errc::driver_lost);
  REFUSED(core.health(0), errc::driver_lost);
  BOOST_TEST(core.begin_close(1).has_value());
  core.finish_reset();
  REFUSED(core.open(2), errc::driver_lost);
}

BOOST_AUTO_TEST_CASE(the_hook_is_told_where_it_is) {
  OneFault hook{FaultPoint::open, {}};
  Board board{performed(), &hook};
  board.configure();
  const JobTicket ticket = board.prefill(b_prefill, 1001, 4, 77);
  board.core.transfer_done(ticket, 78, 79);
  hook.seen.erase(hook.seen.begin(), hook.seen.end() - 2);
  BOOST_TEST((hook.seen[0].point == FaultPoint::submit));
  BOOST_TEST(hook.seen[0].chip == 1U);
  BOOST_TEST(hook.seen[0].job == 1U);
  BOOST_TEST(hook.seen[0].now == 77U);
  BOOST_TEST((hook.seen[0].graph == GraphKind::prefill));
  BOOST_TEST((hook.seen[1].point == FaultPoint::compute_start));
  BOOST_TEST(hook.seen[1].now == 79U);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device::emulator
