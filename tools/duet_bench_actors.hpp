// duet_bench_actors.hpp: what the actor runtime costs, beside what its peer CAF costs.
#pragma once

#include "tools/duet_bench_report.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::tools {

struct ActorsBench {
  std::uint32_t runs = 11;        ///< 1 to 100.
  std::uint32_t samples = 5000;   ///< of each way a run, 100 to 1000000.
  std::string only;               ///< one of actors_bench_parts(); empty: all.
  bool cpu = false;               ///< workloads by CPU time of the process instead of time.
};

/// What `only` may be.
[[nodiscard]] std::vector<std::string_view> actors_bench_parts();

/// Runs the parts. Each round runs every workload with coroutines, with handlers and with CAF, one
/// after the other, each in a new system with new threads, after a tenth of the units as warm-up.
/// Results carry `coroutine`, `handler` or `caf` and the number of threads in their names; figures
/// of ours have CAF's median as peer. `geomean_*` are over the ratios of all workloads of a column,
/// round by round. Throws std::runtime_error if a child process fails.
[[nodiscard]] std::vector<BenchResult> run_actors_bench(const ActorsBench& bench);

}   // namespace duet::tools
