// threaded_board_test.cpp: the board with real threads: whole runs, refusals, faults, ends.
#include "device/emulator/threaded_board.hpp"

#include "device/contract/overlap.hpp"
#include "device/emulator/threaded_cores.hpp"
#include "tests/device/emulator/fakes.hpp"

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace duet::device::emulator {
namespace {

using fixture::a_decode;
using fixture::a_prefill;
using fixture::b_decode;
using fixture::b_prefill;

constexpr TimePoint past_deadline{};

/// Answers one fault at one visit of one point.
class OneFault final : public FaultHook {
 public:
  OneFault(FaultPoint point, Fault fault, std::uint64_t visit = 0)
      : point_(point), fault_(fault), visit_(visit) {}
  Fault consult(const FaultSite& site) noexcept override {
    return site.point == point_ && site.visit == visit_ ? fault_ : Fault{};
  }

 private:
  FaultPoint point_;
  Fault fault_;
  std::uint64_t visit_;
};

struct Rig {
  explicit Rig(std::uint32_t threads = 1, FaultHook* faults = nullptr, bool gated = false) {
    std::string pattern = (std::filesystem::temp_directory_path() / "duet-board-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
    options.lock_directory = directory;
    options.profile.dram_bytes_per_chip = 1 << 20;
    options.threads_per_chip = threads;
    options.faults = faults;
    options.open_package =
        [this](const std::filesystem::path& path) -> result<std::unique_ptr<PackageImage>> {
      if (path != "demo") return Failure{errc::package_invalid, "no package at " + path.string()};
      return std::unique_ptr<PackageImage>{
          std::make_unique<fixture::FakeImage>(std::make_shared<fixture::FakePackage>(package))};
    };
    options.make_executable =
        [this, gated](
            std::vector<Program> programs, std::vector<TensorView> tensors, KvLayout,
            Arithmetic) -> boost::system::result<std::shared_ptr<const Executable>, std::string> {
      if (!refuse_programs.empty()) return refuse_programs;
      return std::shared_ptr<const Executable>{std::make_shared<fixture::FakeExecutable>(
          programs.at(0).chip, tensors.at(0).data, logits_made, gated ? &gate : nullptr)};
    };
  }
  ~Rig() {
    board.reset();
    std::filesystem::remove_all(directory);
  }

  ThreadedBoard& make() {
    board = std::make_unique<ThreadedBoard>(options);
    return *board;
  }
  ThreadedBoard& configured() {
    ThreadedBoard& made = make();
    BOOST_REQUIRE(made.open().has_value());
    BOOST_REQUIRE(made.load_package("demo").has_value());
    const auto done = made.configure();
    BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().detail);
    for (GraphHandle graph = 0; graph < 4; ++graph) {
      for (IoBuffers& buffers : io[graph]) buffers = made.allocate_io(graph).value();
    }
    return made;
  }

  VendorJob job(GraphHandle graph, SequenceId sequence, std::uint32_t past,
                const std::vector<std::uint32_t>& tokens, std::size_t which = 0) {
    IoBuffers& buffers = io[graph][which];
    std::copy(tokens.begin(), tokens.end(), buffers.tokens.begin());
    VendorJob job;
    job.graph = graph;
    job.job = ++jobs;
    job.generation = 1;
    job.sequence = sequence;
    job.past = past;
    job.tokens = static_cast<std::uint32_t>(tokens.size());
    job.buffers = buffers.id;
    return job;
  }

  JobTicket start(GraphHandle graph, SequenceId sequence, std::uint32_t past,
                  const std::vector<std::uint32_t>& tokens, std::size_t which = 0) {
    const auto count = static_cast<std::uint32_t>(tokens.size());
    BOOST_REQUIRE(board->kv_reserve(graph / 2, 1, sequence, count).has_value());
    const auto ticket = board->submit(job(graph, sequence, past, tokens, which));
    BOOST_REQUIRE_MESSAGE(ticket.has_value(), ticket.error().detail);
    return ticket.value();
  }

  std::filesystem::path directory;
  fixture::FakePackage package;
  fixture::Gate gate;
  std::string refuse_programs;
  std::uint32_t logits_made = fixture::vocabulary;
  ThreadedBoardOptions options;
  std::unique_ptr<ThreadedBoard> board;
  std::array<std::array<IoBuffers, 2>, 4> io{};
  std::atomic<JobId> jobs{0};
};

#define REFUSED(expression, value)                                         \
  do {                                                                     \
    const auto answer_ = (expression);                                     \
    BOOST_REQUIRE_MESSAGE(answer_.has_error(), #expression);               \
    BOOST_TEST((answer_.error().code == (value)), answer_.error().detail); \
    BOOST_TEST(!answer_.error().detail.empty());                           \
  } while (false)

/// A prefill and `steps` decodes of one sequence; true if every logit is the one foretold.
bool run_sequence(Rig& rig, std::uint32_t chip, SequenceId sequence, int steps, std::size_t which) {
  ThreadedBoard& board = *rig.board;
  std::vector<std::uint32_t> history{1, 2, 3, chip};
  std::uint32_t committed = 0;
  for (int step = 0; step <= steps; ++step) {
    const GraphHandle graph = chip * 2 + (step == 0 ? 0 : 1);
    const std::vector<std::uint32_t> fresh(history.begin() + committed, history.end());
    const auto count = static_cast<std::uint32_t>(fresh.size());
    if (board.kv_reserve(chip, 1, sequence, count).has_error()) return false;
    const auto ticket = board.submit(rig.job(graph, sequence, committed, fresh, which));
    if (ticket.has_error()) return false;
    const auto end = board.wait(ticket.value(), no_deadline);
    if (end.has_error() || end->status || end->kv_before != committed) return false;
    if (board.kv_commit(chip, 1, sequence, count).has_error()) return false;
    committed += count;
    if (end->kv_after != committed) return false;
    const std::span<const float> logits = rig.io[graph][which].logits;
    for (std::uint32_t i = 0; i < fixture::vocabulary; ++i) {
      const auto weight = static_cast<std::uint8_t>(40 + chip);
      if (logits[i] != fixture::expected_logit(history, chip, i, weight)) return false;
    }
    history.push_back(static_cast<std::uint32_t>(step) % fixture::vocabulary);
  }
  return board.kv_release(chip, 1, sequence).has_value();
}

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
