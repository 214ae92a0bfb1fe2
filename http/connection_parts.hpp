// connection_parts.hpp: what connection.cpp and connection_requests.cpp share.
#pragma once

#include "http/connection.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace duet::http {

/// A body that is parsed elsewhere. `result` is written before `done`.
struct Connection::Parsing {
  Parsing(ApiKind api, std::string bytes, std::vector<std::string> names, std::uint32_t depth)
      : kind(api), body(std::move(bytes)), aliases(std::move(names)), depth_max(depth) {}

  void parse() { result.emplace(parse_openai_request(kind, body, aliases, depth_max)); }

  const ApiKind kind;
  std::string body;
  const std::vector<std::string> aliases;
  const std::uint32_t depth_max;
  std::optional<RequestResult<OpenAiRequest>> result;
  std::atomic<bool> done = false;
};

class Connection::DeadlineTimer final : public runtime::Timer {
 public:
  explicit DeadlineTimer(Connection& connection) : connection_(connection) {}
  void expired() noexcept override {
    // As soon as the mark can be seen, a closed connection may let go of itself.
    const std::shared_ptr<Connection> kept = connection_.shared_from_this();
    connection_.timer_fired_.store(true, std::memory_order_release);
    connection_.wake();
  }

 private:
  Connection& connection_;
};

}   // namespace duet::http
