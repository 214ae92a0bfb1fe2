// server.cpp: listening, accepting, and the end of it all.
#include "http/server.hpp"

#include "http/connection.hpp"
#include "http/limits.hpp"
#include "http/listen_address.hpp"
#include "http/socket_transport.hpp"
#include "runtime/assert.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace duet::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// When descriptors or memory run out, accepting again at once would only spin.
constexpr std::chrono::milliseconds accept_pause{100};
// Connections above the limit that are still told so; more are closed without a word.
constexpr std::size_t refusals_max = 64;

void set_option(int descriptor, int level, int name, int value) noexcept {
  ::setsockopt(descriptor, level, name, &value, sizeof value);   // only a matter of speed
}

}   // namespace

/// Everything here runs on its strand of the reserved executor, but counters and context.
class Server::State final : public ConnectionObserver, public std::enable_shared_from_this<State> {
 public:
  State(ServerOptions options, ServerContext context)
      : executor_(std::move(context.executor)),
        strand_(asio::make_strand(context.reserved_executor)),
        reserved_executor_(std::move(context.reserved_executor)),
        connection_context_(std::make_shared<ConnectionContext>(std::move(options), context.clock,
                                                                context.random, context.service)) {
    connection_context_->log = std::move(context.log);
    connection_context_->observer = this;
    if (context.compute_executor) {
      connection_context_->offload =
          [compute = std::move(context.compute_executor)](std::function<void()> work) {
            asio::post(compute, std::move(work));
          };
    }
  }

  boost::system::result<std::uint16_t, ListenError> listen() {
    const ServerOptions& options = connection_context_->options;
    std::uint16_t port = 0;
    if (!options.address.empty()) {
      asio::ip::tcp::endpoint endpoint(
          asio::ip::make_address(parse_listen_address(options.address).ip), options.port);
      error_code error = open(tcp_, endpoint, true);
      if (error) {
        return ListenError{"cannot listen on " + options.address + " port " +
                           std::to_string(options.port) + ": " + error.message()};
      }
      port = tcp_.acceptor->local_endpoint().port();
    }
    if (!options.unix_socket.empty()) {
      if (const error_code error = open_unix(options.unix_socket)) {
        tcp_.acceptor.reset();
        return ListenError{"cannot listen on " + options.unix_socket + ": " + error.message()};
      }
    }
    listening_ = true;
    asio::post(strand_, [self = shared_from_this()] {
      self->wait_accept(self->tcp_);
      self->wait_accept(self->unix_);
    });
    return port;
  }

  void drain(std::function<void()> answers_done) {
    connection_context_->draining.store(true, std::memory_order_release);
    asio::post(strand_, [self = shared_from_this(), done = std::move(answers_done)]() mutable {
      self->on_drained_ = std::move(done);
      for (auto& [id, connection] : self->connections_) connection->wake();
      self->check_drained();
    });
  }

  void stop_accepting() {
    asio::post(strand_, [self = shared_from_this()] { self->close_acceptors(); });
  }

  void close(std::function<void()> closed) {
    asio::post(strand_, [self = shared_from_this(), done = std::move(closed)]() mutable {
      self->close_acceptors();
      self->on_closed_ = std::move(done);
      for (auto& [id, connection] : self->connections_) connection->close_soon();
      self->check_closed();
    });
  }

  void connection_closed(Connection& connection) noexcept override {
    connection_context_->counters.connections_open.fetch_sub(1, std::memory_order_relaxed);
    asio::post(strand_, [self = shared_from_this(), gone = &connection] {
      self->connections_.erase(self->ids_.at(gone));
      self->ids_.erase(gone);
      self->check_closed();
    });
  }

  void answer_closed() noexcept override {
    if (!connection_context_->draining.load(std::memory_order_acquire)) return;
    asio::post(strand_, [self = shared_from_this()] { self->check_drained(); });
  }

  [[nodiscard]] const ServerCounters& counters() const noexcept {
    return connection_context_->counters;
  }
  [[nodiscard]] bool ended() const noexcept { return !listening_ || ended_; }

 private:
  using Strand = asio::strand<asio::any_io_executor>;
  template <typename Protocol>
  struct Listener {
    std::optional<asio::basic_socket_acceptor<Protocol, Strand>> acceptor;
    bool waiting = false;
  };

  /// Accepts again after a pause.
  class Pause final : public runtime::Timer {
   public:
    void begin(std::shared_ptr<State> state) {
      if (state_ != nullptr) return;
      state_ = std::move(state);
      runtime::Clock& clock = state_->connection_context_->clock;
      clock.arm(*this, clock.now() + accept_pause);
    }
    void end() noexcept {
      if (state_ == nullptr) return;
      // Moved out first: it may hold the last reference to this timer.
      if (state_->connection_context_->clock.cancel(*this)) std::shared_ptr(std::move(state_));
    }
    void expired() noexcept override {
      asio::post(state_->strand_, [this] {
        const std::shared_ptr<State> state = std::move(state_);
        state->wait_accept(state->tcp_);
        state->wait_accept(state->unix_);
      });
    }

   private:
    std::shared_ptr<State> state_;   // while armed or posted
  };

