// pages.hpp: the answers that come from published values alone: models, health, readiness, metrics.
// Nothing here waits for an actor, so they can be made while every other thread is busy.
#pragma once

#include "actors/service.hpp"
#include "http/response_head.hpp"
#include "http/routes.hpp"
#include "http/server_counters.hpp"

#include <span>
#include <string>
#include <string_view>

namespace duet::http {

struct PageContext {
  const actors::Service& service;
  const ServerCounters& counters;
  runtime::TimePoint now;
  bool draining = false;
};

/// The route is one of GET; `parameter` and `query` are the request's.
[[nodiscard]] Reply make_page(RouteId route, const std::string& parameter, std::string_view query,
                              const PageContext& context);

/// Prometheus text format 0.0.4. `vllm:` names where the meaning is the same, with `engine` = the
/// model's index; everything else as `duet_`. Labels are aliases, routes and statuses: never ids of
/// requests, never chips.
[[nodiscard]] std::string metrics_page(std::span<const actors::ModelMetrics> models,
                                       std::span<const actors::ModelStatus> statuses,
                                       const ServerCounters& counters);

}   // namespace duet::http
