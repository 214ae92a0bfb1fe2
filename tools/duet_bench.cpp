// duet_bench.cpp: the program duet-bench: measures, prints medians and spread, and compares.
#include "tools/duet_bench_decode.hpp"
#include "tools/duet_bench_report.hpp"

#include <boost/program_options.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
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

const char* const usage =
    "usage: duet-bench decode [--json] [--threads 1|2] [--rounds N] [--model FILE]...\n"
    "\n"
    "decode   tokens a second of decode and prefill: a generated Q8_0 model of 0.5 billion\n"
    "         weights, compared with the memory's read bandwidth, and the demo models\n"
    "\n"
    "exit codes: 0 done, 1 a model cannot be used, 2 wrong use\n";

int wrong_use(const std::string& text) {
  std::cerr << "duet-bench: " << text << "\n\n" << usage;
  return exit_wrong_use;
}

int run_decode(int argc, char** argv) {
  const options::options_description known = decode_options();
  options::variables_map given;
  try {
    options::store(options::command_line_parser(argc - 1, argv + 1)
                       .options(known)
                       .positional(options::positional_options_description())
                       .run(),
                   given);
    options::notify(given);
  } catch (const options::error& error) {
    return wrong_use(error.what());
  }
  if (given.contains("help")) {
    std::cout << usage << '\n' << known;
    return exit_done;
  }
  duet::tools::DecodeBench bench;
  bench.threads = given["threads"].as<unsigned>();
  bench.rounds = given["rounds"].as<unsigned>();
  if (bench.threads != 1 && bench.threads != 2) return wrong_use("--threads is 1 or 2");
  if (bench.rounds < 1 || bench.rounds > 100) return wrong_use("--rounds is 1..100");
  bench.models =
      given.contains("model") ? given["model"].as<std::vector<std::string>>() : demo_models();
  duet::tools::BenchReport report;
  for (int i = 0; i < argc; ++i) report.command += (i > 0 ? " " : "") + std::string(argv[i]);
  try {
    report.results = duet::tools::run_decode_bench(bench);
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
  if (command == "decode") return run_decode(argc, argv);
  return wrong_use(command.empty() ? "which benchmark?" : "unknown benchmark '" + command + "'");
}
