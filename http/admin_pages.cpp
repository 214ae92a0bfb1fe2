// admin_pages.cpp: values of the application as JSON for an operator.
#include "http/admin_pages.hpp"

#include "device/contract/device.hpp"
#include "device/contract/overlap.hpp"
#include "http/pages.hpp"
#include "runtime/inspect/answer.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace duet::http {

namespace {

namespace json = boost::json;
namespace inspect = runtime::inspect;
using boost::beast::http::status;
using boost::beast::http::verb;
using Done = std::function<void(inspect::Response)>;

constexpr std::string_view request_prefix = "/requests/";

json::value seconds_since(runtime::TimePoint then, runtime::TimePoint now) {
  if (then == runtime::TimePoint{} || then > now) return nullptr;
  return std::chrono::duration<double>(now - then).count();
}

json::object model_json(const actors::ModelStatus& model, const actors::ModelMetrics& metrics,
                        runtime::TimePoint now) {
  json::object object;
  object["model"] = model.alias;
  object["chip"] = model.chip;
  object["state"] = actors::to_string(model.state);
  object["reason"] = model.reason.empty() ? json::value(nullptr) : json::value(model.reason);
  object["context"] = model.context;
  object["seconds_since_progress"] = seconds_since(model.last_progress, now);
  object["requests"] = {
      {"accepted", metrics.requests_accepted}, {"finished", metrics.requests_finished},
      {"failed", metrics.requests_failed},     {"aborted", metrics.requests_aborted},
      {"refused", metrics.requests_refused},   {"running", metrics.requests_running},
      {"waiting", metrics.requests_waiting}};
  object["jobs"] = {{"submitted", metrics.jobs_submitted},
                    {"done", metrics.jobs_done},
                    {"failed", metrics.jobs_failed},
                    {"stale", metrics.completions_stale}};
  object["sequences"] = metrics.sequences_active;
  object["kv_slots"] = {{"used", metrics.kv_slots_used}, {"total", metrics.kv_slots_total}};
  object["tokens"] = {{"prompt", metrics.prompt_tokens}, {"generated", metrics.generation_tokens}};
  return object;
}

json::value models_json(const AdminContext& context) {
  const std::vector<actors::ModelStatus> models = context.service.models();
  const std::vector<actors::ModelMetrics> metrics = context.service.metrics();
  json::array list;
  for (std::size_t i = 0; i < models.size() && i < metrics.size(); ++i) {
    list.push_back(model_json(models[i], metrics[i], context.clock.now()));
  }
  return json::object{{"models", std::move(list)}};
}

const char* word(device::TraceKind kind) {
  switch (kind) {
    case device::TraceKind::queue:
      return "queue";
    case device::TraceKind::h2d:
      return "h2d";
    case device::TraceKind::compute:
      return "compute";
    case device::TraceKind::d2h:
      return "d2h";
  }
  return "other";
}

json::object event_json(const device::TraceEvent& event) {
  return {{"kind", word(event.kind)},
          {"graph", device::to_string(event.graph)},
          {"engine", device::to_string(event.engine)},
          {"session", event.session},
          {"generation", event.generation},
          {"job", event.job},
          {"begin_ns", event.begin},
          {"end_ns", event.end}};
}

void cancel(const AdminContext& context, const inspect::Request& request, std::string id,
            Done done) {
  auto answer = [request, done = std::move(done)](actors::CancelResult result) {
    if (result == actors::CancelResult::cancelled) {
      done(inspect::json_response(request, status::ok, json::object{{"cancelled", true}}));
    } else {
      done(inspect::error_response(request, status::not_found, "no request of this id is running"));
    }
  };
  context.service.cancel(id, "", true, std::move(answer));
}

inspect::Response wrong_method(const inspect::Request& request, const char* allow) {
  inspect::Response response =
      inspect::error_response(request, status::method_not_allowed, std::string("only ") + allow);
  response.set(boost::beast::http::field::allow, allow);
  return response;
}

json::value number_or_null(const std::optional<std::uint64_t>& number) {
  return number ? json::value(*number) : json::value(nullptr);
}

/// The package's lines in their order, then what the board has beyond them.
json::array memory_lines_json(const actors::ChipMemory& chip) {
  std::vector<device::MemoryPart> unplanned = chip.measured.parts;
  json::array lines;
  for (const device::MemoryLine& line : chip.planned.lines) {
    json::object object{
        {"what", line.what}, {"planned", line.bytes}, {"measured", nullptr}, {"peak", nullptr}};
    const auto part =
        std::find_if(unplanned.begin(), unplanned.end(),
                     [&](const device::MemoryPart& each) { return each.what == line.what; });
    if (part != unplanned.end()) {
      object["measured"] = part->bytes;
      object["peak"] = number_or_null(part->peak_bytes);
      unplanned.erase(part);
    }
    lines.push_back(std::move(object));
  }
  for (const device::MemoryPart& part : unplanned) {
    lines.push_back(json::object{{"what", part.what},
                                 {"planned", 0},
                                 {"measured", part.bytes},
                                 {"peak", number_or_null(part.peak_bytes)}});
  }
  return lines;
}

json::object chip_memory_json(const actors::ChipMemory& chip,
                              const std::vector<actors::ModelMetrics>& metrics) {
  // Gaps between sections are nothing that a runtime allocates.
  std::uint64_t planned = chip.planned.used;
  for (const device::MemoryLine& line : chip.planned.lines) {
    if (line.what == "fragmentation") planned -= std::min(planned, line.bytes);
  }
  json::value booked = nullptr;
  for (const actors::ModelMetrics& model : metrics) {
    if (model.alias == chip.alias) booked = model.kv_slots_used;
  }
  const device::MemoryUsage& measured = chip.measured;
  return {{"chip", chip.chip},
          {"model", chip.alias},
          {"error", chip.error.empty() ? json::value(nullptr) : json::value(chip.error)},
          {"context", chip.context},
          {"verdict", device::to_string(chip.planned.verdict)},
          {"reason", chip.planned.reason},
          {"dram",
           {{"planned", chip.planned.dram}, {"measured", number_or_null(measured.total_bytes)}}},
          {"used", {{"planned", planned}, {"measured", number_or_null(measured.used_bytes)}}},
          {"lines", memory_lines_json(chip)},
          {"kv_slots",
           {{"planned", chip.kv_slots},
            {"measured", number_or_null(measured.kv_slots_total)},
            {"used", number_or_null(measured.kv_slots_used)},
            {"peak", number_or_null(measured.kv_slots_peak)},
            {"booked", std::move(booked)}}}};
}

void memory(const AdminContext& context, const inspect::Request& request, Done done) {
  const auto show = [context, request,
                     done = std::move(done)](const std::vector<actors::ChipMemory>& chips) {
    if (chips.empty()) {
      done(inspect::error_response(request, status::service_unavailable, "the server is stopping"));
      return;
    }
    done(inspect::json_response(
        request, status::ok, memory_json(chips, context.service.metrics(), context.host_memory())));
  };
  context.administration.measure_memory(show);
}

void answer(const AdminContext& context, const inspect::Request& request, Done done) {
  const std::string_view target(request.target().data(), request.target().size());
  if (target.starts_with(request_prefix)) {
    if (request.method() != verb::delete_) return done(wrong_method(request, "DELETE"));
    return cancel(context, request, std::string(target.substr(request_prefix.size())),
                  std::move(done));
  }
  if (target != "/models" && target != "/trace" && target != "/memory" && target != "/metrics") {
    return done(inspect::error_response(
        request, status::not_found,
        "try /actors, /counters, /types, /models, /trace, /memory, /metrics or "
        "DELETE /requests/ID"));
  }
  const bool head = request.method() == verb::head;
  // A trace is taken by whoever reads it, so HEAD would lose it.
  if (request.method() != verb::get && !(head && target != "/trace")) {
    return done(wrong_method(request, target == "/trace" ? "GET" : "GET, HEAD"));
  }
  if (target == "/models") {
    return done(inspect::json_response(request, status::ok, models_json(context)));
  }
  if (target == "/memory") return memory(context, request, std::move(done));
  if (target == "/metrics") {
    return done(inspect::text_response(
        request, status::ok, "text/plain; version=0.0.4; charset=utf-8",
        metrics_page(context.service.metrics(), context.service.models(), context.counters)));
  }
  context.administration.take_traces([request, done = std::move(done)](
                                         const std::vector<actors::ChipTrace>& traces) {
    if (traces.empty()) {
      done(inspect::error_response(request, status::service_unavailable, "the server is stopping"));
    } else {
      done(inspect::json_response(request, status::ok, trace_json(traces)));
    }
  });
}

}   // namespace

