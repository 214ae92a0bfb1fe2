// duet_bench_serve.hpp: what the server itself costs: a null device behind it, streams before it.
#pragma once

#include "tools/duet_bench_report.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace duet::tools {

struct ServeBench {
  std::string server;            ///< duet-server; "" = the one beside this program.
  std::string package;           ///< directory; "" = the demo models, packed with 32 slots a model.
  std::uint32_t runs = 5;        ///< of each figure, 1 to 100; figures take turns.
  std::uint32_t streams = 64;    ///< at a time, 2 to 256, half of them a model.
  std::uint32_t tokens = 1000;   ///< of each of their answers, 16 to 4000.
  bool pin = false;   ///< server and raw peer on the last processor, the client on the first.
  std::uint32_t threads = 1;   ///< runtime.threads of the server.
};

/// Starts duet-server on a null board and reads its process's CPU clock around streams of chat
/// completions, greedy, answers that are counted by `usage`. The peer writes the same bytes in the
/// same number of send() calls to the same number of sockets, and does nothing else. Beside it
/// stands what the hand-offs of a job to its completion thread and back cost here without any work.
/// This program is the client; its own CPU time is not counted. Throws std::runtime_error with a
/// sentence.
[[nodiscard]] std::vector<BenchResult> run_serve_bench(const ServeBench& bench);

}   // namespace duet::tools
