// sim_test.cpp: the workloads of duet-sim hold, planted bugs are found, and the program says so.
#include "tests/tools/process.hpp"
#include "tools/duet_sim_seeds.hpp"
#include "tools/duet_sim_workload.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace duet::tools;   // NOLINT(google-build-using-namespace)
using duet::test::Finished;

#if defined(DUET_SANITIZED)
constexpr std::uint64_t bank_seeds = 40;
constexpr std::uint64_t duet_seeds = 5;
#else
constexpr std::uint64_t bank_seeds = 200;
constexpr std::uint64_t duet_seeds = 60;
#endif

SimOutcome run(const char* name, std::uint64_t seed, Plant plant = Plant::none) {
  SimOrder order;
  order.seed = seed;
  order.plant = plant;
  order.day = std::chrono::minutes(2);
  order.package = DUET_BINARY_DIR "/demo-package";
  return find_sim_workload(name)->run(order);
}

Finished run_sim(const std::vector<std::string>& arguments) {
  return duet::test::run_program("duet-sim", arguments);
}

/// A violation of `kind` within 200 seeds, by the same seed once more, and not without the bug.
void find_planted(Plant plant, const std::string& kind) {
  constexpr std::uint64_t seeds_max = 200;
  const auto has_kind = [&kind](const SimOutcome& outcome) {
    for (const std::string& violation : outcome.violations) {
      if (violation.starts_with(kind + ": ")) return true;
    }
    return false;
  };
  std::uint64_t seed = 1;
  while (seed <= seeds_max && !has_kind(run("bank", seed, plant))) ++seed;
  BOOST_TEST_REQUIRE(seed <= seeds_max, to_string(plant));
  const SimOutcome first = run("bank", seed, plant);
  const SimOutcome again = run("bank", seed, plant);
  BOOST_TEST(has_kind(again));
  BOOST_TEST(first.hash == again.hash);
  BOOST_TEST(first.violations == again.violations, boost::test_tools::per_element());
  BOOST_TEST(run("bank", seed).violations.empty());
}

/// A file that ends with the test.
class SeedFile {
 public:
  explicit SeedFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("duet-sim-seeds-" + std::to_string(::getpid()))) {
    std::ofstream(path_) << text;
  }
  ~SeedFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(sim)

// R-13.1: tokens are neither made nor lost, and every transfer is settled once things go well.
BOOST_AUTO_TEST_CASE(the_bank_keeps_every_token_whatever_goes_wrong) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= bank_seeds; ++seed) {
    const SimOutcome outcome = run("bank", seed);
    SimOrder order;
    order.seed = seed;
    BOOST_TEST(outcome.violations.empty(),
               describe_failure(*find_sim_workload("bank"), order, outcome, "this"));
    hashes.insert(outcome.hash);
  }
  BOOST_TEST(hashes.size() == bank_seeds);
}

BOOST_AUTO_TEST_CASE(equal_seeds_give_equal_hashes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BOOST_TEST(run("bank", seed).hash == run("bank", seed).hash);
  }
  BOOST_TEST(run("day", 1).hash == run("day", 1).hash);
  BOOST_TEST(run("day", 1).hash != run("day", 2).hash);
}

BOOST_AUTO_TEST_CASE(a_lost_wakeup_is_found_as_a_deadlock) {
  find_planted(Plant::lost_wakeup, "deadlock");
}

BOOST_AUTO_TEST_CASE(a_double_delivery_is_found_by_counting_tokens) {
  find_planted(Plant::double_delivery, "conservation");
}

// R-13.1
BOOST_AUTO_TEST_CASE(a_stale_generation_is_found_by_counting_tokens) {
  find_planted(Plant::stale_generation, "conservation");
}

BOOST_AUTO_TEST_CASE(the_town_loses_no_message) {
  const SimOutcome outcome = run("day", 3);
  BOOST_TEST(outcome.violations.empty());
  BOOST_TEST(outcome.handled > 10'000U);
}

// R-9.1, R-13.1: the application, the adapter and the board's core in virtual time.
BOOST_AUTO_TEST_CASE(every_request_ends_once_with_the_right_answer_or_an_error) {
  std::set<std::uint64_t> hashes;
  std::uint64_t with_faults = 0;
  for (std::uint64_t seed = 1; seed <= duet_seeds; ++seed) {
    const SimOutcome outcome = run("duet", seed);
    SimOrder order;
    order.seed = seed;
    BOOST_TEST(outcome.violations.empty(),
               describe_failure(*find_sim_workload("duet"), order, outcome, "this"));
    hashes.insert(outcome.hash);
    if (outcome.figures.find(" 0 faults of the board") == std::string::npos) ++with_faults;
  }
  BOOST_TEST(hashes.size() == duet_seeds);
  BOOST_TEST(with_faults > 0U);
  BOOST_TEST(run("duet", 1).hash == run("duet", 1).hash);
}

BOOST_AUTO_TEST_CASE(a_package_that_is_not_there_is_an_error) {
  const Finished finished =
      run_sim({"--workload", "duet", "--package", "/nonexistent", "--seed", "1"});
  BOOST_TEST(finished.code == 1);
  BOOST_TEST(finished.err.find("/nonexistent") != std::string::npos, finished.err);
}

BOOST_AUTO_TEST_CASE(seeds_that_found_a_bug_are_replayed) {
  std::ifstream in(std::string(DUET_SOURCE_DIR) + "/tests/tools/sim_seeds.txt");
  std::string error;
  const std::vector<SimSeed> seeds = read_sim_seeds(in, error);
  BOOST_TEST(error.empty(), error);
  BOOST_TEST(!seeds.empty());
  for (const SimSeed& seed : seeds) {
    const SimOutcome outcome = run(seed.workload->name, seed.seed);
    SimOrder order;
    order.seed = seed.seed;
    BOOST_TEST(outcome.violations.empty(),
               describe_failure(*seed.workload, order, outcome, "this"));
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_line_of_the_seed_file_is_named) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"bank 1 # why\nbonk 2 # why\n", "2: there is no workload 'bonk'"},
           {"\n# only a comment\nbank x # why\n", "3: 'x' is no seed"},
           {"bank -1 # why\n", "1: '-1' is no seed"},
           {"bank 99999999999999999999 # why\n", "1: '99999999999999999999' is no seed"},
           {"bank\n", "1: '' is no seed"},
           {"bank 1\n", "1: a line is WORKLOAD SEED # reason"},
           {"bank 1 2 # why\n", "1: a line is WORKLOAD SEED # reason"}}) {
    std::istringstream in(text);
    std::string error;
    BOOST_TEST(read_sim_seeds(in, error).empty());
    BOOST_TEST(error == expected);
  }
}

