// batch_test.cpp: an answer does not depend on tiles, jobs, threads, cores or SIMD target.
#include "tests/device/kernels/models.hpp"
#include "tests/device/kernels/targets.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace duet::device::test {
namespace {

constexpr std::uint32_t context = 384;

/// Two threads that run the cores' programs at the same time.
class ParallelRunner final : public CoreRunner {
 public:
  void run_cores(void (*body)(void* context, std::uint32_t core), void* at) override {
    std::thread other([=] { body(at, 1); });
    body(at, 0);
    other.join();
  }
  [[nodiscard]] bool parallel() const override { return true; }
};

/// All that a run leaves: logits after the prompt and after some decodes, and the KV.
struct Trace {
  std::vector<std::uint32_t> logits;   ///< bit patterns.
  std::vector<std::uint64_t> kv;

  void take(std::span<const float> values) {
    const std::size_t at = logits.size();
    logits.resize(at + values.size());
    std::memcpy(&logits[at], values.data(), values.size_bytes());
  }
  bool operator==(const Trace&) const = default;
};

std::vector<std::uint32_t> random_tokens(std::uint32_t vocabulary, std::size_t n) {
  std::mt19937 random(9);
  std::vector<std::uint32_t> tokens(n);
  for (std::uint32_t& token : tokens) token = static_cast<std::uint32_t>(random() % vocabulary);
  return tokens;
}

/// A length that no tile divides, longer than the largest tile; sanitized, than the largest but
/// one.
#if defined(DUET_SANITIZED)
constexpr std::size_t prompt = 74;
#else
constexpr std::size_t prompt = 294;
#endif

/// The prompt in jobs of at most `job` tokens, then six decodes.
Trace trace(const TestModel& model, Arithmetic arithmetic, std::uint32_t tile, std::size_t job,
            std::uint32_t cores, CoreRunner& runner) {
  const std::vector<std::uint32_t> tokens = random_tokens(model.config.vocabulary, prompt + 6);
  Sequence sequence(model, arithmetic, context, tile, cores);
  sequence.use(runner);
  Trace out;
  std::span<const float> logits;
  for (std::size_t at = 0; at < prompt; at += job)
    logits = sequence.prefill({&tokens[at], std::min(job, prompt - at)});
  out.take(logits);
  for (std::size_t i = prompt; i < tokens.size(); ++i) out.take(sequence.decode(tokens[i]));
  out.kv.assign(sequence.kv().begin(), sequence.kv().end());
  return out;
}

void check_invariance(const TestModel& model, Arithmetic arithmetic) {
  SerialRunner serial;
  ParallelRunner parallel;
  Trace first;
  on_every_target([&](const std::string&) {
    const Trace alone = trace(model, arithmetic, 1, prompt, 2, serial);
    if (first.logits.empty()) first = alone;
    BOOST_TEST((alone == first), "the targets differ");
    for (const std::uint32_t tile : {1U, 7U, 64U, 256U}) {
      for (CoreRunner* runner : std::initializer_list<CoreRunner*>{&serial, &parallel}) {
        const bool threads = runner->parallel();
        BOOST_TEST((trace(model, arithmetic, tile, prompt, 2, *runner) == alone),
                   "tile " << tile << (threads ? ", two threads" : ", one thread"));
      }
    }
    BOOST_TEST((trace(model, arithmetic, 64, 50, 2, serial) == alone), "a prompt in several jobs");
    BOOST_TEST((trace(model, arithmetic, 64, prompt, 1, serial) == alone), "one core");
    BOOST_TEST((trace(model, arithmetic, 7, prompt, 1, parallel) == alone),
               "one core, two threads");
  });
}

}   // namespace

// every answer equals the one that its request gets alone.
BOOST_AUTO_TEST_SUITE(kernels_batch_invariance)

BOOST_AUTO_TEST_CASE(abacus_gives_the_same_bits_for_tiles_threads_and_targets) {
  check_invariance(*demo_model("abacus-q8_0"), Arithmetic::w8a8);
}

BOOST_AUTO_TEST_CASE(fable_gives_the_same_bits_for_tiles_threads_and_targets) {
  check_invariance(*demo_model("fable-q8_0"), Arithmetic::w8a8);
}

BOOST_AUTO_TEST_CASE(an_odd_shaped_model_gives_the_same_bits_for_tiles_threads_and_targets) {
  check_invariance(*random_model(odd_config(), DType::q8_0, 1), Arithmetic::w8a8);
}

BOOST_AUTO_TEST_CASE(the_f32_path_gives_the_same_bits_for_tiles_threads_and_targets) {
  check_invariance(*random_model(odd_config(), DType::bf16, 2), Arithmetic::f32);
}

