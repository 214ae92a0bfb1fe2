// server.hpp: the HTTP front end of a service.
//
// Threads: connections are accepted and heads are read on the reserved executor, and everything
// that needs no actor is answered there (health, readiness, metrics, models, cancelling, refusals).
// A completion's connection goes over to the main executor when its head is there: body, JSON,
// service and writing run there, next to the actors, so that a token is written without waking
// another thread. After the answer the connection goes back. So health and metrics answer while
// main is busy, on the same port and even on the same connection.
#pragma once

#include "actors/service.hpp"
#include "http/request_record.hpp"
#include "http/server_counters.hpp"
#include "http/server_options.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/system/result.hpp>
#include <boost/throw_exception.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace duet::http {

/// Everything it refers to outlives the server. The executors may be of several threads each, and
/// may be the same (then nothing is reserved).
struct ServerContext {
  boost::asio::any_io_executor executor;            ///< the actors' one.
  boost::asio::any_io_executor reserved_executor;   ///< of a thread that does nothing else.
  runtime::Clock& clock;
  runtime::Random& random;
  actors::Service& service;
  boost::asio::any_io_executor compute_executor = {};   ///< parses large bodies; empty: main does.
  std::function<void(const RequestRecord&)> log = {};   ///< on any thread; may be empty.
};

struct ListenError {
  std::string message;   ///< one sentence with the address.
};
[[noreturn]] inline void throw_exception_from_error(const ListenError& error,
                                                    const boost::source_location& where) {
  boost::throw_exception(std::runtime_error(error.message), where);
}

class Server {
 public:
  /// Throws std::invalid_argument, see check().
  Server(ServerOptions options, ServerContext context);
  /// After close() has called back; before listen() at any time.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Once. Returns the TCP port (0 without TCP); from then on clients are served.
  [[nodiscard]] boost::system::result<std::uint16_t, ListenError> listen();

  // Each from any thread; what they are given is called on the reserved executor.

  /// Readiness becomes 503 and new completions are refused; answers go on. Connections end when
  /// they rest. `answers_done` is called when no completion is under way.
  void drain(std::function<void()> answers_done);
  void stop_accepting();
  /// Stops accepting and ends every connection at once. `closed` is called when all are gone.
  void close(std::function<void()> closed);

  [[nodiscard]] const ServerCounters& counters() const noexcept;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}   // namespace duet::http
