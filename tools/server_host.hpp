// server_host.hpp: everything that a server runs: board, actors, HTTP, administration, log; made in
// order and taken apart in the reverse one.
#pragma once

#include "config/config.hpp"
#include "device/package/package.hpp"
#include "device/package/validator.hpp"

#include <memory>
#include <string>

namespace duet::tools {

class ServerHost {
 public:
  /// The package is the configuration's, validated and cross-checked. Throws std::exception with
  /// what cannot be made: log file, board, administration socket.
  ServerHost(config::Config config, std::shared_ptr<const device::Package> package);
  ~ServerHost();
  ServerHost(const ServerHost&) = delete;
  ServerHost& operator=(const ServerHost&) = delete;

  /// Serves until SIGTERM or SIGINT, drains, and returns the exit code. `port_file` gets the port
  /// once clients are served; "" = none. Once.
  int run(const std::string& port_file);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// writes the record `package_refused` for a package that is not served because of errors:
/// what its signature is worth, by whom, and the code of each error. A log that cannot be opened is
/// told on standard error.
void log_refusal(const config::Config& config, const device::ValidationReport& report);

}   // namespace duet::tools