  template <typename Protocol, typename Endpoint>
  error_code open(Listener<Protocol>& listener, const Endpoint& endpoint, bool reuse) {
    error_code error;
    auto& acceptor = listener.acceptor;
    acceptor.emplace(strand_);
    acceptor->open(endpoint.protocol(), error);
    if (!error && reuse) acceptor->set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor->bind(endpoint, error);
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
    if (!error) acceptor->non_blocking(true, error);
    if (error) acceptor.reset();
    return error;
  }

  error_code open_unix(const std::string& path) {
    if (path.size() >= sizeof(sockaddr_un{}.sun_path))
      return make_error_code(boost::system::errc::filename_too_long);
    const asio::local::stream_protocol::endpoint endpoint(path);
    error_code error = open(unix_, endpoint, false);
    if (error != asio::error::address_in_use) return error;
    // A file that nobody answers at was left by a process that died.
    asio::local::stream_protocol::socket probe(strand_.get_inner_executor());
    error_code refused;
    probe.open(endpoint.protocol(), refused);
    if (!refused) probe.non_blocking(true, refused);   // a full backlog must not hold us up
    if (!refused) probe.connect(endpoint, refused);
    if (refused != asio::error::connection_refused) return error;
    ::unlink(path.c_str());
    return open(unix_, endpoint, false);
  }

  void close_acceptors() {
    pause_.end();
    tcp_.acceptor.reset();
    if (!unix_.acceptor) return;
    unix_.acceptor.reset();
    ::unlink(connection_context_->options.unix_socket.c_str());
  }

  template <typename Protocol>
  void wait_accept(Listener<Protocol>& listener) {
    if (!listener.acceptor || listener.waiting) return;
    listener.waiting = true;
    listener.acceptor->async_wait(asio::socket_base::wait_read,
                                  [self = shared_from_this(), &listener](const error_code& error) {
                                    listener.waiting = false;
                                    if (!error && listener.acceptor) self->accept(listener);
                                  });
  }

  template <typename Protocol>
  void accept(Listener<Protocol>& listener) {
    const int family = listener.acceptor->local_endpoint().protocol().family();
    for (std::uint32_t i = 0; i < limits::accepts_a_turn_max; ++i) {
      const int descriptor = ::accept4(listener.acceptor->native_handle(), nullptr, nullptr,
                                       SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor >= 0) {
        add(descriptor, family);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return pause_.begin(shared_from_this());
      }   // else that one client is already gone
    }
    wait_accept(listener);
  }

  void add(int descriptor, int family) {
    const ServerLimits& limits = connection_context_->options.limits;
    ServerCounters& counters = connection_context_->counters;
    const bool refused = connections_.size() >= limits.connections;
    if (refused) counters.connections_refused.fetch_add(1, std::memory_order_relaxed);
    if (connections_.size() >= limits.connections + refusals_max) {
      ::close(descriptor);
      return;
    }
    set_option(descriptor, SOL_SOCKET, SO_SNDBUF, static_cast<int>(limits.socket_send_bytes));
    if (family != AF_UNIX) {
      set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
      set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
    }
    counters.connections_accepted.fetch_add(1, std::memory_order_relaxed);
    counters.connections_open.fetch_add(1, std::memory_order_relaxed);
    auto transport =
        std::make_unique<SocketTransport>(reserved_executor_, executor_, descriptor, family);
    const SocketTransport::Strand strand = transport->strand();
    auto connection = std::make_shared<Connection>(connection_context_, std::move(transport));
    const std::uint64_t id = next_id_++;
    ids_.emplace(connection.get(), id);
    connections_.emplace(id, connection);
    asio::post(strand, [connection, refused] {
      refused ? connection->open_refused() : connection->open();
    });
  }

  void check_drained() {
    if (on_drained_ == nullptr) return;
    if (connection_context_->counters.answers_open.load(std::memory_order_relaxed) > 0) return;
    std::exchange(on_drained_, nullptr)();
  }

  void check_closed() {
    if (on_closed_ == nullptr || !connections_.empty()) return;
    ended_ = true;
    std::exchange(on_closed_, nullptr)();
  }

  const asio::any_io_executor executor_;
  const Strand strand_;
  const asio::any_io_executor reserved_executor_;
  const std::shared_ptr<ConnectionContext> connection_context_;
  Listener<asio::ip::tcp> tcp_;
  Listener<asio::local::stream_protocol> unix_;
  Pause pause_;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::map<const Connection*, std::uint64_t> ids_;   // only looked up, never walked
  std::uint64_t next_id_ = 0;
  std::function<void()> on_drained_;
  std::function<void()> on_closed_;
  std::atomic<bool> listening_ = false;
  std::atomic<bool> ended_ = false;
};

Server::Server(ServerOptions options, ServerContext context) {
  check(options);
  state_ = std::make_shared<State>(std::move(options), std::move(context));
}

Server::~Server() {
  DUET_ASSERT(state_->ended());
}

boost::system::result<std::uint16_t, ListenError> Server::listen() {
  return state_->listen();
}

void Server::drain(std::function<void()> answers_done) {
  state_->drain(std::move(answers_done));
}

void Server::stop_accepting() {
  state_->stop_accepting();
}

void Server::close(std::function<void()> closed) {
  state_->close(std::move(closed));
}

const ServerCounters& Server::counters() const noexcept {
  return state_->counters();
}

}   // namespace duet::http
