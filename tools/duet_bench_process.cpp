// duet_bench_process.cpp: starts a program, reads its CPU clock, ends it.
#include "tools/duet_bench_process.hpp"

#include <sys/wait.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace duet::tools {
namespace {

using namespace std::chrono_literals;

std::string tail_of(const std::string& file) {
  constexpr std::size_t bytes_max = 2000;
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return text.substr(text.size() - std::min(text.size(), bytes_max));
}

}   // namespace

BenchDirectory::BenchDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "duet-bench-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
}

BenchDirectory::~BenchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

BenchProcess::BenchProcess(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0) throw std::runtime_error("cannot write " + log);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out, STDERR_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(out);
  if (pid_ < 0) throw std::runtime_error("cannot start " + words.at(0));
}

BenchProcess::~BenchProcess() {
  if (!running()) return;
  ::kill(pid_, SIGTERM);
  for (int tenths = 0; tenths < 100 && running(); ++tenths) std::this_thread::sleep_for(100ms);
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  wait();
}

bool BenchProcess::running() {
  if (pid_ < 0) return false;
  if (::waitpid(pid_, &status_, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

int BenchProcess::wait() {
  while (pid_ >= 0 && ::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

std::uint64_t BenchProcess::cpu_nanoseconds() const {
  clockid_t clock{};
  timespec now{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &now) != 0) {
    throw std::runtime_error("the server has ended: its CPU time cannot be read");
  }
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void run_on(Processors which) noexcept {
  // What this process may use, as of the first call, before anything was pinned.
  static const cpu_set_t usable = [] {
    cpu_set_t all;
    CPU_ZERO(&all);
    ::sched_getaffinity(0, sizeof all, &all);
    return all;
  }();
  cpu_set_t set = usable;
  if (which != Processors::all) {
    int chosen = -1;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &usable) && (chosen < 0 || which == Processors::last)) chosen = i;
    }
    if (chosen < 0) return;
    CPU_ZERO(&set);
    CPU_SET(chosen, &set);
  }
  ::sched_setaffinity(0, sizeof set, &set);   // refused: then it stays as it is
}

std::string program_directory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

std::uint16_t await_port(const std::string& file, BenchProcess& process, const std::string& log) {
  for (int tries = 0; tries < 6000; ++tries) {
    std::ifstream in(file);
    std::uint16_t port = 0;
    if (in >> port) return port;
    if (!process.running()) throw std::runtime_error("the server ended:\n" + tail_of(log));
    std::this_thread::sleep_for(10ms);
  }
  throw std::runtime_error("the server did not come up:\n" + tail_of(log));
}

}   // namespace duet::tools
