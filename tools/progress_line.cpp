// progress_line.cpp: draws the progress of a build.
#include "tools/progress_line.hpp"

#include <algorithm>
#include <ostream>

namespace duet::tools {
namespace {

constexpr std::uint64_t bar_cells = 30;

}   // namespace

void ProgressLine::show(const device::PackProgress& progress) {
  const std::string step =
      progress.model.empty() ? progress.step : progress.model + ": " + progress.step;
  std::string text = step;
  if (terminal_) {
    const std::uint64_t total = std::max<std::uint64_t>(progress.total, 1);
    const std::uint64_t done = std::min(progress.done, total);
    const std::uint64_t cells = done * bar_cells / total;
    text = "[" + std::string(cells, '#') + std::string(bar_cells - cells, '.') + "] " +
           std::to_string(done * 100 / total) + " % " + step;
  }
  if (text == shown_) return;
  shown_ = text;
  if (terminal_) {
    out_ << "\r\033[K" << text << std::flush;
  } else {
    out_ << text << "\n" << std::flush;
  }
}

void ProgressLine::finish() {
  if (terminal_ && !shown_.empty()) out_ << "\r\033[K" << std::flush;
  shown_.clear();
}

}   // namespace duet::tools
