// threaded_board_test.cpp: the board with real threads: whole runs, waits and refusals.
#include "device/contract/overlap.hpp"
#include "tests/device/emulator/threaded_rig.hpp"

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace duet::device::emulator {
namespace {

using namespace fixture;

BOOST_AUTO_TEST_SUITE(threaded_board)

// four sequences on two chips at once; each answer is its own sequence's.
BOOST_AUTO_TEST_CASE(sequences_of_both_chips_run_at_once_and_get_their_own_answers) {
  for (const std::uint32_t threads : {1U, 2U}) {
    Rig rig{threads};
    ThreadedBoard& board = rig.configured();
    std::atomic<int> right{0};
    std::vector<std::thread> clients;
    for (std::uint32_t client = 0; client < 4; ++client) {
      clients.emplace_back([&, client] {
        const std::uint32_t chip = client % 2;
        const std::size_t which = client / 2;
        for (int round = 0; round < 5; ++round) {
          const SequenceId sequence = chip * 1000 + 1 + which * 100 + static_cast<unsigned>(round);
          right += run_sequence(rig, chip, sequence, 20, which) ? 1 : 0;
        }
      });
    }
    for (std::thread& client : clients) client.join();
    BOOST_TEST(right == 20);
    const Counters counters = board.counters();
    BOOST_TEST(counters.jobs_submitted == 420U);
    BOOST_TEST(counters.jobs_done == 420U);
    BOOST_TEST(counters.configures == 1U);
    BOOST_TEST(board.memory_usage(0)->kv_slots_used.value() == 0U);
    BOOST_TEST(board.health(1)->jobs_completed.value() == 210U);
  }
}

// both chips compute at the same time, shown by the trace alone: neither computation
// is let go before the other has begun.
BOOST_AUTO_TEST_CASE(the_trace_shows_both_chips_computing_at_the_same_time) {
  Rig rig{1, nullptr, true};
  ThreadedBoard& board = rig.configured();
  rig.gate.hold(0);
  rig.gate.hold(1);
  const JobTicket a = rig.start(a_prefill, 1, 0, {1, 2});
  const JobTicket b = rig.start(b_prefill, 1001, 0, {3});
  rig.gate.await_arrival(0);
  rig.gate.await_arrival(1);
  rig.gate.let_go(0);
  rig.gate.let_go(1);
  BOOST_TEST(!board.wait(a, no_deadline)->status.failed());
  const JobTimes times = board.wait(b, no_deadline)->times;
  BOOST_TEST(times.submitted <= times.h2d_begin);
  BOOST_TEST(times.h2d_end <= times.compute_begin);
  BOOST_TEST(times.compute_begin < times.compute_end);
  BOOST_TEST(times.compute_end <= times.d2h_begin);
  std::vector<TraceEvent> trace = board.take_trace(0)->events;
  const std::vector<TraceEvent> other = board.take_trace(1)->events;
  trace.insert(trace.end(), other.begin(), other.end());
  BOOST_TEST(compute_overlap(trace, 0, 1).ratio > 0.0);
}

BOOST_AUTO_TEST_CASE(a_wait_times_out_and_the_job_can_be_waited_for_again) {
  Rig rig{1, nullptr, true};
  ThreadedBoard& board = rig.configured();
  rig.gate.hold(0);
  const JobTicket ticket = rig.start(a_prefill, 1, 0, {1});
  rig.gate.await_arrival(0);
  REFUSED(board.wait(ticket, past_deadline), errc::wait_timeout);
  BOOST_TEST((board.cancel(ticket).value() == CancelEffect::delivery_only));
  REFUSED(board.release_io(rig.io[a_prefill][0].id), errc::device_busy);
  REFUSED(board.reset_configuration(), errc::device_busy);
  rig.gate.let_go(0);
  BOOST_TEST(!board.wait(ticket, no_deadline)->status.failed());
  REFUSED(board.wait(ticket, no_deadline), errc::unknown_name);
  REFUSED(board.wait(0, no_deadline), errc::unknown_name);
  REFUSED(board.cancel(ticket), errc::unknown_name);
}

BOOST_AUTO_TEST_CASE(a_queued_job_is_cancelled_and_its_wait_says_so) {
  Rig rig{1, nullptr, true};
  ThreadedBoard& board = rig.configured();
  rig.gate.hold(0);
  const JobTicket running = rig.start(a_prefill, 1, 0, {1});
  rig.gate.await_arrival(0);
  const JobTicket queued = rig.start(a_prefill, 2, 0, {1}, 1);
  bool told = false;
  std::thread waiter{[&] {
    const auto end = board.wait(queued, no_deadline);
    told = end.has_value() && end->status == errc::cancelled;
  }};
  BOOST_TEST((board.cancel(queued).value() == CancelEffect::removed_from_queue));
  waiter.join();
  BOOST_TEST(told);
  rig.gate.let_go(0);
  BOOST_TEST(!board.wait(running, no_deadline)->status.failed());
}

// refused before anything is touched.
BOOST_AUTO_TEST_CASE(a_second_board_object_is_refused_until_the_first_closes) {
  Rig rig;
  ThreadedBoard& first = rig.configured();
  ThreadedBoard second{rig.options};
  const auto refused = second.open();
  BOOST_REQUIRE(refused.has_error());
  BOOST_TEST((refused.error().code == errc::board_in_use));
  BOOST_TEST(refused.error().detail.find("duet-board0.lock") != std::string::npos);
  BOOST_TEST(refused.error().detail.find(std::to_string(::getpid())) != std::string::npos);
  BOOST_TEST(second.counters().opens == 0U);
  REFUSED(second.configure(), errc::not_open);
  REFUSED(second.close(), errc::not_open);
  REFUSED(first.open(), errc::wrong_state);
  BOOST_TEST(run_sequence(rig, 0, 1, 2, 0));
  BOOST_TEST(first.close().has_value());
  BOOST_TEST(second.open().has_value());
}

BOOST_AUTO_TEST_CASE(calls_out_of_order_are_refused) {
  Rig rig;
  ThreadedBoard& board = rig.make();
  REFUSED(board.load_package("demo"), errc::not_open);
  REFUSED(board.configure(), errc::not_open);
  REFUSED(board.current_hash(), errc::not_open);
  REFUSED(board.reset_configuration(), errc::not_open);
  REFUSED(board.reset(ResetScope::device, 0), errc::not_open);
  REFUSED(board.allocate_io(0), errc::not_open);
  REFUSED(board.submit(VendorJob{}), errc::not_open);
  REFUSED(board.wait(1, no_deadline), errc::not_open);
  REFUSED(board.take_trace(0), errc::not_open);
  BOOST_REQUIRE(board.open().has_value());
  REFUSED(board.configure(), errc::wrong_state);
  REFUSED(board.load_package("elsewhere"), errc::package_invalid);
  BOOST_TEST(board.load_package("demo").value().size() == 4U);
  REFUSED(board.submit(VendorJob{}), errc::wrong_state);
  BOOST_TEST(board.current_hash().value().empty());
  BOOST_TEST(board.reset(ResetScope::ccu, 0).has_value());
  BOOST_TEST(board.configure().has_value());
  BOOST_TEST(board.current_hash().value() == fixture::hash);
  REFUSED(board.configure(), errc::already_configured);
  REFUSED(board.load_package("demo"), errc::wrong_state);
  REFUSED(board.allocate_io(4), errc::unknown_name);
  REFUSED(board.reset(ResetScope::session, 0), errc::unsupported);
  BOOST_TEST(board.counters().configure_calls == 3U);
  BOOST_TEST(board.counters().configures == 1U);
}

BOOST_AUTO_TEST_CASE(bad_jobs_are_refused_at_once) {
  Rig rig;
  ThreadedBoard& board = rig.configured();
  BOOST_REQUIRE(board.kv_reserve(0, 1, 1, 8).has_value());
  const VendorJob good = rig.job(a_prefill, 1, 0, {1, 2, 3});
  const auto damaged = [&](auto damage) {
    VendorJob job = good;
    damage(job);
    return board.submit(job);
  };
  REFUSED(damaged([](VendorJob& j) { j.graph = 9; }), errc::unknown_name);
  REFUSED(damaged([](VendorJob& j) { j.tokens = 0; }), errc::bad_argument);
  REFUSED(damaged([](VendorJob& j) { j.tokens = fixture::context + 1; }), errc::bad_argument);
  REFUSED(damaged([](VendorJob& j) { j.buffers = 77; }), errc::unknown_name);
  REFUSED(damaged([](VendorJob& j) { j.buffers = 0; }), errc::unknown_name);
  REFUSED(damaged([](VendorJob& j) { j.sequence = 2; }), errc::kv_exhausted);
  REFUSED(damaged([](VendorJob& j) { j.past = 1; }), errc::bad_argument);
  rig.io[a_prefill][0].tokens[1] = fixture::vocabulary;
  REFUSED(board.submit(good), errc::bad_argument);
  rig.io[a_prefill][0].tokens[1] = 0;
  BOOST_TEST(board.submit(good).has_value());
}

BOOST_AUTO_TEST_CASE(package_contents_that_do_not_hold_are_refused_and_leave_the_board_usable) {
  struct Row {
    const char* what;
    errc code;
    const char* says;
    std::function<void(Rig&)> damage;
  };
  const std::vector<Row> table{
      {"weights changed after validation", errc::package_invalid, "has changed",
       [](Rig& rig) { rig.package.files["b.parameters"][5000] = std::byte{1}; }},
      {"weights missing", errc::package_invalid, "no file",
       [](Rig& rig) { rig.package.files.erase("a.parameters"); }},
      {"weights longer than the section", errc::package_invalid, "larger",
       [](Rig& rig) { rig.package.files["a.parameters"].resize(8193); }},
      {"tensor past the end", errc::package_invalid, "outside the parameters",
       [](Rig& rig) { rig.package.manifest.models[0].tensors[0].offset = 8192 - 64; }},
      {"tensor offset not aligned", errc::package_invalid, "outside the parameters",
       [](Rig& rig) { rig.package.manifest.models[0].tensors[0].offset = 65; }},
      {"tensor larger than its bytes", errc::package_invalid, "bad size",
       [](Rig& rig) {
         rig.package.manifest.models[0].tensors[0].shape = {5, 64};
       }},
      {"tensor size overflows", errc::package_invalid, "bad size",
       [](Rig& rig) {
         rig.package.manifest.models[0].tensors[0].shape = {1ULL << 33U, 1ULL << 33U};
       }},
      {"tensor of three dimensions", errc::package_invalid, "bad shape",
       [](Rig& rig) {
         rig.package.manifest.models[0].tensors[0].shape = {1, 1, 1};
       }},
      {"tensor of half a block", errc::package_invalid, "bad size",
       [](Rig& rig) {
         rig.package.manifest.models[0].tensors[0].dtype = DType::q8_0;
         rig.package.manifest.models[0].tensors[0].shape = {2, 48};
       }},
      {"tensor of unknown type", errc::package_invalid, "bad size",
       [](Rig& rig) { rig.package.manifest.models[0].tensors[0].dtype = static_cast<DType>(99); }},
      {"program of the other chip", errc::package_invalid, "another one's",
       [](Rig& rig) { rig.package.program_chip_offset = 1; }},
      {"program that does not verify", errc::package_invalid, "core 0, operation 3",
       [](Rig& rig) { rig.refuse_programs = "core 0, operation 3: bad"; }},
      {"logits of another vocabulary", errc::package_invalid, "15 logits",
       [](Rig& rig) { rig.logits_made = fixture::vocabulary - 1; }},
      {"workspace too small for one token", errc::out_of_memory, "workspace",
       [](Rig& rig) { fixture::section(rig.package.manifest, "a.workspace").bytes = 1023; }},
      {"slots off the vector grid", errc::package_invalid, "multiple of 64",
       [](Rig& rig) {
         rig.package.manifest.models[0].kv.slots = 1;
         rig.package.manifest.models[0].kv.bytes_per_slot += 4;
       }},
  };
  for (const Row& row : table) {
    BOOST_TEST_CONTEXT(row.what) {
      Rig rig;
      ThreadedBoard& board = rig.make();
      BOOST_REQUIRE(board.open().has_value());
      const fixture::FakePackage sound = rig.package;
      row.damage(rig);
      BOOST_REQUIRE(board.load_package("demo").has_value());
      const auto refused = board.configure();
      BOOST_REQUIRE(refused.has_error());
      BOOST_TEST((refused.error().code == row.code));
      BOOST_TEST(refused.error().detail.find(row.says) != std::string::npos,
                 refused.error().detail);
      BOOST_TEST(board.counters().configures == 0U);
      BOOST_TEST(board.memory_usage(0)->used_bytes.value() == 8192U);
      rig.package = sound;
      rig.refuse_programs.clear();
      rig.logits_made = fixture::vocabulary;
      BOOST_REQUIRE(board.load_package("demo").has_value());
      BOOST_TEST(board.configure().has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_graph_with_three_programs_or_none_is_refused_by_load) {
  Rig rig;
  ThreadedBoard& board = rig.make();
  BOOST_REQUIRE(board.open().has_value());
  for (const std::uint32_t count : {0U, 3U}) {
    rig.package.programs_a_graph = count;
    REFUSED(board.load_package("demo"), errc::package_invalid);
  }
  BOOST_TEST(board.memory_usage(0)->used_bytes.value() == 0U);
}

BOOST_AUTO_TEST_CASE(the_tile_is_halved_until_the_workspace_fits_its_section) {
  Rig rig;
  rig.options.tile = 256;   // 256 KiB; the section has 64.
  ThreadedBoard& board = rig.configured();
  BOOST_TEST(board.workspace_peak_bytes(0) == 65536U);
  BOOST_TEST(board.reset(ResetScope::device, 0).has_value());
  BOOST_TEST(board.workspace_peak_bytes(0) == 0U);
}

BOOST_AUTO_TEST_CASE(a_running_model_does_not_change_with_its_package) {
  Rig rig;
  rig.configured();
  rig.package.files["a.parameters"].assign(8192, std::byte{99});
  BOOST_TEST(run_sequence(rig, 0, 1, 3, 0));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device::emulator
