// accept_report.cpp: text and JSON of a run.
#include "tools/accept_report.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <cstdio>
#include <utility>

namespace duet::tools {

AcceptReport::AcceptReport(bool json) : json_(json) {}

void AcceptReport::step(const std::string& what, bool ok, const std::string& detail) {
  const std::lock_guard lock(mutex_);
  failed_ = failed_ || !ok;
  steps_.push_back(boost::json::object{{"step", what}, {"ok", ok}, {"detail", detail}});
  if (json_) return;
  std::printf("%2zu  %-20s %-4s %s\n", steps_.size(), what.c_str(), ok ? "ok" : "FAIL",
              detail.c_str());
  std::fflush(stdout);
}

void AcceptReport::note(const std::string& text) {
  if (json_) return;
  const std::lock_guard lock(mutex_);
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void AcceptReport::set(const std::string& key, boost::json::value value) {
  const std::lock_guard lock(mutex_);
  values_[key] = std::move(value);
}

bool AcceptReport::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

int AcceptReport::finish() {
  const std::lock_guard lock(mutex_);
  if (json_) {
    boost::json::object object{{"tool", "duet-accept"}};
    for (auto& [key, value] : values_) object[key] = std::move(value);
    object["steps"] = std::move(steps_);
    object["accepted"] = !failed_;
    std::printf("%s\n", boost::json::serialize(object).c_str());
  } else {
    std::printf("%s\n", failed_ ? "not accepted" : "accepted");
  }
  return failed_ ? 1 : 0;
}

}   // namespace duet::tools
