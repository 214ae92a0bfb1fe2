// combined_adapter_test.cpp: the session contract over a combined runtime, one call at a time.
#include "device/calrt/combined_adapter.hpp"

#include "device/contract/limits.hpp"
#include "fake_runtime.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace duet::device;   // NOLINT: the whole file speaks its language
using duet::test::FakeRuntime;
using duet::test::ManualClock;
using duet::test::Recorder;
using duet::test::SteppedSource;
using std::chrono::seconds;

std::shared_ptr<const Manifest> make_manifest() {
  auto manifest = std::make_shared<Manifest>();
  for (std::uint32_t chip = 0; chip < 2; ++chip) {
    Model model;
    model.name = chip == 0 ? "model-a" : "model-b";
    model.alias = model.name;
    model.chip = chip;
    model.prefill = model.name + ".prefill";
    model.decode = model.name + ".decode";
    model.kv.slots = 2;
    model.kv.tokens_per_slot = 16;
    model.kv.sequence_id_first = 100 * (chip + 1);
    model.kv.sequence_id_last = 100 * (chip + 1) + 99;
    manifest->models.push_back(model);
  }
  return manifest;
}

/// A board with everything under the test's hand.
struct Board {
  Board() {
    runtime.topology.runtime = "fake";
    runtime.topology.chips = 2;
    runtime.topology.inflight_per_chip_max = 2;
    runtime.graphs = {{"model-a.prefill", {0}, ChipMode::schip},
                      {"model-a.decode", {0}, ChipMode::schip},
                      {"model-b.prefill", {1}, ChipMode::schip},
                      {"model-b.decode", {1}, ChipMode::schip}};
    runtime.hash = "abc";
    adapter = std::make_unique<CombinedAdapter>(runtime, source, clock);
  }

  /// Everything up to two loaded sessions with one pair of buffers each.
  void bring_up(std::uint32_t inflight_max = 1) {
    adapter->open(1, no_deadline, sink);
    adapter->load_package(2, {"pkg", make_manifest(), "abc"}, no_deadline, sink);
    adapter->configure(3, 1, no_deadline, sink);
    for (std::uint32_t chip = 0; chip < 2; ++chip) {
      adapter->create_session(4, {.chip = chip, .inflight_max = inflight_max}, sink, sink);
      adapter->load_model(5, chip + 1, 1, chip == 0 ? "model-a" : "model-b", no_deadline, sink);
      for (std::uint32_t i = 0; i < inflight_max; ++i) {
        adapter->allocate_io(6, chip + 1, GraphKind::prefill, sink);
      }
    }
    source.settle();
    for (const CallDone& call : sink->calls) BOOST_REQUIRE(call.outcome.has_value());
    generation = std::get<SessionState>(*sink->calls.at(4).outcome).generation;
    sink->calls.clear();
    runtime.take_lines();
  }

  [[nodiscard]] JobRequest job(JobId id, SequenceId sequence, std::uint64_t buffers = 1) const {
    JobRequest request;
    request.job = id;
    request.session = 1;
    request.generation = generation;
    request.graph = GraphKind::prefill;
    request.sequence = sequence;
    request.tokens = 4;
    request.buffers = buffers;
    return request;
  }

  void submit(JobId id, SequenceId sequence) {
    BOOST_REQUIRE(adapter->kv_reserve(1, generation, sequence, 4));
    BOOST_REQUIRE(adapter->submit(job(id, sequence)));
  }

  errc last_error() {
    const errc code = sink->calls.back().outcome.error().code;
    sink->calls.clear();
    return code;
  }