BOOST_AUTO_TEST_CASE(prefill_and_decode_of_the_same_tokens_give_the_same_bits) {
  on_every_target([](const std::string&) {
    const auto model = random_model(odd_config(), DType::q8_0, 3);
    const std::vector<std::uint32_t> tokens = random_tokens(model->config.vocabulary, 80);
    Sequence by_prefill(*model, Arithmetic::w8a8, context);
    Sequence by_decode(*model, Arithmetic::w8a8, context);
    Trace a, b;
    a.take(by_prefill.prefill(tokens));
    std::span<const float> last;
    for (const std::uint32_t token : tokens) last = by_decode.decode(token);
    b.take(last);
    a.kv.assign(by_prefill.kv().begin(), by_prefill.kv().end());
    b.kv.assign(by_decode.kv().begin(), by_decode.kv().end());
    BOOST_TEST((a == b));
  });
}

BOOST_AUTO_TEST_CASE(a_run_touches_no_position_past_its_tokens_and_leaves_nothing_behind) {
  const auto model = random_model(odd_config(), DType::q8_0, 4);
  const std::vector<std::uint32_t> tokens = random_tokens(model->config.vocabulary, 40);
  const auto graph = make_executable(*model, GraphKind::prefill, Arithmetic::w8a8, context);
  const KvLayout layout = kv_layout(*model, context);
  const auto space = graph->make_workspace(64);
  SerialRunner runner;
  std::vector<float> logits(graph->vocabulary());
  std::vector<float> again(graph->vocabulary());
  const auto fresh = [&] {
    return std::vector<std::uint64_t>(layout.bytes(Arithmetic::w8a8) / 8, 0xffffffffffffffffU);
  };
  std::vector<std::uint64_t> kv = fresh();
  graph->run(tokens, 0, std::as_writable_bytes(std::span(kv)), logits, *space, runner);
  const std::size_t position = std::size_t{layout.kv_heads} * layout.head_dim * 2 / 8;
  for (std::size_t plane = 0; plane < 2 * layout.layers; ++plane)
    for (std::size_t i = tokens.size() * position; i < context * position; ++i)
      BOOST_REQUIRE(kv[plane * context * position + i] == 0xffffffffffffffffU);

  // Another prompt in between must not show in the next answer.
  std::vector<std::uint64_t> other = fresh();
  graph->run(std::span(tokens).last(30), 0, std::as_writable_bytes(std::span(other)), again, *space,
             runner);
  BOOST_TEST(again != logits);
  std::vector<std::uint64_t> second = fresh();
  graph->run(tokens, 0, std::as_writable_bytes(std::span(second)), again, *space, runner);
  BOOST_TEST(again == logits);
  BOOST_TEST(second == kv);
}

BOOST_AUTO_TEST_CASE(two_jobs_of_one_graph_may_run_at_the_same_time) {
  const auto model = random_model(odd_config(), DType::q8_0, 5);
  const auto graph = make_executable(*model, GraphKind::prefill, Arithmetic::w8a8, context);
  const std::vector<std::uint32_t> tokens = random_tokens(model->config.vocabulary, 120);
  std::vector<std::vector<float>> logits(2, std::vector<float>(graph->vocabulary()));
  const auto work = [&](std::size_t number) {
    std::vector<std::uint64_t> kv(kv_layout(*model, context).bytes(Arithmetic::w8a8) / 8);
    const auto space = graph->make_workspace(number == 0 ? 7 : 64);
    SerialRunner runner;
    graph->run(tokens, 0, std::as_writable_bytes(std::span(kv)), logits[number], *space, runner);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  BOOST_TEST(logits[0] == logits[1]);
}

BOOST_AUTO_TEST_CASE(a_workspace_is_as_large_as_its_formula_says) {
  const auto model = random_model(odd_config(), DType::q8_0, 6);
  const auto graph = make_executable(*model, GraphKind::prefill, Arithmetic::w8a8, context);
  const auto up = [](std::uint64_t bytes) { return (bytes + 63) / 64 * 64; };
  const std::uint64_t tile = 64;
  // Residual 160, query and mixed 160, key and value 32, gate and up 352, logits 517 for one token.
  std::uint64_t expected =
      3 * tile * up(160 * 4) + 2 * tile * up(32 * 4) + 2 * tile * up(352 * 4) + up(517 * 4);
  for (const std::uint64_t width : {160U, 160U, 352U})
    expected += 2 * (tile * up(width) + tile * ((width / 32 + 7) / 8 * 32));
  // 352 columns are two chunks of 256 bytes a token, two packed rows and their scales.
  const std::uint64_t packed = (tile + 2) * 2 * 256 + 2 * 2 * 32;
  const std::uint64_t attention = (2 * 64 * 32 + 2 * tile * 5) * 4;
  expected += 2 * up(std::max({packed, std::uint64_t{16 * 352}, attention}));
  BOOST_TEST(graph->make_workspace(64)->bytes() == expected);
  BOOST_TEST(graph->make_workspace(0)->bytes() == graph->make_workspace(1)->bytes());
  BOOST_TEST(graph->make_workspace(9999)->bytes() == graph->make_workspace(256)->bytes());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