// Seeds that found: a recovery met a worker that still waited for a job of the former session
// (assert); a second choice that waited for longer than the queue's time-out made the worker wake
// itself for ever.
BOOST_AUTO_TEST_CASE(jobs_that_never_end_neither_stop_the_process_nor_make_it_spin) {
  for (const std::uint64_t seed : {53U, 80U, 191U, 19U, 22U, 30U}) {
    SimOrder order;
    order.seed = seed;
    order.package = DUET_BINARY_DIR "/demo-package";
    order.hung_jobs = true;
    const SimOutcome outcome = find_sim_workload("duet")->run(order);
    BOOST_TEST(outcome.activations < 100000U, seed);
  }
}

BOOST_AUTO_TEST_CASE(a_failure_prints_seed_and_commit_and_the_command_that_repeats_it) {
  const Finished many =
      run_sim({"--workload", "bank", "--plant", "stale_generation", "--seeds", "40", "--json"});
  BOOST_TEST(many.code == 1);
  BOOST_TEST(many.err.find("sim failure: seed=") != std::string::npos, many.err);
  BOOST_TEST(many.err.find(" commit=") != std::string::npos);
  const std::string repeat = "repeat: duet-sim ";
  const std::size_t begin = many.err.find(repeat);
  BOOST_TEST_REQUIRE(begin != std::string::npos);
  const std::string line = many.err.substr(begin + repeat.size());
  std::istringstream command(line.substr(0, line.find('\n')));
  std::vector<std::string> words;
  for (std::string word; command >> word;) words.push_back(word);
  const Finished one = run_sim(words);
  BOOST_TEST(one.code == 1, one.err);
  BOOST_TEST(one.err.find("conservation: ") != std::string::npos, one.err);
}

BOOST_AUTO_TEST_CASE(the_program_tells_the_same_of_the_same_seed) {
  const Finished first = run_sim({"--workload", "bank", "--seed", "5", "--json"});
  const Finished again = run_sim({"--seed=5", "--json"});
  BOOST_TEST(first.code == 0);
  BOOST_TEST(first.out == again.out);
  BOOST_TEST(first.out.starts_with(R"({"seeds":1,"simulated_hours":0.0)"), first.out);
  BOOST_TEST(first.out.find(R"("violations":0,"hash":")") != std::string::npos, first.out);
  BOOST_TEST(first.out != run_sim({"--seed", "6", "--json"}).out);
}

BOOST_AUTO_TEST_CASE(a_file_of_seeds_is_replayed) {
  const SeedFile good("bank 1 # one\nbank 2 # two\n");
  const Finished finished = run_sim({"--replay", good.path(), "--json"});
  BOOST_TEST(finished.code == 0, finished.err);
  BOOST_TEST(finished.out.starts_with(R"({"seeds":2,)"), finished.out);
}

BOOST_AUTO_TEST_CASE(wrong_use_is_told_from_a_violation) {
  const SeedFile bad("bank one # why\n");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--workload", "bonk"},
                                                {"--seed", "x"},
                                                {"--seeds", "0"},
                                                {"--seeds", "5", "--seed", "5"},
                                                {"--plant", "flowers"},
                                                {"--workload", "day", "--plant", "lost_wakeup"},
                                                {"--replay", "/nonexistent"},
                                                {"--replay", bad.path()},
                                                {"--replay", bad.path(), "--seed", "1"},
                                                {"--frobnicate"},
                                                {"bank"}}) {
    const Finished finished = run_sim(words);
    BOOST_TEST(finished.code == 2, finished.err);
    BOOST_TEST(finished.err.find("duet-sim: ") != std::string::npos);
    BOOST_TEST(finished.out.empty());
  }
  const Finished help = run_sim({"--help"});
  BOOST_TEST(help.code == 0);
  BOOST_TEST(help.out.find("Exit codes: 0 done, 1 a violation, 2 wrong use.") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
