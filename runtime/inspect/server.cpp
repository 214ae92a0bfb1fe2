// server.cpp: accepts, checks who it is, answers.
#include "runtime/inspect/server.hpp"

#include "runtime/inspect/answer.hpp"
#include "runtime/real_clock.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_static_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace duet::runtime::inspect {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Protocol = asio::local::stream_protocol;
using Socket = Protocol::socket;
using Acceptor = Protocol::acceptor;

constexpr std::size_t buffer_bytes = 64 * 1024;   // bounds header_bytes_max; a connection has one

/// Removes a socket file that a process left behind; one that is listened on is kept.
void remove_stale(const asio::any_io_executor& strand, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  Socket probe(strand);
  boost::system::error_code error;
  probe.open(Protocol(), error);
  if (!error) probe.non_blocking(true, error);   // a full backlog must not hold us up
  if (!error) probe.connect(Protocol::endpoint(path), error);
  if (error == boost::system::errc::connection_refused) ::unlink(path.c_str());
}

}   // namespace

struct Server::Shared : std::enable_shared_from_this<Shared> {
  Shared(const asio::any_io_executor& executor, const System& observed, ServerOptions chosen)
      : strand(asio::make_strand(executor)),
        system(observed),
        options(std::move(chosen)),
        clock(executor),
        acceptor(strand) {}
  ~Shared() {
    if (spare >= 0) ::close(spare);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  class Connection;

  [[nodiscard]] bool allowed(Socket& socket) const {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      return false;
    }
    return peer.uid == ::geteuid() || peer.uid == 0 ||
           std::find(options.allowed_uids.begin(), options.allowed_uids.end(), peer.uid) !=
               options.allowed_uids.end();
  }

  [[nodiscard]] asio::awaitable<Response> ask_host(const Request& request) const;
  static asio::awaitable<void> accept_loop(std::shared_ptr<Shared> shared);
  static asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  void close() noexcept;
  /// Closes the waiting peer, for which there is no descriptor: else accepting would fail again at
  /// once, for ever. False: even that is impossible.
  [[nodiscard]] bool shed() noexcept;

  const asio::any_io_executor strand;
  const System& system;
  const ServerOptions options;
  RealClock clock;
  Acceptor acceptor;
  std::vector<Connection*> connections;                    // of the strand
  int spare = ::open("/dev/null", O_RDONLY | O_CLOEXEC);   // given up for a moment by shed()
};

/// The timer holds the connection while it is armed or being called.
class Server::Shared::Connection final : public Timer,
                                         public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Shared> owner, Socket accepted)
      : shared(std::move(owner)), socket(std::move(accepted)) {
    shared->connections.push_back(this);
  }
  ~Connection() override { std::erase(shared->connections, this); }

  void limit_time() {
    held_ = shared_from_this();
    shared->clock.arm(*this, shared->clock.now() + shared->options.idle_max);
  }
  void unlimit_time() noexcept {
    if (shared->clock.cancel(*this)) held_.reset();
  }
  void close() noexcept {
    boost::system::error_code ignored;
    socket.close(ignored);
  }
  void expired() noexcept override {
    asio::post(shared->strand, [self = std::move(held_)] { self->close(); });
  }

  /// An armed timer holds its connection: whoever destroys the coroutine, a context's end for
  /// instance, must not leave the two alone with each other.
  class Disarm {
   public:
    explicit Disarm(Connection& connection) noexcept : connection_(connection) {}
    ~Disarm() { connection_.unlimit_time(); }
    Disarm(const Disarm&) = delete;
    Disarm& operator=(const Disarm&) = delete;

   private:
    Connection& connection_;
  };

  const std::shared_ptr<Shared> shared;
  Socket socket;
  boost::beast::flat_static_buffer<buffer_bytes> buffer;

 private:
  std::shared_ptr<Connection> held_;
};

bool Server::Shared::shed() noexcept {
  if (spare >= 0) ::close(spare);
  const int peer =
      ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (peer >= 0) ::close(peer);
  spare = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return spare >= 0;
}

void Server::Shared::close() noexcept {
  boost::system::error_code ignored;
  acceptor.close(ignored);
  for (Connection* const connection : connections) connection->close();
}

asio::awaitable<Response> Server::Shared::ask_host(const Request& request) const {
  auto start = [&](auto handler) {
    // The host's callback may be copied; a handler may not.
    auto waiting = std::make_shared<decltype(handler)>(std::move(handler));
    options.pages(request, [waiting](Response response) {
      const auto executor = asio::get_associated_executor(*waiting);
      asio::post(executor, [waiting, response = std::move(response)]() mutable {
        std::move (*waiting)(std::move(response));
      });
    });
  };
  using Token = const asio::use_awaitable_t<>;
  co_return co_await asio::async_initiate<Token, void(Response)>(start, asio::use_awaitable);
}

asio::awaitable<void> Server::Shared::serve(std::shared_ptr<Connection> connection) {
  const Connection::Disarm disarm(*connection);
  const auto token = asio::as_tuple(asio::use_awaitable);
  const ServerOptions& options = connection->shared->options;
  for (std::uint32_t i = 0; i < options.requests_max; ++i) {
    http::request_parser<http::empty_body> parser;
    parser.header_limit(options.header_bytes_max);
    parser.body_limit(0);
    connection->limit_time();
    const auto [read_error, read] =
        co_await http::async_read(connection->socket, connection->buffer, parser, token);
    if (read_error) {
      connection->unlimit_time();
      co_return;
    }
    const Request& request = parser.get();
    Response response;
    if (options.pages && !is_inspection(request)) {
      response = co_await connection->shared->ask_host(request);
    } else {
      response = answer(connection->shared->system, request);
    }
    const auto [write_error, written] =
        co_await http::async_write(connection->socket, response, token);
    connection->unlimit_time();
    if (write_error || !response.keep_alive()) co_return;
  }
}

asio::awaitable<void> Server::Shared::accept_loop(std::shared_ptr<Shared> shared) {
  const auto token = asio::as_tuple(asio::use_awaitable);
  while (shared->acceptor.is_open()) {
    auto [error, socket] = co_await shared->acceptor.async_accept(token);
    if (error == asio::error::operation_aborted) co_return;
    if (error == asio::error::no_descriptors && !shared->shed()) co_return;
    if (error || shared->connections.size() >= shared->options.connections_max) continue;
    if (!shared->allowed(socket)) continue;
    auto connection = std::make_shared<Connection>(shared, std::move(socket));
    asio::co_spawn(shared->strand, serve(std::move(connection)), asio::detached);
  }
}

Server::Server(const asio::any_io_executor& executor, const System& system, ServerOptions options)
    : path_(options.path) {
  options.header_bytes_max = std::min<std::uint32_t>(options.header_bytes_max, buffer_bytes);
  const auto shared = std::make_shared<Shared>(executor, system, std::move(options));
  remove_stale(shared->strand, path_);
  shared->acceptor.open(Protocol());
  // Bound with no rights for others: connecting needs write permission.
  const mode_t before = ::umask(0177);
  boost::system::error_code error;
  shared->acceptor.bind(Protocol::endpoint(path_), error);
  ::umask(before);
  if (error) throw boost::system::system_error(error, "cannot bind " + path_);
  shared->acceptor.listen();
  shared_ = shared;
  asio::co_spawn(shared->strand, Shared::accept_loop(shared), asio::detached);
}

Server::~Server() {
  const auto shared = shared_.lock();
  if (shared == nullptr) return;
  ::unlink(path_.c_str());
  asio::post(shared->strand, [shared] { shared->close(); });
}

}   // namespace duet::runtime::inspect
