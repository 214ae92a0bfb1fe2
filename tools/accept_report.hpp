// accept_report.hpp: what duet-accept has done, line by line as it happens, and as one JSON object
// at the end.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <mutex>
#include <string>

namespace duet::tools {

/// Any thread. In text mode each step is printed at once; in JSON mode only finish() prints.
class AcceptReport {
 public:
  explicit AcceptReport(bool json);

  /// One call or check, in order. `what` is a stable word ("configure"), `detail` is for a person.
  void step(const std::string& what, bool ok, const std::string& detail);
  /// A line for a person that is no step.
  void note(const std::string& text);
  /// A result that JSON readers want.
  void set(const std::string& key, boost::json::value value);

  [[nodiscard]] bool failed() const;
  [[nodiscard]] bool json() const { return json_; }

  /// Prints the verdict, or the whole object. Returns the exit code: 0 or 1.
  int finish();

 private:
  const bool json_;
  mutable std::mutex mutex_;
  boost::json::object values_;
  boost::json::array steps_;
  bool failed_ = false;
};

}   // namespace duet::tools
