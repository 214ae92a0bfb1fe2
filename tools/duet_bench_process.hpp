// duet_bench_process.hpp: the server of a benchmark: another process, and its CPU time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace duet::tools {

/// A directory of this process's own in the system's temporary one; removed with all in it.
class BenchDirectory {
 public:
  BenchDirectory();   ///< throws std::runtime_error.
  ~BenchDirectory();
  BenchDirectory(const BenchDirectory&) = delete;
  BenchDirectory& operator=(const BenchDirectory&) = delete;

  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A program that runs beside this one; its standard error goes to `log`. The destructor asks it to
/// end (SIGTERM) and waits; after 10 s it is killed.
class BenchProcess {
 public:
  BenchProcess(const std::vector<std::string>& words, const std::string& log);
  ~BenchProcess();
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;

  [[nodiscard]] bool running();
  /// User and system time of all its threads so far, nanoseconds.
  [[nodiscard]] std::uint64_t cpu_nanoseconds() const;
  /// Its exit code, when it has ended; 128 + signal.
  int wait();

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

/// Where the calling thread runs from now on, and the threads that it starts.
enum class Processors : std::uint8_t { first, last, all };
void run_on(Processors which) noexcept;

/// The directory of this program's file.
[[nodiscard]] std::string program_directory();

/// Waits at most a minute for a file that holds a number. Throws std::runtime_error if `process`
/// ends first; its message has the last lines of `log`.
[[nodiscard]] std::uint16_t await_port(const std::string& file, BenchProcess& process,
                                       const std::string& log);

}   // namespace duet::tools
