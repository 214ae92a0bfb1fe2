// duet_sim.cpp: the program duet-sim: runs a workload in simulation, from one seed or from many.
#include "runtime/simulation/trace_hash.hpp"
#include "tools/arguments.hpp"
#include "tools/duet_sim_seeds.hpp"
#include "tools/duet_sim_workload.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace duet::tools;   // NOLINT: this is the program of that folder

constexpr std::uint64_t seeds_max = 1'000'000'000;
constexpr std::uint64_t twice_every = 16;   // of so many seeds one is run twice, to compare hashes
constexpr std::size_t failures_shown_max = 5;

constexpr const char* help_begin =
    R"(usage: duet-sim [--workload NAME] [--seed N | --seeds N] [options]
       duet-sim --replay FILE [--json]

Runs actors in simulation: one thread, virtual time, and every choice drawn from the seed: who of
the ready runs next, what goes wrong and how often. First things go wrong (safety), then nothing
does any more and everything must come to its end (liveness). The same seed does the same again.

  --workload NAME   what to run (default bank):
)";
constexpr const char* help_end = R"(  --seed N          one run, of that seed; prints what it did
  --seeds N         the runs of the seeds 1..N (default 100); one of 16 is run twice, and the
                    hashes of all that happened must be equal
  --replay FILE     runs the seeds of a file, "WORKLOAD SEED # reason" a line
  --plant BUG       plants a bug, to see that it is found: lost_wakeup, double_delivery or
                    stale_generation (workload bank)
  --package DIR     of workload duet; its models are model-a and model-b (default: the demo package
                    of the build)
  --hung-jobs       with workload duet: jobs also never end, and calls never return
  --verbose         with --seed and workload duet: tells what happens on stderr
  --json            print one JSON object: seeds, simulated_hours, violations, hash (of one seed:
                    its run's; of more: of all their hashes)
  --help            this text

Exit codes: 0 done, 1 a violation, 2 wrong use.
)";

int wrong_use(const std::string& what) {
  std::fprintf(stderr, "duet-sim: %s; see duet-sim --help\n", what.c_str());
  return exit_wrong_use;
}

void print_help() {
  std::fputs(help_begin, stdout);
  for (const SimWorkload& workload : sim_workloads()) {
    std::printf("    %-6s          %s\n", workload.name, workload.what);
  }
  std::fputs(help_end, stdout);
}

/// What a failed assert in a run shall still say; rendered before the run.
std::array<char, 256> last_words{};

extern "C" void say_last_words(int signal) {
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, last_words.data(), std::strlen(last_words.data()));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string hex(std::uint64_t value) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

/// Runs seeds and keeps count.
class Campaign {
 public:
  Campaign(Plant plant, std::string package) : plant_(plant), package_(std::move(package)) {}

  void set_verbose() { verbose_ = true; }
  void set_hung_jobs() { hung_jobs_ = true; }

  SimOutcome run(const SimWorkload& workload, std::uint64_t seed, bool twice) {
    SimOrder order;
    order.seed = seed;
    order.plant = plant_;
    order.package = package_;
    order.hung_jobs = hung_jobs_;
    if (verbose_)
      order.tell = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    const std::string note = describe_failure(workload, order, SimOutcome{}, DUET_COMMIT) + "\n";
    std::snprintf(last_words.data(), last_words.size(), "%s", note.c_str());
    SimOutcome outcome = workload.run(order);
    if (twice && workload.run(order).hash != outcome.hash) {
      outcome.violations.emplace_back("determinism: the same seed gave another hash");
    }
    ++seeds_;
    simulated_ += std::chrono::duration<double, std::ratio<3600>>(outcome.simulated).count();
    hash_.add(outcome.hash);
    last_hash_ = outcome.hash;
    activations_ += outcome.activations;
    if (!outcome.violations.empty() && ++violations_ <= failures_shown_max) {
      std::fprintf(stderr, "%s\n", describe_failure(workload, order, outcome, DUET_COMMIT).c_str());
    }
    return outcome;
  }

