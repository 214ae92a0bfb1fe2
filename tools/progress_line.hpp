// progress_line.hpp: how far a build is: a bar on a terminal, lines elsewhere.
#pragma once

#include "device/package/packer.hpp"

#include <iosfwd>
#include <string>

namespace duet::tools {

class ProgressLine {
 public:
  /// `out` must outlive the object. On a terminal one line is drawn again and again and wiped by
  /// finish(); elsewhere each step gets one line when it begins.
  ProgressLine(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  void show(const device::PackProgress& progress);
  void finish();

 private:
  std::ostream& out_;
  bool terminal_;
  std::string shown_;   ///< what is on the line, so that nothing is drawn twice.
};

}   // namespace duet::tools
