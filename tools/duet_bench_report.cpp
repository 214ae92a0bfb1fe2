// duet_bench_report.cpp: the figures of a benchmark, as text or as the JSON object of all tools.
#include "tools/duet_bench_report.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <thread>
#include <utility>

namespace duet::tools {

namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}   // namespace

double BenchResult::median() const {
  return median_of(runs);
}

double BenchResult::min() const {
  return *std::min_element(runs.begin(), runs.end());
}

double BenchResult::max() const {
  return *std::max_element(runs.begin(), runs.end());
}

double BenchResult::ratio() const {
  if (peer <= 0) return 0;
  const auto ratio_to = [this](double ours, double theirs) {
    return lower_is_better ? theirs / (ours * scale) : ours * scale / theirs;
  };
  if (peer_runs.size() != runs.size()) return ratio_to(median(), peer);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < runs.size(); ++i) ratios.push_back(ratio_to(runs[i], peer_runs[i]));
  return median_of(std::move(ratios));
}

bool BenchResult::bar_met() const {
  if (bar_of_ratio) return ratio() >= bar;
  return lower_is_better ? median() <= bar : median() >= bar;
}

std::string BenchReport::json() const {
  namespace json = boost::json;
  json::array list;
  for (const BenchResult& r : results) {
    json::object entry{{"name", r.name},    {"unit", r.unit}, {"median", r.median()},
                       {"min", r.min()},    {"max", r.max()}, {"peer", nullptr},
                       {"ratio", nullptr},  {"bar", nullptr}, {"bar_of", nullptr},
                       {"bar_met", nullptr}};
    if (r.peer > 0) {
      entry["peer"] = r.peer;
      entry["ratio"] = r.ratio();
    }
    if (r.no_peer != nullptr) entry["no_peer"] = r.no_peer;
    if (r.bar > 0) {
      entry["bar"] = r.bar;
      entry["bar_of"] = r.bar_of_ratio ? "ratio" : "median";
      entry["bar_met"] = r.bar_met();
    }
    list.push_back(std::move(entry));
  }
  const json::object report{{"tool", "duet-bench"},
                            {"commit", DUET_COMMIT},
                            {"machine", machine_name()},
                            {"command", command},
                            {"results", std::move(list)}};
  return json::serialize(report);
}

std::string BenchReport::text() const {
  std::ostringstream out;
  out << "machine  " << machine_name() << "\ncommit   " << DUET_COMMIT << "\ncommand  " << command
      << '\n';
  std::size_t width = 0;
  for (const BenchResult& r : results) width = std::max(width, r.name.size());
  for (const BenchResult& r : results) {
    out << std::left << std::setw(static_cast<int>(width) + 2) << r.name << std::right << std::fixed
        << std::setprecision(2) << std::setw(10) << r.median() << ' ' << r.unit << "  (" << r.min()
        << " .. " << r.max() << ", " << r.runs.size() << " runs)";
    if (r.peer > 0) out << "  peer " << r.peer << ", ratio " << r.ratio();
    if (r.no_peer != nullptr) out << "  peer " << r.no_peer;
    if (r.bar > 0) {
      out << "  bar " << (r.bar_of_ratio ? "of ratio " : "")
          << (r.lower_is_better && !r.bar_of_ratio ? "<= " : ">= ") << r.bar
          << (r.bar_met() ? ": met" : ": NOT MET");
    }
    out << '\n';
  }
  return out.str();
}

std::string machine_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown CPU";
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      model = line.substr(colon + 2);
      break;
    }
  }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " processors";
}

}   // namespace duet::tools
