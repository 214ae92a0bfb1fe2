// socket_transport.cpp: system calls, waits and the change of context.
#include "http/socket_transport.hpp"

#include <boost/asio/post.hpp>

#include <cerrno>
#include <mutex>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace duet::http {

namespace asio = boost::asio;
using boost::system::error_code;

/// One posted wake. The home may have changed since it was posted; then it follows.
class SocketTransport::Wake {
 public:
  Wake(SocketTransport& transport, std::shared_ptr<TransportEvents> events, Home home)
      : transport_(transport), events_(std::move(events)), home_(home) {}

  void operator()() {
    const Home now = transport_.current_home();
    // If it is this one, only this strand can change it, so it stays while on_wake() runs.
    if (now == home_) return events_->on_wake();
    home_ = now;
    const Strand& strand = transport_.strands_[static_cast<std::size_t>(now)];
    strand.execute(std::move(*this));
  }

 private:
  SocketTransport& transport_;
  std::shared_ptr<TransportEvents> events_;   // they own the transport
  Home home_;
};

SocketTransport::SocketTransport(const asio::any_io_executor& reserved,
                                 const asio::any_io_executor& main, int descriptor, int family)
    : one_executor_(reserved == main),
      protocol_(family, 0),
      strands_{Strand(PostingExecutor(reserved)), Strand(PostingExecutor(main))} {
  adopt(Home::reserved, descriptor);
}

SocketTransport::~SocketTransport() = default;

void SocketTransport::adopt(Home home, int descriptor) {
  socket_.emplace(strands_[static_cast<std::size_t>(home)]);
  error_code error;
  socket_->assign(protocol_, descriptor, error);
  if (!error) return;
  ::close(descriptor);   // out of memory in the kernel: the next read tells
  socket_.reset();
}

IoResult SocketTransport::read_some(std::span<char> into) noexcept {
  if (!socket_) return {IoStatus::failed};
  for (;;) {
    const ssize_t got = ::recv(socket_->native_handle(), into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0) return {IoStatus::done, static_cast<std::size_t>(got)};
    if (got == 0) return {IoStatus::ended};
    if (errno == EINTR) continue;
    return {errno == EAGAIN || errno == EWOULDBLOCK ? IoStatus::would_block : IoStatus::failed};
  }
}

IoResult SocketTransport::write_some(std::string_view bytes) noexcept {
  if (!socket_) return {IoStatus::failed};
  for (;;) {
    const ssize_t put =
        ::send(socket_->native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) return {IoStatus::done, static_cast<std::size_t>(put)};
    if (put < 0 && errno == EINTR) continue;
    const bool full = put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return {full ? IoStatus::would_block : IoStatus::failed};
  }
}

void SocketTransport::wait(Socket::wait_type type, std::shared_ptr<TransportEvents> events,
                           void (TransportEvents::*event)() noexcept) {
  const std::uint64_t epoch = epoch_.load(std::memory_order_relaxed);
  if (!socket_) {   // adopt() failed: let the reader find out
    asio::post(strands_[static_cast<std::size_t>(home_)],
               [events = std::move(events), event] { ((*events).*event)(); });
    return;
  }
  socket_->async_wait(type,
                      [this, epoch, event, events = std::move(events)](const error_code& error) {
                        if (error == asio::error::operation_aborted) return;
                        if (epoch != epoch_.load(std::memory_order_relaxed)) return;
                        ((*events).*event)();
                      });
}

void SocketTransport::wait_readable(std::shared_ptr<TransportEvents> events) noexcept {
  wait(Socket::wait_read, std::move(events), &TransportEvents::on_readable);
}

void SocketTransport::wait_writable(std::shared_ptr<TransportEvents> events) noexcept {
  wait(Socket::wait_write, std::move(events), &TransportEvents::on_writable);
}

void SocketTransport::wait_hangup(std::shared_ptr<TransportEvents> events) noexcept {
  wait(Socket::wait_error, std::move(events), &TransportEvents::on_hangup);
}

Home SocketTransport::current_home() noexcept {
  const std::lock_guard lock(lock_);
  return home_;
}

void SocketTransport::post_wake(std::shared_ptr<TransportEvents> events) noexcept {
  const Home home = current_home();
  strands_[static_cast<std::size_t>(home)].execute(Wake(*this, std::move(events), home));
}

bool SocketTransport::needs_move(Home home) const noexcept {
  return !one_executor_ && home != home_;
}

void SocketTransport::move_to(Home home, std::shared_ptr<TransportEvents> events) noexcept {
  epoch_.fetch_add(1, std::memory_order_relaxed);
  int descriptor = -1;
  if (socket_) {
    error_code error;
    descriptor = socket_->release(error);
    socket_.reset();
  }
  {
    const std::lock_guard lock(lock_);
    home_ = home;
  }
  strands_[static_cast<std::size_t>(home)].execute(
      [this, home, descriptor, events = std::move(events)] {
        if (descriptor >= 0) adopt(home, descriptor);
        events->on_moved();
      });
}

void SocketTransport::shutdown_write() noexcept {
  if (socket_) ::shutdown(socket_->native_handle(), SHUT_WR);
}

void SocketTransport::close(bool abort) noexcept {
  epoch_.fetch_add(1, std::memory_order_relaxed);
  if (!socket_) return;
  if (abort) {
    const linger drop{1, 0};
    ::setsockopt(socket_->native_handle(), SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
  }
  error_code error;
  socket_->close(error);
  socket_.reset();
}

}   // namespace duet::http
