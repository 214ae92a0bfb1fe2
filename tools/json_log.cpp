// json_log.cpp: one line a record.
#include "tools/json_log.hpp"

#include <boost/json/serialize.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace duet::tools {

namespace {

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char text[48];
  std::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(milliseconds));
  return text;
}

}   // namespace

JsonLog::JsonLog(const std::string& file)
    : file_(file.empty() ? stderr : std::fopen(file.c_str(), "ae")) {
  if (file_ == nullptr) {
    throw std::runtime_error("log.file: " + file + ": " + std::strerror(errno));
  }
}

JsonLog::~JsonLog() {
  if (file_ != stderr) std::fclose(file_);
}

void JsonLog::write(const char* event, const boost::json::object& fields) {
  boost::json::object record{{"time", now_text()}, {"event", event}};
  for (const auto& [key, value] : fields) record[key] = value;
  const std::string line = boost::json::serialize(record) + "\n";
  const std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fflush(file_);
}

}   // namespace duet::tools
