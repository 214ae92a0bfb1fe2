// duet_bench_client.cpp: sockets, epoll, and as little looking at bytes as can be.
#include "tools/duet_bench_client.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace duet::tools {
namespace {

constexpr std::size_t tail_bytes = 1024;   // holds usage, [DONE] and the last chunk

int connect_to(std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (descriptor < 0 ||
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (descriptor >= 0) ::close(descriptor);
    throw std::runtime_error("cannot connect to port " + std::to_string(port));
  }
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return descriptor;
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw std::runtime_error("a request could not be sent");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

}   // namespace

BenchStream::BenchStream(std::uint16_t port) : descriptor(connect_to(port)) {}

BenchStream::~BenchStream() {
  ::close(descriptor);
}

void BenchStream::send(std::string_view request) {
  ended = false;
  bytes = 0;
  reads = 0;
  tail.clear();
  head_.clear();
  first_token.reset();
  sent = std::chrono::steady_clock::now();
  write_all(descriptor, request);
}

void BenchStream::look_for_first_token(std::string_view piece) {
  constexpr std::string_view content = "\"content\":\"";
  head_ += piece;
  for (std::size_t at = head_.find(content); at != std::string::npos;
       at = head_.find(content, at + 1)) {
    const std::size_t text = at + content.size();
    if (text < head_.size() && head_[text] != '"') {
      first_token = std::chrono::steady_clock::now();
      return;
    }
  }
}

void BenchStream::read() {
  std::array<char, 65536> buffer;   // NOLINT: filled by recv
  const ssize_t got = ::recv(descriptor, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) throw std::runtime_error("the server closed a stream: " + tail);
  const std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
  bytes += piece.size();
  ++reads;
  if (timed && !first_token) look_for_first_token(piece);
  if (piece.size() >= tail_bytes) {
    tail = piece.substr(piece.size() - tail_bytes);
  } else {
    if (tail.size() + piece.size() > 2 * tail_bytes) tail.erase(0, tail.size() - tail_bytes);
    tail += piece;
  }
  ended = tail.ends_with("\r\n0\r\n\r\n");   // no JSON text holds a bare line end
}

BenchReaders::BenchReaders() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) throw std::runtime_error("epoll_create1 failed");
}

BenchReaders::~BenchReaders() {
  ::close(epoll_);
}

void BenchReaders::add(BenchStream& stream) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &stream;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, stream.descriptor, &event) != 0) {
    throw std::runtime_error("epoll_ctl failed");
  }
}

const std::vector<BenchStream*>& BenchReaders::step() {
  std::array<epoll_event, 64> events{};
  ended_.clear();
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 60'000);
  if (count == 0) throw std::runtime_error("no stream has said anything for a minute");
  for (int i = 0; i < count; ++i) {
    auto* const stream = static_cast<BenchStream*>(events.at(static_cast<std::size_t>(i)).data.ptr);
    const bool before = stream->ended;
    stream->read();
    if (stream->ended && !before) ended_.push_back(stream);
  }
  return ended_;
}

std::string fetch(std::uint16_t port, const std::string& path) {
  const int descriptor = connect_to(port);
  write_all(descriptor,
            "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  std::string answer;
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t got = ::recv(descriptor, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  const std::size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos || answer.compare(9, 3, "200") != 0) {
    throw std::runtime_error("GET " + path + " was answered by " + answer.substr(0, 80));
  }
  return answer.substr(head + 4);
}

}   // namespace duet::tools
