// listen_address.hpp: the address to listen on, as the options spell it.
#pragma once

#include <string>

namespace duet::http {

struct ListenAddress {
  bool valid = false;
  bool loopback = false;
  std::string ip;   ///< "localhost" has become 127.0.0.1.
};

/// An IPv4 or IPv6 address, or "localhost". No other name: a server must not depend on a resolver
/// to know whether it is open to the world.
[[nodiscard]] ListenAddress parse_listen_address(const std::string& text);

}   // namespace duet::http
