// duet_bench_actors_hand_off.hpp: what the hand-off of a completion to an actor costs.
#pragma once

#include "tools/duet_bench_report.hpp"

#include <cstdint>
#include <vector>

namespace duet::tools {

/// The time from the end of a blocking call on a completion thread to the handler of the actor that
/// waits for it: right on that thread, and through a host's loop on another thread. The peer is a
/// bare asio::post from the same completion thread to the same loop. The ways take turns, the loop
/// sleeps before each sample. Names say what kind of actor and how many threads run the loop.
[[nodiscard]] std::vector<BenchResult> run_hand_off_bench(std::uint32_t runs,
                                                          std::uint32_t samples_a_run);

/// Microseconds of this process's CPU time that one turn costs from a host's loop to a completion
/// thread and, by a bare asio::post, back: the two hand-offs that every job has, and nothing else.
[[nodiscard]] double hand_off_turn_cpu(std::uint32_t turns);

}   // namespace duet::tools