  void report_progress(const SimWorkload& workload, std::uint64_t of) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told_ < std::chrono::seconds(5)) return;
    told_ = now;
    std::fprintf(stderr, "%s: %llu of %llu seeds, %llu with violations\n", workload.name,
                 static_cast<unsigned long long>(seeds_), static_cast<unsigned long long>(of),
                 static_cast<unsigned long long>(violations_));
  }

  int report(bool json) const {
    const std::string hash = hex(seeds_ == 1 ? last_hash_ : hash_.value());
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (json) {
      std::printf(R"({"seeds":%llu,"simulated_hours":%.6f,"violations":%llu,"hash":"%s"})"
                  "\n",
                  static_cast<unsigned long long>(seeds_), simulated_,
                  static_cast<unsigned long long>(violations_), hash.c_str());
    } else {
      std::printf("%llu seeds, %.3f simulated hours, %llu with violations, hash %s\n",
                  static_cast<unsigned long long>(seeds_), simulated_,
                  static_cast<unsigned long long>(violations_), hash.c_str());
      std::printf("%.2f s: %.0f seeds/s, %.2f million activations/s\n", seconds,
                  static_cast<double>(seeds_) / seconds,
                  static_cast<double>(activations_) / seconds / 1e6);
    }
    return violations_ == 0 ? exit_done : exit_finding;
  }

 private:
  const Plant plant_;
  const std::string package_;
  bool verbose_ = false;
  bool hung_jobs_ = false;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point told_ = began_;
  std::uint64_t seeds_ = 0;
  std::uint64_t violations_ = 0;
  std::uint64_t activations_ = 0;
  double simulated_ = 0;
  duet::runtime::simulation::TraceHash hash_;   // of all runs' hashes
  std::uint64_t last_hash_ = 0;
};

void print_run(const SimWorkload& workload, std::uint64_t seed, const SimOutcome& outcome) {
  const double seconds = std::chrono::duration<double>(outcome.simulated).count();
  std::printf("%s, seed %llu: %s\n  %.3f s simulated, %llu activations, %llu handled\n",
              workload.name, static_cast<unsigned long long>(seed),
              outcome.violations.empty() ? "no violation" : "VIOLATED", seconds,
              static_cast<unsigned long long>(outcome.activations),
              static_cast<unsigned long long>(outcome.handled));
  std::printf("  faults: %s\n  %s\n", outcome.faults.c_str(), outcome.figures.c_str());
}

/// Beside the programs of the build.
std::string default_package() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (program.parent_path().parent_path() / "demo-package").string();
}

int replay(const std::string& path, const std::string& package, bool json) {
  std::ifstream in(path);
  if (!in) return wrong_use("cannot read " + path);
  std::string error;
  const std::vector<SimSeed> seeds = read_sim_seeds(in, error);
  if (!error.empty()) return wrong_use(path + ":" + error);
  Campaign campaign(Plant::none, package);
  for (const SimSeed& seed : seeds) {
    campaign.run(*seed.workload, seed.seed, true);
    campaign.report_progress(*seed.workload, seeds.size());
  }
  return campaign.report(json);
}

int run(const Arguments& arguments) {
  const bool json = arguments.flag("--json");
  const bool one = arguments.flag("--seed");
  const std::string package = arguments.last("--package", default_package());
  if (arguments.flag("--replay")) {
    if (one || arguments.flag("--seeds") || arguments.flag("--workload") ||
        arguments.flag("--plant")) {
      return wrong_use("--replay takes workloads and seeds from its file");
    }
    return replay(arguments.last("--replay", ""), package, json);
  }
  if (one && arguments.flag("--seeds")) return wrong_use("either --seed or --seeds");
  const std::string name = arguments.last("--workload", "bank");
  const SimWorkload* const workload = find_sim_workload(name);
  if (workload == nullptr) return wrong_use("there is no workload '" + name + "'");
  const auto plant = parse_plant(arguments.last("--plant", "none"));
  if (!plant) return wrong_use("there is no such bug to plant");
  if (*plant != Plant::none && name != "bank") return wrong_use("bugs are planted in the bank");
  const auto seed = parse_number(arguments.last("--seed", "1"), 0, UINT64_MAX);
  const auto count = parse_number(arguments.last("--seeds", "100"), 1, seeds_max);
  if (!seed || !count) return wrong_use("a seed is a whole number; --seeds is 1..1000000000");

  Campaign campaign(*plant, package);
  if (arguments.flag("--hung-jobs")) campaign.set_hung_jobs();
  if (one) {
    if (arguments.flag("--verbose")) campaign.set_verbose();
    const SimOutcome outcome = campaign.run(*workload, *seed, false);
    if (!json) print_run(*workload, *seed, outcome);
    return campaign.report(json);
  }
  for (std::uint64_t i = 1; i <= *count; ++i) {
    campaign.run(*workload, i, i % twice_every == 0);
    campaign.report_progress(*workload, *count);
  }
  return campaign.report(json);
}

}   // namespace

int main(int argc, char** argv) {
  secure_standard_streams();
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, &say_last_words);
  ArgumentRules rules;
  rules.flags = {"--json", "--help", "--verbose", "--hung-jobs"};
  rules.options = {"--workload", "--seed", "--seeds", "--replay", "--plant", "--package"};
  std::string error;
  const auto arguments = Arguments::parse({argv + 1, argv + argc}, rules, error);
  if (!arguments) return wrong_use(error);
  if (arguments->flag("--help")) {
    print_help();
    return exit_done;
  }
  try {
    const int code = run(*arguments);
    return std::fflush(stdout) == 0 ? code : exit_finding;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "duet-sim: %s\n%s", failure.what(), last_words.data());
    return exit_finding;
  }
}
