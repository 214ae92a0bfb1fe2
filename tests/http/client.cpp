// client.cpp: sockets and a small reader of responses.
#include "tests/http/client.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace duet::http::tests {

namespace {

void set_timeout(int descriptor) {
  const timeval limit{10, 0};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

}   // namespace

Client::Client(std::uint16_t port, int receive_buffer) {
  descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  set_timeout(descriptor_);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect");
  const int on = 1;
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Client::Client(const std::string& unix_path) {
  descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  set_timeout(descriptor_);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  unix_path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect");
}

Client::~Client() {
  close();
}

void Client::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Client::half_close() {
  ::shutdown(descriptor_, SHUT_WR);
}

void Client::reset() {
  const linger drop{1, 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
  close();
}

bool Client::fill() {
  char piece[16384];
  const ssize_t got = ::recv(descriptor_, piece, sizeof piece, 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    throw std::runtime_error("nothing came for ten seconds; so far: " + buffer_);
  if (got <= 0) return false;
  buffer_.append(piece, static_cast<std::size_t>(got));
  return true;
}

std::string Client::take_line() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!fill()) throw std::runtime_error("the connection ended inside a line: " + buffer_);
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

Response Client::read(bool head) {
  Response response;
  const std::string status_line = take_line();
  // Boost.Test's macros are for one thread; clients read on several.
  if (!status_line.starts_with("HTTP/1.1 ")) {
    throw std::runtime_error("not a status line: " + status_line);
  }
  response.status = static_cast<unsigned>(std::stoul(status_line.substr(9, 3)));
  for (std::string line = take_line(); !line.empty(); line = take_line()) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) throw std::runtime_error("not a field: " + line);
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    response.fields[name] = line.substr(colon + 2);
  }
  if (response.status == 100) return read(head);
  if (head) {
    response.whole = true;
    return response;
  }
  if (response.field("transfer-encoding") == "chunked") {
    for (;;) {
      std::size_t size = 0;
      try {
        size = std::stoul(take_line(), nullptr, 16);
      } catch (const std::runtime_error&) {
        return response;   // not whole
      }
      while (buffer_.size() < size + 2) {
        if (!fill()) return response;
      }
      response.body += buffer_.substr(0, size);
      buffer_.erase(0, size + 2);
      if (size == 0) break;
    }
  } else if (response.fields.contains("content-length")) {
    const std::size_t size = std::stoul(response.field("content-length"));
    while (buffer_.size() < size) {
      if (!fill()) return response;
    }
    response.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
  } else {
    while (fill()) {
    }
    response.body = std::move(buffer_);
    buffer_.clear();
  }
  response.whole = true;
  return response;
}

std::string Client::read_until(std::string_view text) {
  while (buffer_.find(text) == std::string::npos) {
    if (!fill()) return {};
  }
  return buffer_;
}

bool Client::at_end() {
  return buffer_.empty() && !fill();
}

std::string get(std::string_view target, std::string_view fields) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: t\r\n" + std::string(fields) + "\r\n";
}

std::string post(std::string_view target, std::string_view body, std::string_view fields) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

std::vector<std::string> events(std::string_view body) {
  std::vector<std::string> list;
  while (!body.empty()) {
    const std::size_t end = body.find("\n\n");
    const std::string_view event = body.substr(0, end);
    body = end == std::string_view::npos ? std::string_view() : body.substr(end + 2);
    if (event.starts_with("data: ")) list.emplace_back(event.substr(6));
  }
  return list;
}

}   // namespace duet::http::tests
