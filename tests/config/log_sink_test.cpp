// log_sink_test.cpp: what reaches the log, and what does when it cannot be written.
#include "config/log_sink.hpp"

#include "runtime/real_clock.hpp"
#include "tests/device/package/scratch.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace duet::config::test {
namespace {

using device::test::ScratchDirectory;

struct Rig {
  ScratchDirectory directory;
  boost::asio::io_context io;
  runtime::RealClock clock{io.get_executor()};

  [[nodiscard]] LogOptions options(LogLevel level = LogLevel::info) const {
    LogOptions made;
    made.level = level;
    made.file = directory.at("log");
    return made;
  }
  [[nodiscard]] std::vector<boost::json::object> records() const {
    std::ifstream file(directory.at("log"));
    std::vector<boost::json::object> all;
    for (std::string line; std::getline(file, line);) {
      all.push_back(boost::json::parse(line).as_object());
    }
    return all;
  }
};

}   // namespace

BOOST_AUTO_TEST_SUITE(log_sink)

BOOST_AUTO_TEST_CASE(a_record_is_one_line_of_json_with_its_fields_in_order) {
  Rig rig;
  {
    LogSink log(rig.options(), rig.clock);
    log.write(LogLevel::info, "request", {{"model", "a\n\"b\""}, {"tokens", 7}});
  }
  const auto records = rig.records();
  BOOST_REQUIRE(records.size() == 1U);
  std::vector<std::string> keys;
  for (const auto& [key, value] : records[0]) keys.emplace_back(key);
  const std::vector<std::string> expected = {"time", "level", "event", "model", "tokens"};
  BOOST_TEST(keys == expected, boost::test_tools::per_element());
  BOOST_TEST(records[0].at("model").as_string() == "a\n\"b\"");
  BOOST_TEST(records[0].at("time").as_string().size() == 24U);
  BOOST_TEST(records[0].at("time").as_string().back() == 'Z');
}

BOOST_AUTO_TEST_CASE(what_is_below_the_level_is_not_written) {
  Rig rig;
  {
    LogSink log(rig.options(LogLevel::warning), rig.clock);
    for (const LogLevel level :
         {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error}) {
      log.write(level, "x", {});
    }
  }
  const auto records = rig.records();
  BOOST_REQUIRE(records.size() == 2U);
  BOOST_TEST(records[0].at("level").as_string() == "warning");
  BOOST_TEST(records[1].at("level").as_string() == "error");
}

BOOST_AUTO_TEST_CASE(two_logs_of_one_process_do_not_see_each_other) {
  Rig one;
  Rig other;
  {
    LogSink first(one.options(), one.clock);
    LogSink second(other.options(), other.clock);
    first.write(LogLevel::info, "first", {});
    second.write(LogLevel::info, "second", {});
    second.flush();
    BOOST_TEST(other.records().size() == 1U);
  }
  BOOST_REQUIRE(one.records().size() == 1U);
  BOOST_TEST(one.records()[0].at("event").as_string() == "first");
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_opened_is_named) {
  Rig rig;
  LogOptions options;
  options.file = "/no/such/directory/log";
  try {
    const LogSink log(options, rig.clock);
    BOOST_TEST(false);
  } catch (const std::runtime_error& error) {
    BOOST_TEST(std::string(error.what()).find("/no/such/directory/log") != std::string::npos);
  }
}

// A pipe that nobody reads must not hold up the server: the writer goes on, and what was lost is
// told afterwards.
BOOST_AUTO_TEST_CASE(a_log_that_nobody_reads_loses_records_and_says_how_many) {
  Rig rig;
  LogOptions options = rig.options();
  BOOST_REQUIRE(::mkfifo(options.file.c_str(), 0600) == 0);
  const int reader = ::open(options.file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  BOOST_REQUIRE(reader >= 0);
  constexpr int written = 20000;
  std::optional<LogSink> log(std::in_place, options, rig.clock);
  const std::uint64_t before = log->dropped();
  for (int i = 0; i < written; ++i) log->write(LogLevel::info, "x", {{"number", i}});
  BOOST_REQUIRE(::fcntl(reader, F_SETFL, 0) == 0);
  std::string text;
  std::thread drain([&text, reader] {
    std::vector<char> buffer(65536);
    for (ssize_t n = 1; n > 0;) {
      n = ::read(reader, buffer.data(), buffer.size());
      if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    }
  });
  log->flush();   // somebody reads again
  BOOST_TEST(log->dropped() > before);
  log->write(LogLevel::info, "last", {});
  const std::uint64_t dropped = log->dropped() - before;
  log.reset();   // closes the pipe, which ends the reader
  drain.join();
  ::close(reader);
  const auto lines = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  BOOST_TEST(lines == written - dropped + 2);   // the last one, and what tells of the loss
  BOOST_TEST(text.find("\"total\":" + std::to_string(before + dropped)) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::config::test
