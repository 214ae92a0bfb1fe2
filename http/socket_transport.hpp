// socket_transport.hpp: a transport over a TCP or Unix socket of one of two Asio contexts.
#pragma once

#include "http/posting_executor.hpp"
#include "http/transport.hpp"
#include "runtime/short_lock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/strand.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace duet::http {

/// Reads and writes are system calls made at once; Asio only waits for readiness, so nothing is
/// lost when the socket goes over to the other context. With one executor for both homes nothing
/// ever moves.
class SocketTransport final : public Transport {
 public:
  using Strand = boost::asio::strand<PostingExecutor>;

  /// Takes the connected, non-blocking descriptor.
  SocketTransport(const boost::asio::any_io_executor& reserved,
                  const boost::asio::any_io_executor& main, int descriptor, int family);
  ~SocketTransport() override;

  /// Where the connection begins.
  [[nodiscard]] const Strand& strand() const noexcept { return strands_.front(); }

  [[nodiscard]] IoResult read_some(std::span<char> into) noexcept override;
  [[nodiscard]] IoResult write_some(std::string_view bytes) noexcept override;
  void wait_readable(std::shared_ptr<TransportEvents> events) noexcept override;
  void wait_writable(std::shared_ptr<TransportEvents> events) noexcept override;
  void wait_hangup(std::shared_ptr<TransportEvents> events) noexcept override;
  void post_wake(std::shared_ptr<TransportEvents> events) noexcept override;
  [[nodiscard]] bool needs_move(Home home) const noexcept override;
  void move_to(Home home, std::shared_ptr<TransportEvents> events) noexcept override;
  void shutdown_write() noexcept override;
  void close(bool abort) noexcept override;

 private:
  using Socket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, Strand>;
  class Wake;

  void wait(Socket::wait_type type, std::shared_ptr<TransportEvents> events,
            void (TransportEvents::*event)() noexcept);
  void adopt(Home home, int descriptor);
  [[nodiscard]] Home current_home() noexcept;   // any thread

  const bool one_executor_;
  const boost::asio::generic::stream_protocol protocol_;
  const std::array<Strand, 2> strands_;   // by Home
  std::optional<Socket> socket_;          // empty while moving and after close
  // A wait that has ended just before its socket moved or closed must not be told any more.
  std::atomic<std::uint64_t> epoch_ = 0;

  runtime::ShortLock lock_;
  Home home_ = Home::reserved;   // changes under the lock, on the home itself
};

}   // namespace duet::http
