// overlap.cpp: merges each chip's compute intervals, then walks both lists side by side.
#include "device/contract/overlap.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <vector>

namespace duet::device {
namespace {

struct Interval {
  ChipNanoseconds begin;
  ChipNanoseconds end;
};

/// Sorted and disjoint.
std::vector<Interval> busy_intervals(std::span<const TraceEvent> trace, std::uint32_t chip) {
  std::vector<Interval> all;
  for (const TraceEvent& event : trace) {
    if (event.kind == TraceKind::compute && event.chip == chip && event.begin < event.end) {
      all.push_back({event.begin, event.end});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> merged;
  for (const Interval& interval : all) {
    if (!merged.empty() && interval.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, interval.end);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

ChipNanoseconds total(const std::vector<Interval>& intervals) {
  ChipNanoseconds sum = 0;
  for (const Interval& interval : intervals) sum += interval.end - interval.begin;
  return sum;
}

}   // namespace

Overlap compute_overlap(std::span<const TraceEvent> trace, std::uint32_t first,
                        std::uint32_t second) {
  DUET_ASSERT(first != second, first, second);
  const std::vector<Interval> a = busy_intervals(trace, first);
  const std::vector<Interval> b = busy_intervals(trace, second);
  Overlap overlap;
  overlap.first_busy = total(a);
  overlap.second_busy = total(b);
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const ChipNanoseconds begin = std::max(a[i].begin, b[j].begin);
    const ChipNanoseconds end = std::min(a[i].end, b[j].end);
    if (begin < end) overlap.both_busy += end - begin;
    if (a[i].end < b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  const ChipNanoseconds shorter = std::min(overlap.first_busy, overlap.second_busy);
  DUET_ASSERT(overlap.both_busy <= shorter, overlap.both_busy, shorter);
  if (shorter > 0) {
    overlap.ratio = static_cast<double>(overlap.both_busy) / static_cast<double>(shorter);
  }
  return overlap;
}

}   // namespace duet::device
