// server_counters.hpp: what the HTTP server counts of itself. Any thread.
#pragma once

#include "http/routes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace duet::http {

class ServerCounters {
 public:
  /// The statuses that we send; the last stands for any other.
  static constexpr std::array<unsigned, 20> statuses = {200, 400, 401, 403, 404, 405, 408,
                                                        409, 413, 415, 417, 429, 431, 499,
                                                        500, 501, 503, 504, 505, 0};

  std::atomic<std::uint64_t> connections_accepted = 0;
  std::atomic<std::uint64_t> connections_refused = 0;   ///< above the limit.
  std::atomic<std::uint64_t> connections_open = 0;      ///< gauge
  std::atomic<std::uint64_t> answers_open = 0;          ///< gauge: completions under way.
  std::atomic<std::uint64_t> readers_gone = 0;          ///< went before their answer's end.
  std::atomic<std::uint64_t> readers_too_slow = 0;      ///< dropped.
  std::atomic<std::uint64_t> writes = 0;                ///< that took bytes,
  std::atomic<std::uint64_t> bytes_written = 0;         ///< and how many.

  void count(RouteId route, unsigned status) noexcept {
    const auto* const found = std::find(statuses.begin(), statuses.end() - 1, status);
    const auto column = static_cast<std::size_t>(found - statuses.begin());
    responses_[static_cast<std::size_t>(route)][column].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t responses(RouteId route, std::size_t column) const noexcept {
    return responses_[static_cast<std::size_t>(route)][column].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::array<std::atomic<std::uint64_t>, statuses.size()>, route_count> responses_{};
};

}   // namespace duet::http
