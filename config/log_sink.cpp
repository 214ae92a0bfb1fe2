// log_sink.cpp: Boost.Log with a bounded queue that never makes a writer wait.
#include "config/log_sink.hpp"

#include <boost/core/null_deleter.hpp>
#include <boost/json/serialize.hpp>
#include <boost/log/attributes/attribute_cast.hpp>
#include <boost/log/attributes/constant.hpp>
#include <boost/log/core.hpp>
#include <boost/log/expressions.hpp>
#include <boost/log/sinks/async_frontend.hpp>
#include <boost/log/sinks/bounded_fifo_queue.hpp>
#include <boost/log/sinks/text_ostream_backend.hpp>
#include <boost/log/sources/record_ostream.hpp>
#include <boost/log/sources/severity_channel_logger.hpp>
#include <boost/smart_ptr/make_shared.hpp>
#include <boost/smart_ptr/shared_ptr.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
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

using Backend = logging::sinks::text_ostream_backend;
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

boost::shared_ptr<std::ostream> open(const std::string& file) {
  if (file.empty()) return {&std::cerr, boost::null_deleter()};
  auto stream = boost::make_shared<std::ofstream>(file, std::ios::app);
  if (!stream->is_open()) {
    throw std::runtime_error("log.file: cannot open " + file + ": " + std::strerror(errno));
  }
  return stream;
}

}   // namespace

class LogSink::Impl {
 public:
  Impl(const LogOptions& options, const runtime::Clock& clock)
      : clock_(clock), logger_(logging::keywords::channel = static_cast<const void*>(this)) {
    const auto backend = boost::make_shared<Backend>();
    backend->add_stream(open(options.file));
    backend->auto_flush(true);
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
