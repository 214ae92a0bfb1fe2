// board_core_test.cpp: the board's life cycle and jobs as tables of events, without threads.
#include "tests/device/emulator/core_rig.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>
#include <vector>

namespace duet::device::emulator {
namespace {

using namespace fixture;

BOOST_AUTO_TEST_SUITE(board_core_life_cycle)

BOOST_AUTO_TEST_CASE(a_closed_board_answers_not_open_to_everything) {
  Board board{performed()};
  BoardCore& core = board.core;
  REFUSED(core.load(fixture::manifest(), fixture::hash, 0), errc::not_open);
  REFUSED(core.begin_configure(0), errc::not_open);
  REFUSED(core.current_hash(), errc::not_open);
  REFUSED(core.begin_reset(ResetScope::device, 0, 0), errc::not_open);
  REFUSED(core.begin_reset_configuration(0), errc::not_open);
  REFUSED(core.begin_close(0), errc::not_open);
  REFUSED(core.allocate_io(0), errc::not_open);
  REFUSED(core.release_io(1), errc::not_open);
  REFUSED(core.kv_reserve(0, 1, 1, 1), errc::not_open);
  REFUSED(core.submit(VendorJob{}, board.ids, 0), errc::not_open);
  REFUSED(core.cancel(1, 0), errc::not_open);
  REFUSED(core.begin_wait(1, 0), errc::not_open);
  REFUSED(core.take_end(1), errc::not_open);
  REFUSED(core.memory_usage(0), errc::not_open);
  REFUSED(core.health(0), errc::not_open);
  REFUSED(core.take_trace(0), errc::not_open);
  BOOST_TEST(core.counters().configure_calls == 0U);
}

BOOST_AUTO_TEST_CASE(calls_out_of_order_are_wrong_state) {
  Board board{performed()};
  BoardCore& core = board.core;
  BOOST_TEST(core.open(0).has_value());
  REFUSED(core.open(0), errc::wrong_state);
  REFUSED(core.begin_configure(0), errc::wrong_state);
  REFUSED(core.begin_reset_configuration(0), errc::wrong_state);
  REFUSED(core.begin_reset(ResetScope::configuration, 0, 0), errc::wrong_state);
  REFUSED(core.submit(VendorJob{}, board.ids, 0), errc::wrong_state);
  BOOST_TEST(core.load(fixture::manifest(), fixture::hash, 0).has_value());
  REFUSED(core.submit(VendorJob{}, board.ids, 0), errc::wrong_state);
  REFUSED(core.allocate_io(0), errc::wrong_state);
  REFUSED(core.kv_reserve(0, 1, 1, 1), errc::wrong_state);
  BOOST_TEST(core.begin_configure(0).has_value());
  REFUSED(core.submit(VendorJob{}, board.ids, 0), errc::wrong_state);
  REFUSED(core.begin_reset(ResetScope::device, 0, 0), errc::wrong_state);
  core.finish_configure();
  REFUSED(core.load(fixture::manifest(), fixture::hash, 0), errc::wrong_state);
}

// one current package for the whole board; a second configure is an error of ours.
BOOST_AUTO_TEST_CASE(a_second_configure_is_already_configured_until_a_reset) {
  Board board{performed()};
  board.configure();
  REFUSED(board.core.begin_configure(0), errc::already_configured);
  BOOST_TEST(board.core.current_hash().value() == fixture::hash);
  BOOST_TEST(board.core.begin_reset_configuration(1).has_value());
  board.core.finish_reset();
  BOOST_TEST(board.core.current_hash().value().empty());
  BOOST_TEST(board.core.load(fixture::manifest(), std::string(64, 'b'), 2).has_value());
  BOOST_TEST(board.core.current_hash().value().empty());
  BOOST_TEST(board.core.begin_configure(2).has_value());
  board.core.finish_configure();
  BOOST_TEST(board.core.current_hash().value() == std::string(64, 'b'));
  BOOST_TEST(board.core.counters().configure_calls == 3U);
  BOOST_TEST(board.core.counters().configures == 2U);
}

// the load's and the configuration's share can each be seen, and both fall back exactly.
BOOST_AUTO_TEST_CASE(memory_rises_by_load_and_configure_and_falls_back_to_zero) {
  Board board{performed()};
  BoardCore& core = board.core;
  const auto used = [&](std::uint32_t chip) { return *core.memory_usage(chip).value().used_bytes; };
  const std::uint64_t reserved =
      fixture::slots * fixture::slot_bytes + (1 << 16) + 2 * (fixture::context + 16) * 4;
  BOOST_TEST(core.open(0).has_value());
  for (int cycle = 0; cycle < 100; ++cycle) {
    BOOST_REQUIRE(used(0) == 0U);
    BOOST_REQUIRE(core.load(fixture::manifest(), fixture::hash, 0).has_value());
    BOOST_REQUIRE(used(0) == 8192U);
    BOOST_REQUIRE(core.begin_configure(0).has_value());
    core.finish_configure();
    BOOST_REQUIRE(used(0) == 8192U + reserved);
    BOOST_REQUIRE(used(1) == 8192U + reserved);
    BOOST_REQUIRE(
        core.begin_reset(cycle % 2 == 0 ? ResetScope::configuration : ResetScope::device, 0, 0)
            .has_value());
    core.finish_reset();
    BOOST_REQUIRE(used(1) == 0U);
  }
  BOOST_TEST(core.memory_usage(0).value().total_bytes.value() == 1U << 20U);
  REFUSED(core.memory_usage(2), errc::bad_argument);
}

//
BOOST_AUTO_TEST_CASE(memory_is_told_line_by_line_and_the_peak_of_slots_until_the_next_configure) {
  Board board{performed()};
  BoardCore& core = board.core;
  const auto told = [&](std::uint32_t chip) {
    std::string text;
    for (const MemoryPart& part : core.memory_usage(chip).value().parts) {
      text += part.what + " " + std::to_string(part.bytes);
      if (part.peak_bytes) text += " (" + std::to_string(*part.peak_bytes) + ")";
      text += "; ";
    }
    return text;
  };
  BOOST_REQUIRE(core.open(0).has_value());
  BOOST_TEST(told(0) == "");
  BOOST_REQUIRE(core.load(fixture::manifest(), fixture::hash, 0).has_value());
  BOOST_TEST(told(0) == "weights 8192; ");
  BOOST_REQUIRE(core.begin_configure(0).has_value());
  core.finish_configure();
  BOOST_TEST(told(0) == "weights 8192; kv 2048 (0); workspace 65536; io 384; ");
  BOOST_REQUIRE(core.kv_reserve(0, 1, 1, 1).has_value());
  BOOST_REQUIRE(core.kv_reserve(0, 1, 1, 2).has_value());   // the same sequence, no second slot
  BOOST_TEST(core.memory_usage(0).value().kv_slots_peak.value() == 1U);
  BOOST_REQUIRE(core.kv_reserve(0, 1, 2, 1).has_value());
  for (const SequenceId sequence : {1, 2}) {
    BOOST_REQUIRE(core.kv_release(0, 1, sequence).has_value());
  }
  BOOST_REQUIRE(core.kv_reserve(0, 1, 3, 1).has_value());
  BOOST_TEST(core.memory_usage(0).value().kv_slots_used.value() == 1U);
  BOOST_TEST(core.memory_usage(0).value().kv_slots_peak.value() == 2U);
  BOOST_TEST(told(0) == "weights 8192; kv 2048 (2048); workspace 65536; io 384; ");
  BOOST_TEST(told(1) == "weights 8192; kv 2048 (0); workspace 65536; io 384; ");
  BOOST_REQUIRE(core.begin_reset(ResetScope::configuration, 0, 0).has_value());
  core.finish_reset();
  BOOST_TEST(told(0) == "");
  BOOST_REQUIRE(core.load(fixture::manifest(), fixture::hash, 0).has_value());
  BOOST_REQUIRE(core.begin_configure(0).has_value());
  core.finish_configure();
  BOOST_TEST(core.memory_usage(0).value().kv_slots_peak.value() == 0U);
}

BOOST_AUTO_TEST_CASE(memory_is_accounted_by_owner_and_address) {
  Board board{performed()};
  board.configure();
  const ChipMemory& memory = board.core.memory(0);
  BOOST_TEST(memory.used_bytes_of("a") == memory.used_bytes());
  BOOST_TEST(memory.used_bytes_of("b") == 0U);
  BOOST_TEST(memory.regions().front().name == "a.parameters");
  BOOST_TEST(memory.regions().front().address == 4096U);
}

BOOST_AUTO_TEST_CASE(an_overlap_or_overflow_is_refused_by_load_or_configure_without_a_trace) {
  struct Row {
    const char* section;
    std::uint64_t address;
    bool at_load;
    errc code;
  };
  for (const Row& row : {Row{"a.parameters", (1 << 20) - 100, true, errc::out_of_memory},
                         Row{"a.kv", ~std::uint64_t{0} - 10, false, errc::out_of_memory},
                         Row{"b.kv", 4096 + 100, false, errc::package_invalid}}) {
    BOOST_TEST_CONTEXT(row.section) {
      Board board{performed()};
      BoardCore& core = board.core;
      BOOST_REQUIRE(core.open(0).has_value());
      Manifest manifest = fixture::manifest();
      fixture::section(manifest, row.section).address = row.address;
      const auto loaded = core.load(manifest, fixture::hash, 0);
      BOOST_TEST(loaded.has_error() == row.at_load);
      if (row.at_load) {
        BOOST_TEST((loaded.error().code == row.code));
        BOOST_TEST((core.state() == BoardState::open));
        BOOST_TEST(core.memory(0).used_bytes() == 0U);
      } else {
        REFUSED(core.begin_configure(0), row.code);
        BOOST_TEST((core.state() == BoardState::loaded));
        BOOST_TEST(core.memory(0).used_bytes() == 8192U);
        BOOST_TEST(core.counters().configures == 0U);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_aborted_configure_leaves_the_loaded_package_as_it_was) {
  Board board{performed()};
  BoardCore& core = board.core;
  BOOST_REQUIRE(core.open(0).has_value());
  BOOST_REQUIRE(core.load(fixture::manifest(), fixture::hash, 0).has_value());
  BOOST_REQUIRE(core.begin_configure(0).has_value());
  core.abort_configure();
  BOOST_TEST((core.state() == BoardState::loaded));
  BOOST_TEST(core.memory(0).used_bytes() == 8192U);
  BOOST_TEST(core.current_hash().value().empty());
  BOOST_TEST(core.begin_configure(0).has_value());
}

BOOST_AUTO_TEST_CASE(the_topology_says_what_the_combined_board_offers) {
  const Topology topology = Board{Profile{}}.core.open(0).value();
  BOOST_TEST(topology.chips == 2U);
  BOOST_TEST(topology.cores_per_chip == 2U);
  BOOST_TEST(topology.engines_per_chip == 2U);
  BOOST_TEST(topology.combined);
  BOOST_TEST(!topology.session_reset);
  BOOST_TEST(!topology.cancel_stops_execution);
  BOOST_TEST(topology.wait_deadline);
  BOOST_TEST(topology.runtime == "duet-emulator/combined");
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(board_core_jobs)

// every interval of a job, in chip time.
BOOST_AUTO_TEST_CASE(a_job_goes_over_link_cores_and_link_at_modelled_times) {
  Board board{modelled()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket ticket = board.prefill(a_prefill, 1, 10, 100);
  BOOST_TEST(core.next_event().value() == 110U);
  core.advance(109);
  BOOST_TEST(board.take<StartCompute>().empty());
  core.advance(110);
  const auto started = board.take<StartCompute>();
  BOOST_REQUIRE(started.size() == 1U);
  BOOST_TEST(started[0].ticket == ticket);
  BOOST_TEST(!started[0].spoil_output);
  BOOST_TEST(!core.next_event().has_value());
  core.compute_done(ticket, {}, 112, 500);
  BOOST_TEST(core.next_event().value() == 516U);
  BOOST_TEST(!core.take_end(ticket).value().has_value());
  core.advance(1000);
  BOOST_TEST(board.take<JobEnded>().size() == 1U);
  const VendorJobEnd end = board.end_of(ticket);
  BOOST_TEST(!end.status.failed());
  BOOST_TEST(end.kv_before == 0U);
  BOOST_TEST(end.kv_after == 10U);
  BOOST_TEST((end.engine == Engine::ping));
  BOOST_TEST(end.times.submitted == 100U);
  BOOST_TEST(end.times.h2d_begin == 100U);
  BOOST_TEST(end.times.h2d_end == 110U);
  BOOST_TEST(end.times.compute_begin == 112U);
  BOOST_TEST(end.times.compute_end == 500U);
  BOOST_TEST(end.times.d2h_begin == 500U);
  BOOST_TEST(end.times.d2h_end == 516U);
  REFUSED(core.take_end(ticket), errc::unknown_name);
  const Trace trace = core.take_trace(0).value();
  BOOST_REQUIRE(trace.events.size() == 4U);
  BOOST_TEST((trace.events[2].kind == TraceKind::compute));
  BOOST_TEST(trace.events[2].session == 7U);
  BOOST_TEST(trace.events[2].generation == 1U);
  BOOST_TEST(trace.events[2].job == 1U);
  BOOST_TEST(trace.events[2].begin == 112U);
  BOOST_TEST(trace.events[2].end == 500U);
  BOOST_TEST(core.take_trace(0).value().events.empty());
  BOOST_TEST(core.take_trace(1).value().events.empty());
}

// engines are places for jobs, not cores; the cores of a chip run one job.
BOOST_AUTO_TEST_CASE(two_jobs_of_a_chip_overlap_transfer_with_compute_but_not_compute) {
  Board board{modelled()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket first = board.prefill(a_prefill, 1, 10, 0);
  const JobTicket second = board.prefill(a_prefill, 2, 20, 0, 1);
  core.advance(30);
  auto started = board.take<StartCompute>();
  BOOST_REQUIRE(started.size() == 1U);
  BOOST_TEST(started[0].ticket == first);
  BOOST_TEST((core.view(first).engine == Engine::ping));
  BOOST_TEST((core.view(second).engine == Engine::pong));
  core.compute_done(first, {}, 10, 100);
  started = board.take<StartCompute>();
  BOOST_REQUIRE(started.size() == 1U);
  BOOST_TEST(started[0].ticket == second);
  core.compute_done(second, {}, 100, 105);
  core.advance(1000);
  const JobTimes one = board.end_of(first).times;
  const JobTimes two = board.end_of(second).times;
  BOOST_TEST(two.h2d_begin == 10U);
  BOOST_TEST(two.h2d_end == 30U);
  BOOST_TEST(one.d2h_begin == 100U);
  BOOST_TEST(one.d2h_end == 116U);
  // One link: the second result waits for the first.
  BOOST_TEST(two.d2h_begin == 116U);
}

BOOST_AUTO_TEST_CASE(one_link_serves_both_chips_in_turn_while_both_compute) {
  Board board{modelled()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket a = board.prefill(a_prefill, 1, 10, 0);
  const JobTicket b = board.prefill(b_prefill, 1001, 10, 0);
  core.advance(20);
  BOOST_TEST(board.take<StartCompute>().size() == 2U);
  core.compute_done(a, {}, 10, 50);
  core.compute_done(b, {}, 20, 60);
  core.advance(1000);
  BOOST_TEST(board.end_of(b).times.h2d_begin == 10U);
  BOOST_TEST(board.end_of(a).times.d2h_end == 66U);
}

BOOST_AUTO_TEST_CASE(automatic_alternates_and_a_chosen_engine_is_kept) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const auto run = [&](Engine engine) {
    const JobTicket ticket = board.prefill(a_prefill, 1, 1, 0, 0, engine);
    core.transfer_done(ticket, 1, 2);
    core.compute_done(ticket, {}, 3, 4);
    core.transfer_done(ticket, 5, 6);
    board.take<JobEnded>();
    return board.end_of(ticket).engine;
  };
  BOOST_TEST((run(Engine::automatic) == Engine::ping));
  BOOST_TEST((run(Engine::automatic) == Engine::pong));
  BOOST_TEST((run(Engine::automatic) == Engine::ping));
  BOOST_TEST((run(Engine::ping) == Engine::ping));
  BOOST_TEST((run(Engine::pong) == Engine::pong));
  BOOST_TEST((run(Engine::automatic) == Engine::ping));
}

BOOST_AUTO_TEST_CASE(a_job_for_a_busy_engine_does_not_hold_up_one_for_the_other) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket first = board.prefill(a_prefill, 1, 1, 0, 0, Engine::ping);
  const JobTicket behind = board.prefill(a_prefill, 2, 1, 0, 1, Engine::ping);
  BOOST_TEST(core.health(0).value().queue_depth.value() == 1U);
  BOOST_TEST(core.health(0).value().in_flight.value() == 1U);
  core.transfer_done(first, 1, 2);
  BOOST_TEST(board.take<StartTransfer>().size() == 1U);
  core.compute_done(first, {}, 3, 4);
  core.transfer_done(first, 5, 6);
  const auto transfers = board.take<StartTransfer>();
  BOOST_REQUIRE(transfers.size() == 2U);
  BOOST_TEST(transfers[1].ticket == behind);
  BOOST_TEST((core.view(behind).engine == Engine::ping));
  BOOST_TEST(core.health(0).value().jobs_completed.value() == 1U);
  REFUSED(core.health(2), errc::bad_argument);
  REFUSED(core.take_trace(2), errc::bad_argument);
}

BOOST_AUTO_TEST_CASE(bad_jobs_are_refused_and_change_nothing) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  BOOST_REQUIRE(core.kv_reserve(0, 2, 1, 8).has_value());
  struct Row {
    const char* what;
    errc code;
    std::function<void(VendorJob&)> damage;
  };
  const std::vector<Row> table{
      {"unknown graph", errc::unknown_name, [](VendorJob& j) { j.graph = 4; }},
      {"no tokens", errc::bad_argument, [](VendorJob& j) { j.tokens = 0; }},
      {"too many tokens", errc::bad_argument, [](VendorJob& j) { j.tokens = 33; }},
      {"huge past", errc::bad_argument, [](VendorJob& j) { j.past = 0xffffffffU; }},
      {"prompt in two jobs", errc::bad_argument, [](VendorJob& j) { j.past = 1; }},
      {"unknown buffers", errc::unknown_name, [](VendorJob& j) { j.buffers = 12345; }},
      {"no buffers", errc::unknown_name, [](VendorJob& j) { j.buffers = 0; }},
      {"buffers of another graph", errc::bad_argument,
       [&](VendorJob& j) { j.buffers = board.io[a_decode][0]; }},
      {"sequence of the other chip", errc::bad_argument, [](VendorJob& j) { j.sequence = 1001; }},
      {"sequence without slot", errc::kv_exhausted, [](VendorJob& j) { j.sequence = 3; }},
      {"more than reserved", errc::kv_exhausted, [](VendorJob& j) { j.tokens = 9; }},
      {"older generation", errc::stale_generation, [](VendorJob& j) { j.generation = 1; }},
      {"newer generation", errc::kv_exhausted, [](VendorJob& j) { j.generation = 3; }},
  };
  for (const Row& row : table) {
    BOOST_TEST_CONTEXT(row.what) {
      VendorJob job = board.job(a_prefill, 1, 0, 8);
      job.generation = 2;
      row.damage(job);
      REFUSED(core.submit(job, board.ids, 0), row.code);
    }
  }
  VendorJob job = board.job(a_prefill, 1, 0, 8);
  job.generation = 2;
  board.ids[7] = fixture::vocabulary;
  REFUSED(core.submit(job, board.ids, 0), errc::bad_argument);
  board.ids[7] = fixture::vocabulary - 1;
  REFUSED(core.submit(job, std::span{board.ids}.first(7), 0), errc::bad_argument);
  BOOST_TEST(core.counters().jobs_refused == table.size() + 2);
  BOOST_TEST(core.counters().jobs_submitted == 0U);
  BOOST_TEST(core.submit(job, board.ids, 0).has_value());
}

BOOST_AUTO_TEST_CASE(a_decode_at_the_wrong_position_or_past_the_context_is_refused) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket ticket = board.prefill(a_prefill, 1, 32, 0);
  core.transfer_done(ticket, 1, 2);
  core.compute_done(ticket, {}, 3, 4);
  core.transfer_done(ticket, 5, 6);
  BOOST_REQUIRE(core.kv_commit(0, 1, 1, 31).has_value());
  REFUSED(core.submit(board.job(a_decode, 1, 31, 1), board.ids, 7), errc::kv_exhausted);
  BOOST_REQUIRE(core.kv_reserve(0, 1, 1, 1).has_value());
  REFUSED(core.submit(board.job(a_decode, 1, 30, 1), board.ids, 7), errc::bad_argument);
  REFUSED(core.submit(board.job(a_decode, 1, 32, 1), board.ids, 7), errc::bad_argument);
  BOOST_TEST(core.submit(board.job(a_decode, 1, 31, 1), board.ids, 7).has_value());
}

// what a job may still reference is not reused.
BOOST_AUTO_TEST_CASE(buffers_and_slots_in_use_are_refused_to_others) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket ticket = board.prefill(a_prefill, 1, 4, 0);
  BOOST_REQUIRE(core.kv_reserve(0, 1, 2, 4).has_value());
  REFUSED(core.submit(board.job(a_prefill, 2, 0, 4), board.ids, 0), errc::device_busy);
  REFUSED(core.submit(board.job(a_prefill, 1, 0, 4, 1), board.ids, 0), errc::device_busy);
  REFUSED(core.release_io(board.io[a_prefill][0]), errc::device_busy);
  REFUSED(core.kv_reserve(0, 1, 1, 4), errc::device_busy);
  REFUSED(core.kv_commit(0, 1, 1, 4), errc::device_busy);
  REFUSED(core.kv_rollback(0, 1, 1), errc::device_busy);
  REFUSED(core.begin_reset_configuration(0), errc::device_busy);
  // A release takes effect at the job's end: both slots stay taken until then.
  BOOST_TEST(core.kv_release(0, 1, 1).has_value());
  REFUSED(core.kv_reserve(0, 1, 3, 4), errc::kv_exhausted);
  REFUSED(core.kv_release(0, 1, 1), errc::unknown_name);
  core.transfer_done(ticket, 1, 2);
  core.compute_done(ticket, {}, 3, 4);
  core.transfer_done(ticket, 5, 6);
  BOOST_TEST(core.kv_reserve(0, 1, 3, 4).has_value());
  BOOST_TEST(core.release_io(board.io[a_prefill][0]).has_value());
  REFUSED(core.release_io(board.io[a_prefill][0]), errc::unknown_name);
}

BOOST_AUTO_TEST_CASE(staging_is_bounded_a_chip) {
  Board board{performed()};
  board.configure();
  REFUSED(board.core.allocate_io(4), errc::unknown_name);
  for (int i = 0; i < 4; ++i) BOOST_REQUIRE(board.core.allocate_io(a_decode).has_value());
  REFUSED(board.core.allocate_io(a_decode), errc::out_of_memory);
  BOOST_TEST(board.core.allocate_io(b_decode).has_value());
}

BOOST_AUTO_TEST_CASE(the_queue_of_a_chip_is_bounded_and_the_other_chips_is_not_touched) {
  Profile profile = performed();
  profile.jobs_per_chip_max = 1;
  Board board{profile};
  board.configure();
  const JobTicket ticket = board.prefill(a_prefill, 1, 4, 0);
  BOOST_REQUIRE(board.core.kv_reserve(0, 1, 2, 4).has_value());
  const VendorJob second = board.job(a_prefill, 2, 0, 4, 1);
  REFUSED(board.core.submit(second, board.ids, 0), errc::queue_full);
  board.prefill(b_prefill, 1001, 4, 0);
  board.core.transfer_done(ticket, 1, 2);
  board.core.compute_done(ticket, {}, 3, 4);
  REFUSED(board.core.submit(second, board.ids, 0), errc::queue_full);
  // Chip 1's input goes over the link before chip 0's output.
  BOOST_TEST(board.take<StartTransfer>().size() == 2U);
}

BOOST_AUTO_TEST_CASE(cancel_removes_what_has_not_started_and_says_so_of_the_rest) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket running = board.prefill(a_prefill, 1, 4, 0, 0, Engine::ping);
  const JobTicket queued = board.prefill(a_prefill, 2, 4, 0, 1, Engine::ping);
  core.transfer_done(running, 1, 2);
  BOOST_TEST((core.cancel(running, 3).value() == CancelEffect::delivery_only));
  BOOST_TEST((core.cancel(queued, 3).value() == CancelEffect::removed_from_queue));
  BOOST_TEST((core.cancel(queued, 3).value() == CancelEffect::already_done));
  REFUSED(core.cancel(999, 3), errc::unknown_name);
  REFUSED(core.begin_wait(999, 3), errc::unknown_name);
  const VendorJobEnd end = board.end_of(queued);
  BOOST_TEST((end.status == errc::cancelled));
  BOOST_TEST(end.kv_before == 0U);
  BOOST_TEST(end.kv_after == 0U);
  BOOST_TEST(end.times.compute_end == 0U);
  REFUSED(core.kv_commit(0, 1, 2, 4), errc::bad_argument);
  core.compute_done(running, {}, 3, 4);
  core.transfer_done(running, 5, 6);
  BOOST_TEST(!board.end_of(running).status.failed());
  BOOST_TEST(core.counters().jobs_submitted ==
             core.counters().jobs_done + core.counters().jobs_failed);
}

BOOST_AUTO_TEST_CASE(a_cancelled_job_whose_input_is_in_place_frees_its_engine) {
  Board board{performed()};
  board.configure();
  BoardCore& core = board.core;
  const JobTicket first = board.prefill(a_prefill, 1, 4, 0, 0);
  const JobTicket ready = board.prefill(a_prefill, 2, 4, 0, 1);
  core.transfer_done(first, 1, 2);
  core.transfer_done(ready, 2, 3);
  BOOST_TEST((core.cancel(ready, 4).value() == CancelEffect::removed_from_queue));
  BOOST_TEST(core.health(0).value().in_flight.value() == 1U);
}

BOOST_AUTO_TEST_CASE(the_trace_drops_its_oldest_events_and_counts_them) {
  Profile profile = performed();
  profile.trace_events_max = 6;
  Board board{profile};
  board.configure();
  for (int i = 0; i < 3; ++i) {
    const JobTicket ticket = board.prefill(a_prefill, 1, 1, 0);
    board.core.transfer_done(ticket, 1, 2);
    board.core.compute_done(ticket, {}, 3, 4);
    board.core.transfer_done(ticket, 5, 6);
    board.take<JobEnded>();
    board.end_of(ticket);
  }
  const Trace trace = board.core.take_trace(0).value();
  BOOST_TEST(trace.dropped == 6U);
  BOOST_REQUIRE(trace.events.size() == 6U);
  BOOST_TEST(trace.events.front().job == 2U);
  BOOST_TEST(trace.events.back().job == 3U);
  BOOST_TEST(board.core.take_trace(0).value().dropped == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device::emulator
