// duet_bench_actors.cpp: runs the parts of duet-bench actors and puts their figures together.
#include "tools/duet_bench_actors.hpp"

#include "tools/duet_bench_actors_hand_off.hpp"
#include "tools/duet_bench_actors_load.hpp"
#include "tools/duet_bench_actors_turn.hpp"
#include "tools/duet_bench_process.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <utility>

namespace duet::tools {
namespace {

using Make = std::unique_ptr<Running> (*)(Workload, std::uint32_t);

std::unique_ptr<Running> make_caf(Workload workload, std::uint32_t threads) {
  return run_caf(workload, threads, true);
}
/// CAF without the timer that an ask of ours always has.
std::unique_ptr<Running> make_caf_untimed(Workload workload, std::uint32_t threads) {
  return run_caf(workload, threads, false);
}

struct Kind {
  const char* name;
  Make make;
  double geomean_bar;   ///< B1; 0: a peer.
};
constexpr std::array<Kind, 4> kinds = {{{"coroutine", run_coroutines, 8},
                                        {"handler", run_handlers, 12},
                                        {"caf", make_caf, 0},
                                        {"caf_without_timeout", make_caf_untimed, 0}}};
constexpr std::size_t caf_kind = 2;
constexpr std::size_t caf_untimed_kind = 3;
constexpr double workload_bar = 6;   // B1

constexpr std::array<std::uint32_t, 2> thread_counts = {1, 2};

double nanoseconds_of(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Nanoseconds a unit.
double measure(const Kind& kind, const LoadSize& load, std::uint32_t threads, bool cpu) {
  const std::uint64_t units = kind.geomean_bar > 0 ? load.units : load.units / load.slowdown;
  const std::unique_ptr<Running> running = kind.make(load.workload, threads);
  running->run(units / 10);
  const clockid_t clock = cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  const double before = nanoseconds_of(clock);
  running->run(units);
  return (nanoseconds_of(clock) - before) / static_cast<double>(units);
}

/// Of one workload on so many threads: runs of each kind; none where a kind does not apply.
using Runs = std::array<std::vector<double>, kinds.size()>;

struct Cell {
  const LoadSize* load = nullptr;
  std::uint32_t threads = 0;
  Runs runs;
};

bool applies(std::size_t kind, const LoadSize& load) {
  if (kind == caf_untimed_kind && load.workload != Workload::ask) return false;
  return kinds[kind].geomean_bar > 0 || caf_version() != nullptr;
}

std::string name_of(const LoadSize& load, const Kind& kind, std::uint32_t threads) {
  return std::string(load.name) + "_" + kind.name + "_" + std::to_string(threads);
}

void add_cell(const Cell& cell, std::vector<BenchResult>& all) {
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (cell.runs[kind].empty()) continue;
    BenchResult result;
    result.name = name_of(*cell.load, kinds[kind], cell.threads);
    result.unit = cell.load->unit;
    result.runs = cell.runs[kind];
    result.lower_is_better = true;
    if (kinds[kind].geomean_bar > 0) {
      if (cell.runs[caf_kind].empty()) {
        result.no_peer = "not built";
      } else {
        BenchResult peer;
        peer.runs = cell.runs[caf_kind];
        result.peer = peer.median();
        result.peer_runs = cell.runs[caf_kind];
        result.bar = workload_bar;
        result.bar_of_ratio = true;
      }
    }
    all.push_back(std::move(result));
  }
}

/// Of the ratios of one column in each round.
void add_geomeans(const std::vector<Cell>& cells, std::uint32_t rounds,
                  std::vector<BenchResult>& all) {
  for (const std::uint32_t threads : thread_counts) {
    for (std::size_t kind = 0; kind < caf_kind; ++kind) {
      BenchResult result;
      result.name = std::string("geomean_") + kinds[kind].name + "_" + std::to_string(threads);
      result.unit = "x";
      result.bar = kinds[kind].geomean_bar;
      for (std::uint32_t round = 0; round < rounds; ++round) {
        double logarithms = 0;
        for (const Cell& cell : cells) {
          if (cell.threads != threads) continue;
          logarithms += std::log(cell.runs[caf_kind][round] / cell.runs[kind][round]);
        }
        result.runs.push_back(std::exp(logarithms / static_cast<double>(loads.size())));
      }
      all.push_back(std::move(result));
    }
  }
}

void add_workloads(const ActorsBench& bench, std::vector<BenchResult>& all) {
  std::vector<Cell> cells;
  for (const LoadSize& load : loads) {
    if (!bench.only.empty() && bench.only != "workloads" && bench.only != load.name) continue;
    for (const std::uint32_t threads : thread_counts) cells.push_back(Cell{&load, threads, {}});
  }
  for (std::uint32_t round = 0; round < bench.runs; ++round) {
    for (Cell& cell : cells) {
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        // Every other round in the opposite order, so that none always comes after the same one.
        const std::size_t kind = round % 2 == 0 ? i : kinds.size() - 1 - i;
        if (!applies(kind, *cell.load)) continue;
        cell.runs[kind].push_back(measure(kinds[kind], *cell.load, cell.threads, bench.cpu));
      }
    }
  }
  for (const Cell& cell : cells) add_cell(cell, all);
  const bool whole = cells.size() == loads.size() * thread_counts.size();
  if (whole && caf_version() != nullptr) add_geomeans(cells, bench.runs, all);
}

/// The number that duet-bench-memory prints. It is a program of its own because it counts malloc.
double ask_memory_program(const std::string& words) {
  const std::string command = "'" + program_directory() + "/duet-bench-memory' " + words;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  double figure = 0;
  const bool read = std::fscanf(pipe, "%lf", &figure) == 1;
  const bool ended_well = ::pclose(pipe) == 0;
  if (!read || !ended_well) throw std::runtime_error(command + " failed");
  return figure;
}

struct MemoryKind {
  const char* name;
  double idle_bar;   ///< B2, bytes; 0: a peer.
};
constexpr std::array<MemoryKind, 3> memory_kinds = {
    {{"coroutine", 900}, {"handler", 320}, {"caf", 0}}};
constexpr std::uint32_t memory_runs_max = 3;   // they hardly differ, and a million actors take long

void add_memory(const ActorsBench& bench, std::vector<BenchResult>& all) {
  for (const std::uint32_t actors : {100'000U, 1'000'000U}) {
    std::array<BenchResult, memory_kinds.size()> results;
    for (std::size_t i = 0; i < memory_kinds.size(); ++i) {
      if (memory_kinds[i].idle_bar == 0 && caf_version() == nullptr) continue;
      const std::string words = std::string("idle ") + memory_kinds[i].name;
      for (std::uint32_t run = 0; run < std::min(bench.runs, memory_runs_max); ++run) {
        results[i].runs.push_back(ask_memory_program(words + " " + std::to_string(actors)));
      }
      results[i].name = std::string("idle_memory_") + std::to_string(actors / 1000) + "k_" +
                        memory_kinds[i].name + "_1";
      results[i].unit = "B/actor";
      results[i].lower_is_better = true;
      results[i].bar = memory_kinds[i].idle_bar;
    }
    const BenchResult& peer = results.back();
    for (BenchResult& result : results) {
      if (result.runs.empty()) continue;
      if (peer.runs.empty()) result.no_peer = "not built";
      if (result.bar > 0 && !peer.runs.empty()) result.peer = peer.median();
      all.push_back(result);
    }
  }
}

/// One in a million would be a leak of the claim; the counts are exact.
constexpr double no_malloc = 1e-6;

void add_allocations(std::vector<BenchResult>& all) {
  for (const char* const what : {"message", "ask", "timer"}) {
    for (const MemoryKind& kind : memory_kinds) {
      const bool peer = kind.idle_bar == 0;
      if (peer && (caf_version() == nullptr || what == std::string_view("timer"))) continue;
      BenchResult result;
      result.name = std::string("allocations_") + what + "_" + kind.name + "_1";
      result.unit = std::string("malloc/") + what;
      result.runs.push_back(
          ask_memory_program(std::string("allocations ") + kind.name + " " + what));
      result.lower_is_better = true;
      if (!peer) result.bar = no_malloc;
      all.push_back(std::move(result));
    }
  }
}

}   // namespace

std::vector<std::string_view> actors_bench_parts() {
  std::vector<std::string_view> parts{"workloads",   "completion", "memory",
                                      "allocations", "host_turn",  "loops"};
  for (const LoadSize& load : loads) parts.emplace_back(load.name);
  return parts;
}

std::vector<BenchResult> run_actors_bench(const ActorsBench& bench) {
  std::vector<BenchResult> all;
  const auto wanted = [&bench](std::string_view part) {
    return bench.only.empty() || bench.only == part;
  };
  add_workloads(bench, all);
  const auto append = [&all](std::vector<BenchResult> results) {
    for (BenchResult& result : results) all.push_back(std::move(result));
  };
  if (wanted("loops")) append(run_loops_bench(bench.runs));
  if (wanted("completion")) append(run_hand_off_bench(bench.runs, bench.samples));
  if (wanted("memory")) add_memory(bench, all);
  if (wanted("allocations")) add_allocations(all);
  if (wanted("host_turn")) append(run_host_turn_bench(bench.runs));
  return all;
}

}   // namespace duet::tools
