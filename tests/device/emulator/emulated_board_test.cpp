// emulated_board_test.cpp: the demo models, packed, on both chips of the board.
#include "device/emulator/emulated_board.hpp"

#include "device/contract/overlap.hpp"
#include "device/package/packer.hpp"
#include "device/package/validator.hpp"

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace duet::device::emulator {
namespace {

std::string demo_file(const char* name) {
  return (std::filesystem::path{DUET_SOURCE_DIR} / "tools" / "demo_models" / name).string();
}

/// The demo package, built once for all tests of this file.
struct DemoPackage {
  DemoPackage() {
    std::string pattern = (std::filesystem::temp_directory_path() / "duet-demo-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
    PackOptions options;
    options.models.push_back(
        {"model-a", "abacus", demo_file("abacus-q8_0.gguf"), demo_file("abacus.golden.json"), 0});
    options.models.push_back(
        {"model-b", "fable", demo_file("fable-q8_0.gguf"), demo_file("fable.golden.json"), 1});
    options.directory = package().string();
    options.kv_slots = 2;
    const auto built = build_package(options);
    BOOST_REQUIRE_MESSAGE(built.has_value(), built.error().message);
    hash = built->hash;
  }
  ~DemoPackage() { std::filesystem::remove_all(directory); }
  [[nodiscard]] std::filesystem::path package() const { return directory / "package"; }

  std::filesystem::path directory;
  std::string hash;
};

const DemoPackage& demo() {
  static const DemoPackage package;
  return package;
}

struct Bench {
  explicit Bench(std::uint32_t threads_per_chip) {
    ThreadedBoardOptions options;
    options.lock_directory = demo().directory;
    options.threads_per_chip = threads_per_chip;
    board = make_emulated_board(std::move(options));
    BOOST_REQUIRE(board->open().has_value());
    const auto loaded = board->load_package(demo().package());
    BOOST_REQUIRE_MESSAGE(loaded.has_value(), loaded.error().detail);
    graphs = loaded.value();
    const auto configured = board->configure();
    BOOST_REQUIRE_MESSAGE(configured.has_value(), configured.error().detail);
    for (GraphHandle graph = 0; graph < graphs.size(); ++graph) {
      io.push_back(board->allocate_io(graph).value());
    }
  }

  GraphHandle handle(const std::string& name) const {
    for (GraphHandle i = 0; i < graphs.size(); ++i) {
      if (graphs[i].name == name) return i;
    }
    return static_cast<GraphHandle>(graphs.size());
  }

  JobTicket start(GraphHandle graph, std::uint32_t chip, SequenceId sequence, std::uint32_t past,
                  const std::vector<std::uint32_t>& tokens) {
    VendorJob job;
    job.graph = graph;
    job.job = graph;
    job.generation = 1;
    job.sequence = sequence;
    job.past = past;
    job.tokens = static_cast<std::uint32_t>(tokens.size());
    job.buffers = io[graph].id;
    std::copy(tokens.begin(), tokens.end(), io[graph].tokens.begin());
    if (board->kv_reserve(chip, 1, sequence, job.tokens).has_error()) return 0;
    const auto ticket = board->submit(job);
    return ticket.has_value() ? ticket.value() : 0;
  }

  std::unique_ptr<ThreadedBoard> board;
  std::vector<LoadedGraph> graphs;
  std::vector<IoBuffers> io;
};

struct Judged {
  int steps = 0;               ///< judged: the golden's margin is large enough.
  int wrong = 0;               ///< the best token is another one than the golden's.
  int failed = 0;              ///< a call or job did not succeed.
  std::vector<float> logits;   ///< of the last step.
};

/// Feeds the golden's own tokens, prompt by prompt.
Judged follow_golden(Bench& bench, const Model& model, const Golden& golden, std::size_t prompts) {
  Judged judged;
  const GraphHandle prefill = bench.handle(model.prefill);
  const GraphHandle decode = bench.handle(model.decode);
  for (std::size_t p = 0; p < std::min(prompts, golden.prompts.size()); ++p) {
    const GoldenPrompt& prompt = golden.prompts[p];
    const SequenceId sequence = model.kv.sequence_id_first + p;
    std::vector<std::uint32_t> fresh = prompt.prompt_ids;
    std::uint32_t past = 0;
    for (std::size_t step = 0; step < prompt.tokens.size(); ++step) {
      const GraphHandle graph = step == 0 ? prefill : decode;
      const auto count = static_cast<std::uint32_t>(fresh.size());
      const JobTicket ticket = bench.start(graph, model.chip, sequence, past, fresh);
      const auto end = bench.board->wait(ticket, no_deadline);
      if (end.has_error() || end->status ||
          bench.board->kv_commit(model.chip, 1, sequence, count).has_error()) {
        ++judged.failed;
        return judged;
      }
      past += count;
      const std::span<const float> logits = bench.io[graph].logits;
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      if (prompt.margins[step] >= golden.rule.margin_min) {
        ++judged.steps;
        judged.wrong += static_cast<std::uint32_t>(best) == prompt.tokens[step] ? 0 : 1;
      }
      judged.logits.assign(logits.begin(), logits.end());
      fresh = {prompt.tokens[step]};
    }
    if (bench.board->kv_release(model.chip, 1, sequence).has_error()) ++judged.failed;
  }
  return judged;
}

BOOST_AUTO_TEST_SUITE(emulated_board)

// two different models answer at the same time, each on its own chip, and one
// or two threads a chip give the same bits.
BOOST_AUTO_TEST_CASE(both_demo_models_follow_their_goldens_at_the_same_time) {
  ValidateOptions trust;
  trust.allow_unsigned = true;
  const auto package = validate_package(demo().package().string(), trust).package;
  BOOST_REQUIRE(package != nullptr);
  const std::vector<Model>& models = package->manifest().models;
  BOOST_REQUIRE(models.size() == 2U);
  std::array<std::array<Judged, 2>, 2> judged;
  for (const std::uint32_t threads : {1U, 2U}) {
    Bench bench{threads};
    BOOST_TEST(bench.board->current_hash().value() == demo().hash);
    auto& now = judged[threads - 1];
    std::thread other{
        [&] { now[1] = follow_golden(bench, models[1], package->golden(models[1].name), 3); }};
    now[0] = follow_golden(bench, models[0], package->golden(models[0].name), 6);
    other.join();
    for (const Judged& model : now) {
      BOOST_TEST(model.failed == 0);
      BOOST_TEST(model.wrong == 0);
      BOOST_TEST(model.steps > 10);
    }
    BOOST_TEST(bench.board->counters().configures == 1U);
    BOOST_TEST(bench.board->counters().jobs_failed == 0U);
    BOOST_TEST(bench.board->workspace_peak_bytes(0) > 0U);
  }
  for (std::size_t model = 0; model < 2; ++model) {
    BOOST_TEST((judged[0][model].logits == judged[1][model].logits));
  }
}

// R-8.1: line by line what the package's own report says, and no more in use than that.
BOOST_AUTO_TEST_CASE(the_measured_memory_of_both_demo_models_is_what_the_package_planned) {
  ValidateOptions trust;
  trust.allow_unsigned = true;
  const auto package = validate_package(demo().package().string(), trust).package;
  BOOST_REQUIRE(package != nullptr);
  Bench bench{1};
  for (std::uint32_t chip = 0; chip < 2; ++chip) {
    const MemoryUsage usage = bench.board->memory_usage(chip).value();
    std::size_t compared = 0;
    std::size_t peaks = 0;
    for (const MemoryLine& line : package->manifest().memory) {
      if (line.chip != chip || line.what == "fragmentation" || line.what == "guard") continue;
      const auto part =
          std::find_if(usage.parts.begin(), usage.parts.end(),
                       [&](const MemoryPart& each) { return each.what == line.what; });
      BOOST_REQUIRE_MESSAGE(part != usage.parts.end(), line.what);
      BOOST_TEST(part->bytes == line.bytes, line.what);
      ++compared;
      if (!part->peak_bytes) continue;
      ++peaks;
      BOOST_TEST(*part->peak_bytes <= line.bytes, line.what);
      // Nothing of the weights may be missing on the chip; no sequence has run.
      if (line.what == "weights") BOOST_TEST(*part->peak_bytes == line.bytes);
      if (line.what == "workspace") {
        BOOST_TEST(*part->peak_bytes == bench.board->workspace_peak_bytes(chip));
      }
      if (line.what == "kv") BOOST_TEST(*part->peak_bytes == 0U);
    }
    BOOST_TEST(compared == 6U);
    BOOST_TEST(compared == usage.parts.size());
    BOOST_TEST(peaks == 3U);
  }
}

// the overlap comes from the trace alone. No time is judged: a pair of jobs that happened
// to run one after the other is tried again.
BOOST_AUTO_TEST_CASE(the_trace_of_real_computations_shows_both_chips_busy_at_once) {
  constexpr int pairs_max = 200;
  Bench bench{1};
  const GraphHandle a = bench.handle("model_a_prefill");
  const GraphHandle b = bench.handle("model_b_prefill");
  BOOST_REQUIRE(b < bench.graphs.size());
  const std::vector<std::uint32_t> prompt(100, 5);
  ValidateOptions trust;
  trust.allow_unsigned = true;
  const auto package = validate_package(demo().package().string(), trust).package;
  const SequenceId first = package->manifest().models[0].kv.sequence_id_first;
  const SequenceId second = package->manifest().models[1].kv.sequence_id_first;
  double ratio = 0;
  for (int pair = 0; pair < pairs_max && ratio == 0; ++pair) {
    const JobTicket one = bench.start(a, 0, first, 0, prompt);
    const JobTicket two = bench.start(b, 1, second, 0, prompt);
    BOOST_REQUIRE(!bench.board->wait(one, no_deadline)->status.failed());
    BOOST_REQUIRE(!bench.board->wait(two, no_deadline)->status.failed());
    std::vector<TraceEvent> trace = bench.board->take_trace(0)->events;
    const std::vector<TraceEvent> other = bench.board->take_trace(1)->events;
    trace.insert(trace.end(), other.begin(), other.end());
    ratio = compute_overlap(trace, 0, 1).ratio;
  }
  BOOST_TEST(ratio > 0.0);
}

BOOST_AUTO_TEST_CASE(a_damaged_directory_is_refused_and_the_configure_counter_stays_zero) {
  const std::filesystem::path copy = demo().directory / "damaged";
  std::filesystem::copy(demo().package(), copy, std::filesystem::copy_options::recursive);
  std::filesystem::path victim;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(copy)) {
    if (entry.is_regular_file() && entry.file_size() > 100000) victim = entry.path();
  }
  BOOST_REQUIRE(!victim.empty());
  {
    std::fstream file{victim, std::ios::in | std::ios::out | std::ios::binary};
    file.seekg(50000);
    const int old = file.get();
    file.seekp(50000);
    file.put(static_cast<char>(old ^ 1));
  }
  ThreadedBoardOptions options;
  options.lock_directory = demo().directory;
  const auto board = make_emulated_board(options);
  BOOST_REQUIRE(board->open().has_value());
  for (const auto& directory : {copy, demo().directory / "nothing"}) {
    const auto refused = board->load_package(directory);
    BOOST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().code == errc::package_invalid));
    BOOST_TEST(refused.error().detail.find(directory.string()) != std::string::npos);
    BOOST_TEST(board->configure().has_error());
  }
  BOOST_TEST(board->counters().configures == 0U);
  BOOST_TEST(board->memory_usage(0)->used_bytes.value() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device::emulator
