// log_sink.cpp: Boost.Log with a bounded queue that never makes a writer wait.
#include "config/log_sink.hpp"

#include <boost/json/serialize.hpp>
#include <boost/log/attributes/attribute_cast.hpp>
#include <boost/log/attributes/constant.hpp>
#include <boost/log/core.hpp>
#include <boost/log/expressions.hpp>
#include <boost/log/sinks/async_frontend.hpp>
#include <boost/log/sinks/basic_sink_backend.hpp>
#include <boost/log/sinks/bounded_fifo_queue.hpp>
#include <boost/log/sources/record_ostream.hpp>
#include <boost/log/sources/severity_channel_logger.hpp>
#include <boost/smart_ptr/make_shared.hpp>
#include <boost/smart_ptr/shared_ptr.hpp>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>

namespace duet::config {

namespace {

namespace logging = boost::log;

/// Some seconds of a busy server; 4 MiB at the most.
constexpr std::size_t queue_max = 4096;

/// How many records found the queue full. One for the process: Boost.Log makes the policy itself.
std::atomic<std::uint64_t> records_dropped = 0;

/// Boost.Log's policy for a full queue: the record is lost and counted.
class CountAndDrop {
 public:
  template <typename Lock>
  static bool on_overflow(const logging::record_view&, Lock&) {
    records_dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  static void on_queue_space_available() {}
  static void interrupt() {}
};

/// Writes lines to a descriptor. A line that cannot be written within a second is lost and counted,
/// and so are the next ones at once until there is room again: a reader that stopped, or a full
/// disk, costs records and never keeps a process from ending.
class LineBackend
    : public logging::sinks::basic_formatted_sink_backend<char,
                                                          logging::sinks::synchronized_feeding> {
 public:
  explicit LineBackend(const std::string& file)
      : descriptor_(file.empty() ? STDERR_FILENO : ::open(file.c_str(), flags, mode)),
        owned_(!file.empty()) {
    if (descriptor_ < 0) {
      throw std::runtime_error("log.file: cannot open " + file + ": " + std::strerror(errno));
    }
  }
  ~LineBackend() {
    if (owned_) ::close(descriptor_);
  }
  LineBackend(const LineBackend&) = delete;
  LineBackend& operator=(const LineBackend&) = delete;

  void consume(const logging::record_view&, const std::string& record) {
    // What a broken line has left is ended first.
    const std::string line = (broken_ ? "\n" : "") + record + "\n";
    std::size_t written = 0;
    while (written < line.size()) {
      pollfd ready{descriptor_, POLLOUT, 0};
      const bool room = ::poll(&ready, 1, stuck_ ? 0 : patience_ms) > 0;
      const ssize_t bytes =
          room ? ::write(descriptor_, &line[written], std::min(line.size() - written, pipe_bytes))
               : -1;
      if (bytes < 0 && room && errno == EINTR) continue;
      if (bytes <= 0) {
        stuck_ = true;
        broken_ = written > 0 || broken_;
        records_dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      written += static_cast<std::size_t>(bytes);
    }
    stuck_ = false;
    broken_ = false;
  }

 private:
  // Not blocking, so that opening a pipe that nobody reads is an error and not a wait.
  static constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK;
  static constexpr mode_t mode = 0640;
  static constexpr int patience_ms = 1000;
  static constexpr std::size_t pipe_bytes = PIPE_BUF;   // what poll() promises room for

  const int descriptor_;
  const bool owned_;
  bool stuck_ = false;    // the last line found no room
  bool broken_ = false;   // the last byte written was not the end of a line
};

using Backend = LineBackend;
using Sink =
    logging::sinks::asynchronous_sink<Backend,
                                      logging::sinks::bounded_fifo_queue<queue_max, CountAndDrop>>;
using Logger = logging::sources::severity_channel_logger_mt<LogLevel, const void*>;

BOOST_LOG_ATTRIBUTE_KEYWORD(severity_of, "Severity", LogLevel)
BOOST_LOG_ATTRIBUTE_KEYWORD(channel_of, "Channel", const void*)

const char* to_string(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

/// "2026-01-31T23:59:59.123Z".
std::string text_of(runtime::WallTime time) {
  const auto since = time.time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%s.%03dZ", date.data(),
                static_cast<int>(milliseconds % 1000));
  return text.data();
}

}   // namespace

class LogSink::Impl {
 public:
  Impl(const LogOptions& options, const runtime::Clock& clock)
      : clock_(clock), logger_(logging::keywords::channel = static_cast<const void*>(this)) {
    const auto backend = boost::make_shared<Backend>(options.file);
    sink_ = boost::make_shared<Sink>(backend);
    sink_->set_filter(channel_of == static_cast<const void*>(this) && severity_of >= options.level);
    sink_->set_formatter(logging::expressions::stream << logging::expressions::smessage);
    logging::core::get()->add_sink(sink_);
  }

  ~Impl() {
    logging::core::get()->remove_sink(sink_);
    sink_->stop();
    sink_->flush();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void write(LogLevel level, const char* event, const boost::json::object& fields) {
    const std::uint64_t before = records_dropped.load(std::memory_order_relaxed);
    push(level, event, fields);
    const std::uint64_t dropped = records_dropped.load(std::memory_order_relaxed);
    if (dropped != before || dropped == told_.load(std::memory_order_relaxed)) return;
    // There was room: the next to fit tells of the loss, in total, so that telling twice is right.
    push(LogLevel::warning, "records_dropped",
         {{"total", dropped}, {"detail", "the log could not be written fast enough"}});
    if (records_dropped.load(std::memory_order_relaxed) == dropped) told_ = dropped;
  }

  void flush() { sink_->flush(); }

 private:
  void push(LogLevel level, const char* event, const boost::json::object& fields) {
    logging::record record = logger_.open_record(logging::keywords::severity = level);
    if (!record) return;   // below the level
    boost::json::object object{
        {"time", text_of(clock_.wall_now())}, {"level", to_string(level)}, {"event", event}};
    for (const auto& [key, value] : fields) object[key] = value;
    logging::record_ostream stream(record);
    stream << boost::json::serialize(object);
    stream.flush();
    logger_.push_record(std::move(record));
  }

  const runtime::Clock& clock_;
  Logger logger_;
  boost::shared_ptr<Sink> sink_;
  std::atomic<std::uint64_t> told_ = records_dropped.load();
};

LogSink::LogSink(const LogOptions& options, const runtime::Clock& clock)
    : impl_(std::make_unique<Impl>(options, clock)) {}

LogSink::~LogSink() = default;

void LogSink::write(LogLevel level, const char* event, const boost::json::object& fields) {
  impl_->write(level, event, fields);
}

void LogSink::flush() {
  impl_->flush();
}

std::uint64_t LogSink::dropped() const noexcept {
  return records_dropped.load(std::memory_order_relaxed);
}

}   // namespace duet::config
