// duet_bench.cpp: the program duet-bench: measures, prints medians and spread, and compares.
#include "tools/duet_bench_actors.hpp"
#include "tools/duet_bench_decode.hpp"
#include "tools/duet_bench_report.hpp"
#include "tools/duet_bench_serve.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace options = boost::program_options;

constexpr int exit_done = 0;
constexpr int exit_finding = 1;
constexpr int exit_wrong_use = 2;

/// The demo models' Q8_0 files in the working directory's tree, else in the source tree.
std::vector<std::string> demo_models() {
  for (const char* const root : {".", DUET_SOURCE_DIR}) {
    const std::filesystem::path folder = std::filesystem::path(root) / "tools" / "demo_models";
    std::error_code ignored;
    if (std::filesystem::exists(folder / "abacus-q8_0.gguf", ignored))
      return {(folder / "abacus-q8_0.gguf").string(), (folder / "fable-q8_0.gguf").string()};
  }
  return {};
}

options::options_description decode_options() {
  options::options_description all("duet-bench decode");
  all.add_options()("help", "print this text");
  all.add_options()("json", "print one JSON object");
  all.add_options()("threads", options::value<unsigned>()->default_value(1),
                    "threads a chip, 1 or 2");
  all.add_options()("rounds", options::value<unsigned>()->default_value(5),
                    "runs of each figure, 1..100");
  all.add_options()("model", options::value<std::vector<std::string>>()->composing(),
                    "a Q8_0 GGUF file to measure as well; may be repeated; the default is both "
                    "demo models");
  return all;
}

options::options_description actors_options() {
  options::options_description all("duet-bench actors");
  all.add_options()("help", "print this text");
  all.add_options()("json", "print one JSON object");
  all.add_options()("runs", options::value<unsigned>()->default_value(11),
                    "runs of each figure, 1..100");
  all.add_options()("samples", options::value<unsigned>()->default_value(5000),
                    "hand-offs of each way a run, 100..1000000");
  std::string parts;
  for (const std::string_view part : duet::tools::actors_bench_parts()) {
    parts += (parts.empty() ? "" : ", ") + std::string(part);
  }
  all.add_options()("only", options::value<std::string>()->default_value(""),
                    ("one of: " + parts).c_str());
  all.add_options()("cpu", "workloads by CPU time of all threads, for a machine that is busy");
  return all;
}

options::options_description serve_options() {
  options::options_description all("duet-bench serve");
  all.add_options()("help", "print this text");
  all.add_options()("json", "print one JSON object");
  all.add_options()("runs", options::value<unsigned>()->default_value(5),
                    "runs of each figure, 1..100");
  all.add_options()("streams", options::value<unsigned>()->default_value(64),
                    "streams at a time, 2..256");
  all.add_options()("tokens", options::value<unsigned>()->default_value(1000),
                    "of each answer, 16..4000");
  all.add_options()("threads", options::value<unsigned>()->default_value(1),
                    "threads of the server, 1..64");
  all.add_options()("pin",
                    "server and raw peer on the last processor, the client on the first: less "
                    "spread, but all threads of the server share one");
  all.add_options()("server", options::value<std::string>()->default_value(""),
                    "duet-server; the default is the one beside this program");
  all.add_options()("package", options::value<std::string>()->default_value(""),
                    "a package of model-a and model-b; the default is the demo models, packed for "
                    "as many sequences");
  return all;
}

const char* const usage =
    "usage: duet-bench decode [--json] [--threads 1|2] [--rounds N] [--model FILE]...\n"
    "       duet-bench actors [--json] [--runs N] [--samples N] [--only PART] [--cpu]\n"
    "       duet-bench serve  [--json] [--runs N] [--streams N] [--tokens N] [--threads N]\n"
    "                         [--pin] [--server FILE] [--package DIR]\n"
    "\n"
    "decode   tokens a second of decode and prefill: a generated Q8_0 model of 0.5 billion\n"
    "         weights, compared with the memory's read bandwidth, and the demo models\n"
    "actors   messages, asks and new actors with coroutines and with handlers, on one thread and\n"
    "         two, compared with CAF's; memory and malloc; from the end of a blocking call to the\n"
    "         actor that waits for it, compared with a bare asio::post; the host's own turn\n"
    "serve    CPU time a token and time to the first token of duet-server on a null board,\n"
    "         compared with the same bytes written raw in as many writes\n"
    "\n"
    "exit codes: 0 done, 1 a model cannot be used or a process failed, 2 wrong use\n";