json::value trace_json(const std::vector<actors::ChipTrace>& traces) {
  json::array chips;
  for (const actors::ChipTrace& trace : traces) {
    json::object chip;
    chip["chip"] = trace.chip;
    chip["model"] = trace.alias;
    chip["error"] = trace.error.empty() ? json::value(nullptr) : json::value(trace.error);
    chip["dropped"] = trace.trace.dropped;
    json::array events;
    events.reserve(trace.trace.events.size());
    for (const device::TraceEvent& event : trace.trace.events) events.push_back(event_json(event));
    chip["events"] = std::move(events);
    chips.push_back(std::move(chip));
  }
  json::object object;
  object["chips"] = std::move(chips);
  object["overlap"] = nullptr;
  if (traces.size() == 2 && traces[0].chip != traces[1].chip) {
    std::vector<device::TraceEvent> all = traces[0].trace.events;
    all.insert(all.end(), traces[1].trace.events.begin(), traces[1].trace.events.end());
    const device::Overlap overlap = device::compute_overlap(all, traces[0].chip, traces[1].chip);
    object["overlap"] = {{"first_busy_ns", overlap.first_busy},
                         {"second_busy_ns", overlap.second_busy},
                         {"both_busy_ns", overlap.both_busy},
                         {"ratio", overlap.ratio}};
  }
  return object;
}

json::value memory_json(const std::vector<actors::ChipMemory>& chips,
                        const std::vector<actors::ModelMetrics>& metrics, const HostMemory& host) {
  json::array list;
  for (const actors::ChipMemory& chip : chips) list.push_back(chip_memory_json(chip, metrics));
  return json::object{{"host",
                       {{"resident", number_or_null(host.resident)},
                        {"resident_peak", number_or_null(host.resident_peak)}}},
                      {"chips", std::move(list)}};
}

inspect::HostPages admin_pages(AdminContext context) {
  return [context](const inspect::Request& request, Done done) {
    answer(context, request, std::move(done));
  };
}

}   // namespace duet::http
