// server.hpp: inspection over HTTP on a Unix socket.
#pragma once

#include "runtime/inspect/answer.hpp"
#include "runtime/system.hpp"
#include "runtime/time.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace duet::runtime::inspect {

/// Pages of the host beside inspection's own: called on the server's strand with a request that
/// is_inspection() denies; calls `done` exactly once, now or later, on any thread.
using HostPages = std::function<void(const Request& request, std::function<void(Response)> done)>;

struct ServerOptions {
  std::string path;                    ///< of the socket; made with mode 0600
  std::vector<uid_t> allowed_uids;     ///< beside the process's own user and root
  std::uint32_t connections_max = 8;   ///< more are closed at once
  std::uint32_t requests_max = 1000;   ///< of one connection
  std::uint32_t header_bytes_max = 4096;
  Duration idle_max = std::chrono::seconds(10);   ///< for one request and its answer
  HostPages pages;                                ///< empty: there are none
};

/// Serves what answer() gives: `curl --unix-socket PATH http://localhost/actors`. Requests have no
/// body. A peer whose user is not allowed is disconnected unanswered.
///
/// Thread: its own strand of the executor. Lifetime: destroying it closes the socket and the
/// connections at the strand's next turn; the system must live until then. The context may go
/// first.
class Server {
 public:
  /// Throws boost::system::system_error if the path cannot be bound. A socket file that nobody
  /// listens on is replaced.
  Server(const boost::asio::any_io_executor& executor, const System& system, ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

 private:
  struct Shared;
  std::weak_ptr<Shared> shared_;   // owned by the coroutines, so that it ends with their context
  std::string path_;
};

}   // namespace duet::runtime::inspect
