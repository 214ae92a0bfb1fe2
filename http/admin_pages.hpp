// admin_pages.hpp: the pages of the administration socket beside the actor tree. They show chips,
// which the public endpoint never does.
#pragma once

#include "actors/administration.hpp"
#include "actors/service.hpp"
#include "http/server_counters.hpp"
#include "runtime/clock.hpp"
#include "runtime/inspect/server.hpp"

#include <boost/json/value.hpp>

#include <vector>

namespace duet::http {

/// Everything it refers to outlives the pages and the answers under way.
struct AdminContext {
  actors::Service& service;
  actors::Administration& administration;
  const ServerCounters& counters;
  const runtime::Clock& clock;
};

/// GET /models (state, chip, requests, jobs, sequences of each model), GET /trace (takes what the
/// chips recorded, with the overlap of two chips' compute time), GET /metrics (as the public one),
/// DELETE /requests/ID (cancels whoever's it is). Else 404 or 405 with an error object.
[[nodiscard]] runtime::inspect::HostPages admin_pages(AdminContext context);

/// {"chips": [{"chip", "model", "error", "dropped", "events": [{"kind", "graph", "engine",
/// "session", "generation", "job", "begin_ns", "end_ns"}]}], "overlap": {"first_busy_ns",
/// "second_busy_ns", "both_busy_ns", "ratio"} or null}. Times are chip time.
[[nodiscard]] boost::json::value trace_json(const std::vector<actors::ChipTrace>& traces);

}   // namespace duet::http
