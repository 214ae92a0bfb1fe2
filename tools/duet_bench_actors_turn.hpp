// duet_bench_actors_turn.hpp: what a host notices of the actors on its loop, and loops of each
// other.
#pragma once

#include "tools/duet_bench_report.hpp"

#include <cstdint>
#include <vector>

namespace duet::tools {

/// B4: the interval between two runs of a host's handler that re-posts itself, on a loop of one
/// thread with 100 actors that are never idle: 50 pairs with 64 messages in flight each. In time,
/// and in CPU time of the thread: what the operating system gave to others is not in the latter.
[[nodiscard]] std::vector<BenchResult> run_host_turn_bench(std::uint32_t runs);

/// Ping-pong between two systems on two loops with a thread each: every message wakes the other
/// loop. The peer is a bare asio::post to and fro between the same loops.
[[nodiscard]] std::vector<BenchResult> run_loops_bench(std::uint32_t runs);

}   // namespace duet::tools