  FakeRuntime runtime;
  SteppedSource source;
  ManualClock clock;
  std::shared_ptr<Recorder> sink = std::make_shared<Recorder>();
  std::unique_ptr<CombinedAdapter> adapter;
  Generation generation = 0;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(combined_adapter)

// configure is global and happens once.
BOOST_AUTO_TEST_CASE(a_second_configure_is_refused_and_never_reaches_the_runtime) {
  Board board;
  board.bring_up();
  board.adapter->configure(9, 1, no_deadline, board.sink);
  board.source.settle();
  BOOST_TEST(board.sink->calls.back().tag == 9U);
  BOOST_TEST((board.last_error() == errc::already_configured));
  BOOST_TEST(board.runtime.lines.empty());
}

// what the device holds must be what was validated.
BOOST_AUTO_TEST_CASE(a_package_that_changed_between_validation_and_configure_is_taken_back) {
  Board board;
  board.runtime.hash = "another";
  board.adapter->open(1, no_deadline, board.sink);
  board.adapter->load_package(2, {"pkg", make_manifest(), "abc"}, no_deadline, board.sink);
  board.adapter->configure(3, 1, no_deadline, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::package_invalid));
  BOOST_TEST(board.runtime.lines.back() == "reset_configuration");
  board.adapter->create_session(4, {}, board.sink, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::wrong_state));
}

BOOST_AUTO_TEST_CASE(a_model_is_bound_only_to_the_chip_that_its_graphs_target) {
  Board board;
  board.adapter->open(1, no_deadline, board.sink);
  board.adapter->load_package(2, {"pkg", make_manifest(), "abc"}, no_deadline, board.sink);
  board.adapter->configure(3, 1, no_deadline, board.sink);
  board.adapter->create_session(4, {.chip = 0}, board.sink, board.sink);
  board.adapter->load_model(5, 1, 1, "model-b", no_deadline, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::bad_argument));
  board.adapter->load_model(5, 1, 1, "model-c", no_deadline, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::unknown_name));
  board.adapter->create_session(4, {.chip = 0}, board.sink, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::unsupported));
  board.adapter->create_session(4, {.chip = 2}, board.sink, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::bad_argument));
}

