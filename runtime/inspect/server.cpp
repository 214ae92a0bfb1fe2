// server.cpp: accepts, checks who it is, answers.
#include "runtime/inspect/server.hpp"

#include "runtime/inspect/answer.hpp"
#include "runtime/real_clock.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
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

/// An actor that has not come to it by then is stuck or overloaded, and a person waits.
constexpr Duration actor_patience = std::chrono::milliseconds(250);

constexpr std::size_t buffer_bytes = 64 * 1024;   // bounds header_bytes_max; a connection has one

/// What a client that sent this is told; unknown if it has gone or sent nothing.
http::status status_of(const boost::system::error_code& error) noexcept {
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    return http::status::unknown;
  if (error == http::error::header_limit) return http::status::request_header_fields_too_large;
  if (error == http::error::body_limit || error == http::error::unexpected_body)
    return http::status::payload_too_large;
  if (error.category() == http::make_error_code(http::error::bad_method).category())
    return http::status::bad_request;
  return http::status::unknown;
}

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

  class Answering;
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

  [[nodiscard]] asio::awaitable<Response> respond(const Request& request) const;
  static asio::awaitable<void> accept_loop(std::shared_ptr<Shared> shared);
  static asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  void close() noexcept;
  /// Closes the waiting peer, for which there is no descriptor: else accepting would fail again at
  /// once, for ever. False: even that is impossible.
  [[nodiscard]] bool shed() noexcept;

  const asio::any_io_executor strand;
  const System& system;
  const ServerOptions options;
  mutable RealClock clock;
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

/// One answer on its way. The coroutine that waits owns it; who answers, on any thread, may come
/// late or never, so he knows it weakly.
class Server::Shared::Answering final : public Timer,
                                        public std::enable_shared_from_this<Answering> {
 public:
  Answering(const Shared& owner, const Request& request)
      : shared_(owner), request_(request), answers_(owner.strand, 1) {}
  ~Answering() override = default;

  /// The first counts: nobody takes a second one.
  void answer(Response response) {
    answers_.try_send(boost::system::error_code(), std::move(response));
  }
  [[nodiscard]] auto async_answer() { return answers_.async_receive(asio::use_awaitable); }

  /// Until disarmed: after a while the answer without what the actor says.
  void limit_time() {
    held_ = shared_from_this();
    shared_.clock.arm(*this, shared_.clock.now() + actor_patience);
  }
  void expired() noexcept override {
    const auto self = std::move(held_);
    answer(inspect::answer(shared_.system, request_));
  }
  class Disarm {
   public:
    explicit Disarm(Answering& answering) noexcept : answering_(answering) {}
    ~Disarm() {
      if (answering_.shared_.clock.cancel(answering_)) answering_.held_.reset();
    }
    Disarm(const Disarm&) = delete;
    Disarm& operator=(const Disarm&) = delete;

   private:
    Answering& answering_;
  };

 private:
  using Answers = asio::experimental::concurrent_channel<void(boost::system::error_code, Response)>;
  const Shared& shared_;
  const Request request_;
  Answers answers_;
  std::shared_ptr<Answering> held_;   // while the timer is armed
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

asio::awaitable<Response> Server::Shared::respond(const Request& request) const {
  const auto answering = std::make_shared<Answering>(*this, request);
  const Answering::Disarm disarm(*answering);
  auto done = [weak = std::weak_ptr(answering)](Response response) {
    if (const auto waiting = weak.lock()) waiting->answer(std::move(response));
  };
  if (options.pages && !is_inspection(request)) {
    options.pages(request, std::move(done));
  } else {
    answering->limit_time();
    answer_later(system, request, std::move(done));
  }
  co_return co_await answering->async_answer();
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
      const http::status status = status_of(read_error);
      if (status != http::status::unknown) {
        Response refused = error_response(parser.get(), status, read_error.message());
        refused.keep_alive(false);
        co_await http::async_write(connection->socket, refused, token);
      }
      connection->unlimit_time();
      co_return;
    }
    const Request& request = parser.get();
    const Response response = co_await connection->shared->respond(request);
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
