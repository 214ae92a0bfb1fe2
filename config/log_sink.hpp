// log_sink.hpp: the log: JSON objects, one a line, written by a thread of its own.
#pragma once

#include "config/config.hpp"
#include "runtime/clock.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <memory>

namespace duet::config {

/// A front for Boost.Log: an asynchronous sink on its core, filtered by level. Records that other
/// parts of the process give to Boost.Log do not end up here.
///
/// Any thread may write; nobody waits for the disk or for who reads standard error: a record goes
/// into a queue of 4096, and one that finds it full is dropped and counted. Behind the next
/// record that gets through another one tells how many the process has dropped in total.
class LogSink {
 public:
  /// The clock outlives it. Throws std::runtime_error naming log.file if that cannot be opened; it
  /// is appended to.
  LogSink(const LogOptions& options, const runtime::Clock& clock);
  /// Writes what is queued, as flush().
  ~LogSink();
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;

  /// {"time": UTC with milliseconds, "level", "event", and the fields in their order}. Values that
  /// must not be logged (prompts, answers, keys) are the caller's concern.
  void write(LogLevel level, const char* event, const boost::json::object& fields);

  /// Returns when what was written before is out, or lost: after about a second if nobody takes it.
  /// Blocks; for the last words of a process.
  void flush();

  [[nodiscard]] std::uint64_t dropped() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}   // namespace duet::config
