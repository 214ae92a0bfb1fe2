// duet_bench_decode.hpp: how fast transformer inference runs here, against the memory's bandwidth.
#pragma once

#include "tools/duet_bench_report.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace duet::tools {

struct DecodeBench {
  std::uint32_t threads = 1;         ///< threads a chip: 1 or 2.
  std::uint32_t rounds = 5;          ///< 1..100; sums and decodes alternate.
  std::vector<std::string> models;   ///< GGUF files that are measured as well.
};

/// Measures, in this order and interleaved where they are compared: the read bandwidth (sums over
/// 1 GiB), decode and prefill of a generated Q8_0 model of 0.5 billion weights, decode and prefill
/// of each file. Throws std::runtime_error with a sentence if a file cannot be used.
[[nodiscard]] std::vector<BenchResult> run_decode_bench(const DecodeBench& bench);

}   // namespace duet::tools
