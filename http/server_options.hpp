// server_options.hpp: what config/ fills in for the HTTP server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duet::http {

/// A client's key, sent as `Authorization: Bearer SECRET`. The name goes to logs, the secret
/// nowhere.
struct ApiKey {
  std::string name;
  std::string secret;
  bool admin = false;   ///< may cancel everybody's requests.
};

struct ServerLimits {
  std::size_t body_bytes = 8U << 20U;
  std::size_t header_bytes = 16U << 10U;   ///< request line and fields; trailers again as much.
  std::uint32_t nesting_depth = 32;        ///< of a JSON body.
  std::uint32_t connections = 10000;       ///< further ones get 503 and are closed.
  std::chrono::milliseconds keep_alive_idle{75000};
  std::chrono::milliseconds header_deadline{10000};   ///< from the first byte of a request.
  std::chrono::milliseconds body_deadline{60000};     ///< from the end of the header.
  std::size_t stream_high_bytes = 64U << 10U;     ///< unsent bytes of an answer: its request parks,
  std::size_t stream_low_bytes = 16U << 10U;      ///< and goes on.
  std::chrono::milliseconds slow_reader{30000};   ///< a full socket for so long ends the answer.
  std::chrono::milliseconds ping_interval{15000};   ///< a silent stream gets a comment.
  std::chrono::milliseconds linger{2000};           ///< after a last answer with unread input.
  std::uint32_t socket_send_bytes = 64U << 10U;     ///< what the kernel buffers a connection.
};

struct ServerOptions {
  std::string address = "127.0.0.1";   ///< "" = no TCP; "localhost" is 127.0.0.1.
  std::uint16_t port = 8000;           ///< 0 = the system chooses.
  std::string unix_socket;             ///< path; "" = none.
  std::vector<ApiKey> keys;            ///< none: everybody who can connect may ask.
  bool allow_anonymous = false;        ///< an address that is not loopback without keys.
  ServerLimits limits;
};

/// Throws std::invalid_argument with one sentence that names the option: an address that is none,
/// one that is not loopback without keys, an empty or repeated key, marks out of order.
void check(const ServerOptions& options);

}   // namespace duet::http