//
BOOST_AUTO_TEST_CASE(a_job_tells_the_runtime_of_its_reservation_and_of_the_last_commit_first) {
  Board board;
  board.bring_up();
  board.submit(1, 100);
  board.source.settle();
  BOOST_TEST(board.runtime.take_lines() ==
                 (std::vector<std::string>{"reserve chip0 seq100 4", "submit 0 seq100 past0",
                                           "wait-forever 1"}),
             boost::test_tools::per_element());
  BOOST_REQUIRE(board.sink->jobs.size() == 1U);
  BOOST_TEST(!board.sink->jobs[0].status.failed());
  BOOST_TEST(board.sink->jobs[0].settled);

  BOOST_REQUIRE(board.adapter->kv_commit(1, board.generation, 100, 4));
  BOOST_REQUIRE(board.adapter->kv_reserve(1, board.generation, 100, 4));
  JobRequest next = board.job(2, 100);
  next.past = 4;
  BOOST_REQUIRE(board.adapter->submit(next));
  board.source.settle();
  BOOST_TEST(board.runtime.take_lines() ==
                 (std::vector<std::string>{"commit chip0 seq100 4", "reserve chip0 seq100 4",
                                           "submit 0 seq100 past4", "wait-forever 2"}),
             boost::test_tools::per_element());

  BOOST_REQUIRE(board.adapter->kv_release(1, board.generation, 100));
  board.source.settle();
  BOOST_TEST(board.runtime.take_lines() == (std::vector<std::string>{"release chip0 seq100"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_the_books_know_is_refused_at_once_and_completes_nothing) {
  Board board;
  board.bring_up();
  BOOST_TEST((board.adapter->submit(board.job(1, 100)).error().code == errc::unknown_name));
  BOOST_REQUIRE(board.adapter->kv_reserve(1, board.generation, 100, 4));
  JobRequest job = board.job(1, 100);
  job.generation = board.generation - 1;
  BOOST_TEST((board.adapter->submit(job).error().code == errc::stale_generation));
  job = board.job(1, 100, 77);
  BOOST_TEST((board.adapter->submit(job).error().code == errc::unknown_name));
  job = board.job(1, 100);
  job.tokens = 17;
  BOOST_TEST((board.adapter->submit(job).error().code == errc::bad_argument));
  job = board.job(1, 100);
  job.session = 7;
  BOOST_TEST((board.adapter->submit(job).error().code == errc::unknown_name));
  BOOST_REQUIRE(board.adapter->submit(board.job(1, 100)));
  BOOST_REQUIRE(board.adapter->kv_reserve(1, board.generation, 101, 4));
  BOOST_TEST((board.adapter->submit(board.job(1, 101)).error().code == errc::bad_argument));
  BOOST_TEST((board.adapter->submit(board.job(2, 101)).error().code == errc::bad_argument));
  board.source.settle();
  BOOST_TEST(board.sink->jobs.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_full_session_refuses_and_a_refusal_of_the_runtime_arrives_as_not_ran) {
  Board board;
  board.bring_up(2);
  board.runtime.fail("submit", errc::device_busy);
  for (SequenceId sequence : {100U, 101U}) {
    BOOST_REQUIRE(board.adapter->kv_reserve(1, board.generation, sequence, 4));
    BOOST_REQUIRE(board.adapter->submit(board.job(sequence, sequence, sequence - 99)));
  }
  BOOST_TEST((board.adapter->submit(board.job(5, 100)).error().code == errc::bad_argument));
  board.adapter->allocate_io(7, 1, GraphKind::prefill, board.sink);
  board.source.settle();
  BOOST_REQUIRE(board.sink->jobs.size() == 2U);
  BOOST_TEST((board.sink->jobs[0].status == errc::device_busy));
  BOOST_TEST(!board.sink->jobs[0].ran);
  BOOST_TEST(!board.sink->jobs[1].status.failed());
  // It may be submitted again as it is.
  BOOST_TEST(board.adapter->submit(board.job(100, 100)).has_value());
  board.source.settle();
  BOOST_TEST(!board.sink->jobs[2].status.failed());
}

BOOST_AUTO_TEST_CASE(a_cancel_before_the_start_removes_and_after_it_only_stops_delivery) {
  Board board;
  board.bring_up();
  board.submit(1, 100);
  BOOST_TEST((board.adapter->cancel(1, 1).value() == CancelEffect::removed_from_queue));
  board.source.settle();
  BOOST_TEST((board.sink->jobs.at(0).status == errc::cancelled));
  BOOST_TEST(!board.sink->jobs.at(0).ran);
  BOOST_TEST(board.runtime.lines.empty());

  BOOST_REQUIRE(board.adapter->submit(board.job(2, 100)));
  BOOST_REQUIRE(board.source.start("chip0-job"));
  BOOST_TEST((board.adapter->query(1, 2) == JobState::running));
  BOOST_TEST((board.adapter->cancel(1, 2).value() == CancelEffect::delivery_only));
  BOOST_REQUIRE(board.source.finish("chip0-job"));
  BOOST_TEST((board.adapter->query(1, 2) == JobState::unknown));
  BOOST_TEST((board.adapter->cancel(1, 2).error().code == errc::unknown_name));
}

// nothing that DMA may touch is used again before the job has settled.
BOOST_AUTO_TEST_CASE(a_wait_that_times_out_completes_unsettled_and_settles_later) {
  Board board;
  board.bring_up();
  board.runtime.fail("wait ", errc::wait_timeout);
  BOOST_REQUIRE(board.adapter->kv_reserve(1, board.generation, 100, 4));
  JobRequest job = board.job(1, 100);
  job.deadline = TimePoint(seconds(1));
  BOOST_REQUIRE(board.adapter->submit(job));
  BOOST_REQUIRE(board.source.start("chip0-job"));
  BOOST_REQUIRE(board.sink->jobs.size() == 1U);
  BOOST_TEST((board.sink->jobs[0].status == errc::wait_timeout));
  BOOST_TEST(!board.sink->jobs[0].settled);
  BOOST_TEST((board.adapter->query(1, 1) == JobState::unsettled));
  board.adapter->release_io(7, 1, 1, board.sink);
  board.adapter->unload(8, 1, no_deadline, board.sink);
  BOOST_REQUIRE(board.source.start("board-life"));
  BOOST_REQUIRE(board.source.finish("board-life"));
  BOOST_TEST((board.last_error() == errc::device_busy));
  BOOST_REQUIRE(board.source.start("board-life"));
  BOOST_REQUIRE(board.source.finish("board-life"));
  BOOST_TEST((board.last_error() == errc::device_busy));

  BOOST_REQUIRE(board.source.finish("chip0-job"));
  BOOST_TEST(board.sink->settled == (std::vector<JobId>{1}), boost::test_tools::per_element());
  BOOST_TEST(board.sink->jobs.size() == 1U);
}

// DESIGN 4: a call that never returns keeps its buffers and its slot; its thread is replaced.
BOOST_AUTO_TEST_CASE(an_abandoned_job_is_kept_and_the_session_goes_on_with_a_new_thread) {
  Board board;
  board.bring_up(1);
  board.adapter->allocate_io(7, 1, GraphKind::prefill, board.sink);
  board.source.settle();
  board.submit(1, 100);
  BOOST_REQUIRE(board.source.start("chip0-job"));
  BOOST_REQUIRE(board.adapter->abandon(1, 1));
  BOOST_TEST((board.sink->jobs.at(0).status == errc::wait_timeout));
  BOOST_TEST(board.source.abandoned() == 1U);
  BOOST_TEST((board.adapter->query(1, 1) == JobState::unsettled));
  BOOST_TEST((board.adapter->abandon(1, 1).error().code == errc::unknown_name));

  BOOST_REQUIRE(board.adapter->kv_reserve(1, board.generation, 101, 4));
  BOOST_TEST((board.adapter->submit(board.job(2, 101, 1)).error().code == errc::bad_argument));
  BOOST_REQUIRE(board.adapter->submit(board.job(2, 101, 3)));
  board.source.settle();
  BOOST_TEST(!board.sink->jobs.at(1).status.failed());

  board.source.abandoned_calls.at(0)->finish(true);   // it came back after all
  BOOST_TEST(board.sink->settled == (std::vector<JobId>{1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_drain_refuses_new_jobs_and_ends_with_the_last_one) {
  Board board;
  board.bring_up();
  board.submit(1, 100);
  board.adapter->drain(9, 1, TimePoint(seconds(5)), board.sink);
  BOOST_TEST(board.sink->calls.empty());
  BOOST_REQUIRE(board.adapter->kv_reserve(1, board.generation, 101, 4));
  BOOST_TEST((board.adapter->submit(board.job(2, 101)).error().code == errc::draining));
  board.source.settle();
  BOOST_REQUIRE(board.sink->calls.size() == 1U);
  BOOST_TEST(
      (std::get<SessionState>(*board.sink->calls[0].outcome).phase == SessionPhase::draining));
  BOOST_TEST(board.clock.armed() == 0U);
  BOOST_REQUIRE(board.adapter->resume(1));
  BOOST_TEST(board.adapter->submit(board.job(2, 101)).has_value());
  board.source.settle();
}

BOOST_AUTO_TEST_CASE(a_drain_that_takes_too_long_says_so_once) {
  Board board;
  board.bring_up();
  board.submit(1, 100);
  board.adapter->drain(9, 1, TimePoint(seconds(5)), board.sink);
  board.clock.advance(seconds(5));
  BOOST_TEST((board.last_error() == errc::drain_timeout));
  board.source.settle();
  BOOST_TEST(board.sink->calls.empty());
  BOOST_TEST(board.sink->jobs.size() == 1U);
}

// a stale completion never looks like a fresh one, and generations never repeat.
BOOST_AUTO_TEST_CASE(a_device_reset_completes_running_jobs_as_stale_before_it_ends) {
  Board board;
  board.bring_up();
  board.submit(1, 100);
  BOOST_REQUIRE(board.source.start("chip0-job"));
  board.adapter->reset(9, {ResetScope::device, 0, 0}, no_deadline, board.sink);
  BOOST_REQUIRE(board.source.start("board-life"));
  BOOST_REQUIRE(board.sink->jobs.size() == 1U);
  BOOST_TEST((board.sink->jobs[0].status == errc::stale_generation));
  BOOST_TEST(board.sink->jobs[0].generation == board.generation);
  BOOST_TEST(board.sink->calls.empty());
  BOOST_REQUIRE(board.source.finish("board-life"));
  const auto touched = std::get<std::vector<SessionState>>(*board.sink->calls.at(0).outcome);
  BOOST_REQUIRE(touched.size() == 2U);
  BOOST_TEST(touched[0].generation > board.generation);
  BOOST_TEST(touched[0].generation != touched[1].generation);
  BOOST_TEST((touched[0].phase == SessionPhase::ended));
  BOOST_TEST((board.adapter->submit(board.job(2, 100)).error().code == errc::unknown_name));
}

BOOST_AUTO_TEST_CASE(
    a_scope_that_the_runtime_lacks_is_unsupported_and_a_failed_reset_loses_the_sessions) {
  Board board;
  board.bring_up();
  board.adapter->reset(9, {ResetScope::chip, 0, 0}, no_deadline, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::unsupported));
  board.runtime.fail("reset", errc::reset_failed);
  board.adapter->reset(9, {ResetScope::device, 0, 0}, no_deadline, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::reset_failed));
  BOOST_TEST((board.adapter->submit(board.job(2, 100)).error().code == errc::stale_generation));
}

BOOST_AUTO_TEST_CASE(a_life_cycle_call_past_its_deadline_loses_the_driver) {
  Board board;
  board.adapter->open(1, TimePoint(seconds(3)), board.sink);
  board.clock.advance(seconds(3));
  BOOST_TEST((board.last_error() == errc::call_timeout));
  board.adapter->read_hash(2, no_deadline, board.sink);
  BOOST_TEST((board.last_error() == errc::driver_lost));
  board.source.settle();   // the late end is dropped
  BOOST_TEST(board.sink->calls.empty());
}

BOOST_AUTO_TEST_CASE(close_and_reset_configuration_wait_for_nobody_and_refuse_while_a_job_runs) {
  Board board;
  board.bring_up();
  board.submit(1, 100);
  BOOST_REQUIRE(board.source.start("chip0-job"));
  board.adapter->reset_configuration(8, no_deadline, board.sink);
  board.adapter->close(9, no_deadline, board.sink);
  for (int i = 0; i < 2; ++i) {
    BOOST_REQUIRE(board.source.start("board-life"));
    BOOST_REQUIRE(board.source.finish("board-life"));
    BOOST_TEST((board.last_error() == errc::device_busy));
  }
  BOOST_REQUIRE(board.source.finish("chip0-job"));
  board.adapter->reset_configuration(8, no_deadline, board.sink);
  board.adapter->close(9, no_deadline, board.sink);
  board.source.settle();
  BOOST_TEST(board.sink->calls.size() == 2U);
  for (const CallDone& call : board.sink->calls) BOOST_TEST(call.outcome.has_value());
  BOOST_TEST(board.runtime.lines.back() == "close");
}

BOOST_AUTO_TEST_CASE(the_number_of_waiting_calls_and_of_buffers_is_bounded) {
  Board board;
  board.bring_up();
  for (std::uint32_t i = 1; i < limits::io_buffers_max; ++i) {
    board.adapter->allocate_io(7, 1, GraphKind::decode, board.sink);
  }
  board.source.settle();
  for (const CallDone& call : board.sink->calls) BOOST_TEST(call.outcome.has_value());
  board.adapter->allocate_io(7, 1, GraphKind::decode, board.sink);
  board.source.settle();
  BOOST_TEST((board.last_error() == errc::out_of_memory));
  for (std::size_t i = 0; i < limits::calls_queued_max + 2; ++i) {
    board.adapter->read_hash(i, no_deadline, board.sink);
  }
  BOOST_TEST((board.last_error() == errc::queue_full));
}

BOOST_AUTO_TEST_SUITE_END()
