// process.hpp: runs a program of the build and keeps what it printed.
#pragma once

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <poll.h>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

namespace duet::test {

struct Finished {
  int code = -1;   ///< exit code; 128 + signal number if one ended it.
  std::string out;
  std::string err;
};

/// `program` is a name in the build's bin/. Standard input is empty.
inline Finished run_program(const std::string& program, const std::vector<std::string>& arguments) {
  // Added up from strings, g++ 12 sees a copy beyond the end of one of them.
  const std::string path = (std::filesystem::path(DUET_BINARY_DIR) / "bin" / program).string();
  std::vector<char*> words{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  BOOST_REQUIRE(::pipe(out.data()) == 0 && ::pipe(err.data()) == 0);
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    for (const int fd : {out[0], out[1], err[0], err[1], STDIN_FILENO}) ::close(fd);
    ::execv(path.c_str(), words.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  Finished finished;
  std::array<pollfd, 2> pipes{{{out[0], POLLIN, 0}, {err[0], POLLIN, 0}}};
  for (int open = 2; open > 0;) {
    if (::poll(pipes.data(), pipes.size(), -1) < 0 && errno != EINTR) break;
    for (auto& pipe : pipes) {
      if (pipe.fd < 0 || pipe.revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t size = ::read(pipe.fd, buffer.data(), buffer.size());
      if (size > 0) {
        (pipe.fd == out[0] ? finished.out : finished.err)
            .append(buffer.data(), static_cast<std::size_t>(size));
      } else if (size == 0) {
        pipe.fd = -1;
        --open;
      }
    }
  }
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

}   // namespace duet::test
