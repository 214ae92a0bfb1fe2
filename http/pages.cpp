// pages.cpp: /v1/models, /health, /ready and KServe's spelling of the last two.
#include "http/pages.hpp"

#include "http/json_text.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace duet::http {

namespace {

using actors::ModelStatus;
using actors::WorkerState;

void append_model(std::string& out, const ModelStatus& model) {
  out += R"({"id":)";
  append_json_repaired(out, model.alias);
  out += R"(,"object":"model","created":)";
  out += std::to_string(
      std::chrono::duration_cast<std::chrono::seconds>(model.created.time_since_epoch()).count());
  out += R"(,"owned_by":"duet","max_model_len":)";
  append_number(out, std::uint64_t{model.context});
  out += '}';
}

// R-10.2: an alias shows only once it has passed everything.
Reply models_page(const std::vector<ModelStatus>& models) {
  Reply reply;
  reply.body = R"({"object":"list","data":[)";
  bool first = true;
  for (const ModelStatus& model : models) {
    if (model.state != WorkerState::ready) continue;
    if (!first) reply.body += ',';
    first = false;
    append_model(reply.body, model);
  }
  reply.body += "]}";
  return reply;
}

Reply model_page(const std::vector<ModelStatus>& models, const std::string& alias) {
  for (const ModelStatus& model : models) {
    if (model.alias != alias || model.state != WorkerState::ready) continue;
    Reply reply;
    append_model(reply.body, model);
    return reply;
  }
  return error_reply(
      to_http_error({actors::errc::model_not_found,
                     "the model '" + bounded_echo(alias) + "' does not exist", "model"}));
}

void append_readiness(std::string& out, const ModelStatus& model, const PageContext& context) {
  out += R"({"model":)";
  append_json_repaired(out, model.alias);
  out += R"(,"ready":)";
  out += model.state == WorkerState::ready && !context.draining ? "true" : "false";
  out += R"(,"state":")";
  out += actors::to_string(model.state);
  out += R"(","reason":)";
  if (model.reason.empty()) {
    out += "null";
  } else {
    append_json_repaired(out, model.reason);
  }
  out += R"(,"seconds_since_progress":)";
  if (model.last_progress == runtime::TimePoint{} || model.last_progress > context.now) {
    out += "null";
  } else {
    const std::chrono::duration<double> age = context.now - model.last_progress;
    append_number(out, age.count());
  }
  out += '}';
}

/// `alias` "" asks for all: ready means that every one is.
Reply ready_page(const std::vector<ModelStatus>& models, const std::string& alias,
                 const PageContext& context) {
  std::string list;
  std::size_t asked = 0;
  std::size_t ready = 0;
  for (const ModelStatus& model : models) {
    if (!alias.empty() && model.alias != alias) continue;
    ++asked;
    if (model.state == WorkerState::ready) ++ready;
    if (!list.empty()) list += ',';
    append_readiness(list, model, context);
  }
  if (asked == 0 && !alias.empty()) return model_page({}, alias);
  const bool all_ready = asked > 0 && ready == asked && !context.draining;
  Reply reply;
  if (!all_ready) {
    HttpError error = make_http_error(
        503, context.draining ? "the server is stopping" : "not every model asked for is ready");
    reply = error_reply(error);
    reply.body.pop_back();   // the error object stays first of more fields
    reply.body += ',';
  } else {
    reply.body = "{";
  }
  reply.body += R"("ready":)";
  reply.body += all_ready ? "true" : "false";
  reply.body += R"(,"draining":)";
  reply.body += context.draining ? "true" : "false";
  reply.body += R"(,"models":[)";
  reply.body += list;
  reply.body += "]}";
  return reply;
}

}   // namespace

Reply make_page(RouteId route, const std::string& parameter, std::string_view query,
                const PageContext& context) {
  Reply reply;
  switch (route) {
    case RouteId::models:
      return models_page(context.service.models());
    case RouteId::model:
      return model_page(context.service.models(), parameter);
    case RouteId::health:
      reply.body = R"({"status":"alive"})";
      return reply;
    case RouteId::ready:
      return ready_page(context.service.models(), query_value(query, "model"), context);
    case RouteId::metrics:
      reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
      reply.body =
          metrics_page(context.service.metrics(), context.service.models(), context.counters);
      return reply;
    case RouteId::kserve_live:
      reply.body = R"({"live":true})";
      return reply;
    case RouteId::kserve_ready:
      return ready_page(context.service.models(), "", context);
    case RouteId::kserve_model_ready:
      return ready_page(context.service.models(), parameter, context);
    case RouteId::not_found:
    case RouteId::chat_completions:
    case RouteId::completions:
    case RouteId::cancel_request:
      break;
  }
  DUET_UNREACHABLE();
}

}   // namespace duet::http
