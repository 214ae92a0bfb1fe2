// duet_accept.cpp: the acceptance program: proves that a package runs on a board as the
// specification asks.
#include "device/calrt/combined_adapter.hpp"
#include "device/emulator/emulated_board.hpp"
#include "runtime/real_clock.hpp"
#include "runtime/real_completion_source.hpp"
#include "tools/accept_report.hpp"
#include "tools/accept_run.hpp"
#include "tools/answer_screen.hpp"
#include "tools/arguments.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace duet::tools;   // NOLINT: this is the program of that folder

constexpr const char* help = R"(usage: duet-accept run PACKAGE [options]

Runs the acceptance sequence on the emulated board and prints each device call in order: validate,
open (board lock, device reset), load, validate what was loaded, configure once, sessions and
buffers, golden of each model, both at once, output and trace verified, questions, drain, reset
configuration, release. Nothing is opened if the package has an error.

  --ask ALIAS=TEXT     asks that model when everything has passed; several at the same time
  --max-tokens N       length of an answer at most (default 400)
  --trust FILE         public key that may have signed the package; may be given more than once
  --revoked FILE       list of public keys whose packages are refused, whoever trusts them: 64 hex
                       digits a line; may be given more than once
  --allow-unsigned     accept a package whose signature cannot be verified
  --board NAME         name of the emulated board (default board0); one process at a time may own it
  --threads N          threads a chip, 1 or 2 (default 1)
  --json               print one JSON object instead of lines
  --help               this text

Exit codes: 0 accepted, 1 a finding, a violation or a failure, 2 wrong use.
)";

int wrong_use(const std::string& what) {
  std::fprintf(stderr, "duet-accept: %s; see duet-accept --help\n", what.c_str());
  return exit_wrong_use;
}

/// The device with everything below it, and the clock's thread.
class Bench {
 public:
  explicit Bench(duet::device::emulator::ThreadedBoardOptions options)
      : clock_(io_.get_executor()),
        board_(duet::device::emulator::make_emulated_board(std::move(options))),
        adapter_(std::make_unique<duet::device::CombinedAdapter>(*board_, source_, clock_)),
        thread_([this] { io_.run(); }) {}

  ~Bench() {
    adapter_.reset();
    work_.reset();
    thread_.join();
  }

  [[nodiscard]] duet::device::Device& device() { return *adapter_; }
  [[nodiscard]] const duet::device::emulator::ThreadedBoard& board() const { return *board_; }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  duet::runtime::RealClock clock_;
  duet::runtime::RealCompletionSource source_;
  std::unique_ptr<duet::device::emulator::ThreadedBoard> board_;
  std::unique_ptr<duet::device::CombinedAdapter> adapter_;
  std::thread thread_;
};

/// Null and a message on wrong use.
std::optional<AcceptOptions> read_options(const Arguments& arguments, std::string& error) {
  AcceptOptions options;
  options.package = arguments.words()[0];
  options.validate.allow_unsigned = arguments.flag("--allow-unsigned");
  options.terminal_columns = terminal_columns();
  for (const std::string& path : arguments.all("--trust")) {
    const auto key = duet::device::read_public_key(path);
    if (!key) {
      error = key.error().message;
      return std::nullopt;
    }
    options.validate.trusted_keys.push_back(*key);
  }
  for (const std::string& path : arguments.all("--revoked")) {
    const auto keys = duet::device::read_key_list(path);
    if (!keys) {
      error = keys.error().message;
      return std::nullopt;
    }
    auto& revoked = options.validate.revoked_keys;
    revoked.insert(revoked.end(), keys->begin(), keys->end());
  }
  for (const std::string& question : arguments.all("--ask")) {
    const std::size_t equals = question.find('=');
    if (equals == 0 || equals == std::string::npos) {
      error = "--ask wants ALIAS=TEXT, not '" + question + "'";
      return std::nullopt;
    }
    options.asks.emplace_back(question.substr(0, equals), question.substr(equals + 1));
  }
  const auto tokens = parse_number(arguments.last("--max-tokens", "400"), 1, 1U << 20U);
  if (!tokens) {
    error = "--max-tokens wants a number from 1 to 1048576";
    return std::nullopt;
  }
  options.answer_tokens_max = static_cast<std::uint32_t>(*tokens);
  return options;
}

int run(const Arguments& arguments) {
  std::string error;
  auto options = read_options(arguments, error);
  if (!options) return wrong_use(error);
  const auto threads = parse_number(arguments.last("--threads", "1"), 1, 2);
  if (!threads) return wrong_use("--threads wants 1 or 2");

  duet::device::emulator::ThreadedBoardOptions board_options;
  board_options.board = arguments.last("--board", board_options.board);
  board_options.threads_per_chip = static_cast<std::uint32_t>(*threads);
  std::optional<Bench> bench;
  try {
    bench.emplace(board_options);
  } catch (const std::exception& exception) {
    return wrong_use(exception.what());
  }

  AcceptReport report(arguments.flag("--json"));
  AcceptRun runner(std::move(*options), report);
  if (runner.validate()) runner.run(bench->device());
  const auto counters = bench->board().counters();
  report.note("configure calls: " + std::to_string(counters.configure_calls) +
              ", jobs: " + std::to_string(counters.jobs_submitted) + " submitted, " +
              std::to_string(counters.jobs_done) + " done, " +
              std::to_string(counters.jobs_failed) + " failed");
  report.set("configure_calls", counters.configure_calls);
  report.set("jobs_submitted", counters.jobs_submitted);
  report.set("jobs_done", counters.jobs_done);
  return report.finish();
}

}   // namespace

int main(int argc, char** argv) {
  secure_standard_streams();
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return wrong_use("a command is missing");
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      std::fputs(help, stdout);
      return exit_done;
    }
  }
  const std::string command = words.front();
  words.erase(words.begin());
  if (command != "run") return wrong_use("unknown command '" + command + "'");
  ArgumentRules rules;
  rules.flags = {"--json", "--allow-unsigned"};
  rules.options = {"--ask", "--trust", "--revoked", "--board", "--threads", "--max-tokens"};
  rules.words_min = rules.words_max = 1;
  std::string error;
  const auto arguments = Arguments::parse(words, rules, error);
  if (!arguments) return wrong_use(error);
  return run(*arguments);
}
