// duet_bench_actors.hpp: what the actor runtime costs. Today: the hand-off of a completion.
#pragma once

#include "tools/duet_bench_report.hpp"

#include <cstdint>
#include <vector>

namespace duet::tools {

struct ActorsBench {
  std::uint32_t runs = 5;         ///< 1 to 100.
  std::uint32_t samples = 5000;   ///< of each way a run, 100 to 1000000.
};

/// The time from the end of a blocking call on a completion thread to the handler of the actor that
/// waits for it: right on that thread, and through a host's loop on another thread. The peer is a
/// bare asio::post from the same completion thread to the same loop. The ways take turns, the loop
/// sleeps before each sample. Names say what kind of actor and how many threads run the loop.
[[nodiscard]] std::vector<BenchResult> run_actors_bench(const ActorsBench& bench);

/// Microseconds of this process's CPU time that one turn costs from a host's loop to a completion
/// thread and, by a bare asio::post, back: the two hand-offs that every job has, and nothing else.
[[nodiscard]] double hand_off_turn_cpu(std::uint32_t turns);

}   // namespace duet::tools
