// admin_pages.hpp: the pages of the administration socket beside the actor tree. They show chips,
// which the public endpoint never does.
#pragma once

#include "actors/administration.hpp"
#include "actors/service.hpp"
#include "http/server_counters.hpp"
#include "runtime/clock.hpp"
#include "runtime/inspect/server.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace duet::http {

/// Of this process, in bytes; null where the system does not tell.
struct HostMemory {
  std::optional<std::uint64_t> resident;
  std::optional<std::uint64_t> resident_peak;
};

/// Everything it refers to outlives the pages and the answers under way.
struct AdminContext {
  actors::Service& service;
  actors::Administration& administration;
  const ServerCounters& counters;
  const runtime::Clock& clock;
  std::function<HostMemory()> host_memory;   ///< any thread may call it.
};

/// GET /models (state, chip, requests, jobs, sequences of each model), GET /trace (takes what the
/// chips recorded, with the overlap of two chips' compute time), GET /memory (what the chips hold
/// beside what their package planned), GET /metrics (as the public one), DELETE /requests/ID
/// (cancels whoever's it is). Else 404 or 405 with an error object.
[[nodiscard]] runtime::inspect::HostPages admin_pages(AdminContext context);

/// {"chips": [{"chip", "model", "error", "dropped", "events": [{"kind", "graph", "engine",
/// "session", "generation", "job", "begin_ns", "end_ns"}]}], "overlap": {"first_busy_ns",
/// "second_busy_ns", "both_busy_ns", "ratio"} or null}. Times are chip time.
[[nodiscard]] boost::json::value trace_json(const std::vector<actors::ChipTrace>& traces);

/// {"host": {"resident", "resident_peak"}, "chips": [{"chip", "model", "error", "context",
/// "verdict", "reason", "dram": {"planned", "measured"}, "used": {"planned", "measured"}, "lines":
/// [{"what", "planned", "measured", "peak"}], "kv_slots": {"planned", "measured", "used", "peak",
/// "booked"}}]}. Bytes but for the slots. Planned is what the package says, used without gaps and
/// guard; measured and peak come from the board's runtime, null where it cannot tell; booked are
/// the slots that the server itself has given out, null for a model that `metrics` lacks.
[[nodiscard]] boost::json::value memory_json(const std::vector<actors::ChipMemory>& chips,
                                             const std::vector<actors::ModelMetrics>& metrics,
                                             const HostMemory& host);

}   // namespace duet::http
