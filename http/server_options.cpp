// server_options.cpp: what a server refuses to start with.
#include "http/server_options.hpp"

#include "http/listen_address.hpp"

#include <stdexcept>

namespace duet::http {

namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw std::invalid_argument(sentence);
}

void check_keys(const ServerOptions& options) {
  for (std::size_t i = 0; i < options.keys.size(); ++i) {
    const ApiKey& key = options.keys[i];
    if (key.name.empty()) refuse("http: key " + std::to_string(i) + " has no name");
    if (key.secret.empty()) refuse("http: the key '" + key.name + "' has an empty secret");
    for (std::size_t k = 0; k < i; ++k) {
      if (options.keys[k].name == key.name) refuse("http: two keys are named '" + key.name + "'");
      if (options.keys[k].secret == key.secret)
        refuse("http: the keys '" + options.keys[k].name + "' and '" + key.name +
               "' have the same secret");
    }
  }
}

void check_limits(const ServerLimits& limits) {
  if (limits.stream_low_bytes >= limits.stream_high_bytes)
    refuse("http: limits.stream_low_bytes must be below limits.stream_high_bytes");
  if (limits.body_bytes == 0 || limits.header_bytes < 512)
    refuse("http: limits.body_bytes must not be 0 and limits.header_bytes not below 512");
  if (limits.header_bytes > (1U << 20U))
    refuse("http: limits.header_bytes must not be above 1 MiB");
  if (limits.nesting_depth < 4)
    refuse("http: limits.nesting_depth must be at least 4, or no request would fit");
  if (limits.connections == 0) refuse("http: limits.connections must not be 0");
}

}   // namespace

void check(const ServerOptions& options) {
  if (options.address.empty() && options.unix_socket.empty())
    refuse("http: neither address nor unix_socket is given");
  check_keys(options);
  check_limits(options.limits);
  if (options.address.empty()) return;
  const ListenAddress address = parse_listen_address(options.address);
  if (!address.valid) refuse("http: '" + options.address + "' is not an IP address");
  if (!address.loopback && options.keys.empty() && !options.allow_anonymous) {
    refuse("http: address '" + options.address +
           "' is not loopback and there are no keys; set keys, a loopback address, or "
           "allow_anonymous");
  }
}

}   // namespace duet::http