int wrong_use(const std::string& text) {
  std::cerr << "duet-bench: " << text << "\n\n" << usage;
  return exit_wrong_use;
}

/// Thrown for a number out of its range.
struct WrongUse {
  std::string text;
};

unsigned number(const options::variables_map& given, const std::string& name, unsigned min,
                unsigned max) {
  const unsigned value = given[name].as<unsigned>();
  if (value >= min && value <= max) return value;
  throw WrongUse{"--" + name + " is " + std::to_string(min) + ".." + std::to_string(max)};
}

using Results = std::vector<duet::tools::BenchResult>;

Results decode(const options::variables_map& given) {
  duet::tools::DecodeBench bench;
  bench.threads = number(given, "threads", 1, 2);
  bench.rounds = number(given, "rounds", 1, 100);
  bench.models =
      given.contains("model") ? given["model"].as<std::vector<std::string>>() : demo_models();
  return duet::tools::run_decode_bench(bench);
}

Results actors(const options::variables_map& given) {
  duet::tools::ActorsBench bench;
  bench.runs = number(given, "runs", 1, 100);
  bench.samples = number(given, "samples", 100, 1'000'000);
  bench.only = given["only"].as<std::string>();
  bench.cpu = given.contains("cpu");
  const auto parts = duet::tools::actors_bench_parts();
  if (!bench.only.empty() && std::find(parts.begin(), parts.end(), bench.only) == parts.end()) {
    throw WrongUse{"--only: there is no part '" + bench.only + "'"};
  }
  return duet::tools::run_actors_bench(bench);
}

Results serve(const options::variables_map& given) {
  duet::tools::ServeBench bench;
  bench.runs = number(given, "runs", 1, 100);
  bench.streams = number(given, "streams", 2, 256);
  bench.tokens = number(given, "tokens", 16, 4000);
  bench.threads = number(given, "threads", 1, 64);
  bench.pin = given.contains("pin");
  bench.server = given["server"].as<std::string>();
  bench.package = given["package"].as<std::string>();
  return duet::tools::run_serve_bench(bench);
}

/// A benchmark's options and what it does with them.
int run(int argc, char** argv, const options::options_description& known,
        Results (*measure)(const options::variables_map&)) {
  duet::tools::BenchReport report;
  for (int i = 0; i < argc; ++i) report.command += (i > 0 ? " " : "") + std::string(argv[i]);
  options::variables_map given;
  try {
    options::store(options::command_line_parser(argc - 1, argv + 1)
                       .options(known)
                       .positional(options::positional_options_description())
                       .run(),
                   given);
    options::notify(given);
    if (given.contains("help")) {
      std::cout << usage << '\n' << known;
      return exit_done;
    }
    report.results = measure(given);
  } catch (const options::error& error) {
    return wrong_use(error.what());
  } catch (const WrongUse& wrong) {
    return wrong_use(wrong.text);
  } catch (const std::exception& error) {
    std::cerr << "duet-bench: " << error.what() << '\n';
    return exit_finding;
  }
  std::cout << (given.contains("json") ? report.json() + "\n" : report.text());
  return exit_done;
}

}   // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "help") {
    std::cout << usage;
    return exit_done;
  }
  if (command == "decode") return run(argc, argv, decode_options(), decode);
  if (command == "actors") return run(argc, argv, actors_options(), actors);
  if (command == "serve") return run(argc, argv, serve_options(), serve);
  return wrong_use(command.empty() ? "which benchmark?" : "unknown benchmark '" + command + "'");
}
