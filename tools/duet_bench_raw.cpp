// duet_bench_raw.cpp: the writing process, and its reader.
#include "tools/duet_bench_raw.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace duet::tools {
namespace {

constexpr std::size_t write_bytes_max = 65536;

template <typename T>
bool put(int descriptor, const T& value) {
  return ::send(descriptor, &value, sizeof value, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof value);
}

template <typename T>
bool get(int descriptor, T& value) {
  return ::recv(descriptor, &value, sizeof value, MSG_WAITALL) ==
         static_cast<ssize_t>(sizeof value);
}

std::uint64_t own_cpu_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// False if a write failed.
bool write_in_turn(const std::vector<int>& sockets, const RawLoad& load) {
  const std::string bytes(write_bytes_max, 'x');
  for (std::uint64_t i = 0; i < load.writes; ++i) {
    // The remainders are spread, so that the sum is exact.
    const std::uint64_t size = load.bytes * (i + 1) / load.writes - load.bytes * i / load.writes;
    if (size > bytes.size()) return false;
    std::uint64_t done = 0;
    while (done < size) {
      const ssize_t wrote =
          ::send(sockets[i % sockets.size()], bytes.data(), size - done, MSG_NOSIGNAL);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return false;
      done += static_cast<std::uint64_t>(wrote);
    }
  }
  return true;
}

/// The child's life: a load, connections, writes, the cost; until its parent is gone.
[[noreturn]] void serve(int control, int listener) {
  RawLoad load;
  while (get(control, load)) {
    std::vector<int> sockets;
    for (std::uint64_t i = 0; i < load.streams; ++i) {
      const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) ::_exit(1);
      const int on = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      sockets.push_back(socket);
    }
    const std::uint64_t before = own_cpu_nanoseconds();
    if (!write_in_turn(sockets, load)) ::_exit(1);
    const std::uint64_t cost = own_cpu_nanoseconds() - before;
    for (const int socket : sockets) ::close(socket);
    if (!put(control, cost)) break;
  }
  ::_exit(0);
}

int listen_on_loopback(std::uint16_t& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || ::bind(listener, raw, size) != 0 || ::listen(listener, 512) != 0 ||
      ::getsockname(listener, raw, &size) != 0) {
    throw std::runtime_error("cannot listen for the raw peer");
  }
  port = ntohs(address.sin_port);
  return listener;
}

/// Reads until `bytes` have come on all of them together.
void read_all(const std::vector<int>& sockets, std::uint64_t bytes) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (const int socket : sockets) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = socket;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
  }
  std::array<epoll_event, 64> events{};
  std::array<char, 65536> buffer;   // NOLINT: filled by recv
  std::uint64_t got = 0;
  while (got < bytes) {
    const int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 60'000);
    if (count == 0) break;
    for (int i = 0; i < count; ++i) {
      const int socket = events.at(static_cast<std::size_t>(i)).data.fd;
      const ssize_t size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size > 0) got += static_cast<std::uint64_t>(size);
      if (size == 0) ::epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nullptr);
    }
  }
  ::close(epoll);
  if (got != bytes) throw std::runtime_error("the raw peer wrote less than it was asked to");
}

}   // namespace

RawWriter::RawWriter() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    throw std::runtime_error("socketpair failed");
  }
  const int listener = listen_on_loopback(port_);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    ::close(pair[0]);
    serve(pair[1], listener);
  }
  ::close(pair[1]);
  ::close(listener);
  control_ = pair[0];
}

RawWriter::~RawWriter() {
  ::close(control_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::uint64_t RawWriter::write(const RawLoad& load) {
  if (load.streams == 0 || load.writes == 0 || load.bytes < load.writes ||
      load.bytes / load.writes >= write_bytes_max) {
    throw std::runtime_error("there is nothing to compare with raw writes");
  }
  if (!put(control_, load)) throw std::runtime_error("the raw peer has ended");
  std::vector<int> sockets;
  for (std::uint64_t i = 0; i < load.streams; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to the raw peer");
    }
    sockets.push_back(socket);
  }
  read_all(sockets, load.bytes);
  for (const int socket : sockets) ::close(socket);
  std::uint64_t cost = 0;
  if (!get(control_, cost)) throw std::runtime_error("the raw peer has ended");
  return cost;
}

}   // namespace duet::tools
