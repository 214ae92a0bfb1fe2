// duet_bench_report.hpp: the figures of a benchmark, as text or as the JSON object of all tools.
#pragma once

#include <string>
#include <vector>

namespace duet::tools {

/// One measured figure: several runs of it, and the peer that it is compared with.
struct BenchResult {
  std::string name;
  std::string unit;
  std::vector<double> runs;             ///< not empty.
  double peer = 0;                      ///< in the same unit; 0: there is none.
  std::vector<double> peer_runs = {};   ///< of the same rounds, where both took turns; or empty.
  double scale = 1;                     ///< what a run is multiplied by to stand beside the peer.
  bool lower_is_better = false;
  const char* no_peer = nullptr;   ///< why there is no figure of a peer that there could be.
  double bar = 0;              ///< what the median must reach (or stay below); 0: there is none.
  bool bar_of_ratio = false;   ///< the bar is one of ratio() instead.

  [[nodiscard]] double median() const;
  [[nodiscard]] double min() const;
  [[nodiscard]] double max() const;
  /// median * scale / peer, or its inverse where lower is better: above 1 is better than the peer.
  /// 0 without a peer. With peer_runs the median of the rounds' ratios: who shares the machine may
  /// slow a round down, but then both.
  [[nodiscard]] double ratio() const;
  [[nodiscard]] bool bar_met() const;
};

struct BenchReport {
  std::string command;
  std::vector<BenchResult> results;

  /// {"tool","commit","machine","command","results":[{"name","unit","median","min","max","peer",
  /// "ratio","bar","bar_of","bar_met"}]}; null where there is no peer or bar; "no_peer" where a
  /// peer is missing.
  [[nodiscard]] std::string json() const;
  [[nodiscard]] std::string text() const;
};

/// CPU model and number of processors, as the operating system tells them.
[[nodiscard]] std::string machine_name();

}   // namespace duet::tools
