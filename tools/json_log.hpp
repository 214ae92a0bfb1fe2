// json_log.hpp: log records as lines of JSON.
#pragma once

#include <boost/json/object.hpp>

#include <cstdio>
#include <mutex>
#include <string>

namespace duet::tools {

/// Any thread. A line a record: time (UTC), event, and the given fields. What cannot be written is
/// lost; logging never stops the program.
class JsonLog {
 public:
  /// "" = standard error; else the file is appended to. Throws std::runtime_error if it cannot be
  /// opened.
  explicit JsonLog(const std::string& file);
  ~JsonLog();
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;

  void write(const char* event, const boost::json::object& fields);

 private:
  std::mutex mutex_;
  std::FILE* file_;
};

}   // namespace duet::tools
