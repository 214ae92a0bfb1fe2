// router.cpp: sends each request to its worker.
#include "actors/router.hpp"

#include "actors/limits.hpp"

#include <algorithm>
#include <utility>

namespace duet::actors {

namespace {

std::string no_such_model(const std::string& alias) {
  constexpr std::size_t echo_max = 64;
  std::string text = "there is no model '";
  text.append(alias, 0, echo_max);
  text += alias.size() <= echo_max ? "'" : "...'";
  return text;
}

}   // namespace

Router::Router(std::vector<Route> routes, std::function<void(const RequestRecord&)> log)
    : log_(std::move(log)) {
  for (Route& route : routes)
    targets_.push_back({std::move(route), nullptr, WorkerState::unloaded});
}

Router::Target* Router::find(const std::string& alias) {
  const auto found = std::find_if(targets_.begin(), targets_.end(), [&](const Target& target) {
    return target.route.alias == alias;
  });
  return found == targets_.end() ? nullptr : &*found;
}

void Router::on(SubmitRequest command) {
  Target* const target = find(command.request->model);
  if (target == nullptr) {
    command.stream->fail(
        ServiceError(errc::model_not_found, no_such_model(command.request->model), "model"));
    return;
  }
  ModelBoard& board = *target->route.board;
  if (target->state != WorkerState::ready || target->profile == nullptr) {
    board.requests_refused.fetch_add(1, std::memory_order_relaxed);
    command.stream->fail(ServiceError(errc::unavailable,
                                      "the model " + target->route.alias + " is " +
                                          to_string(target->state) + "; try again later",
                                      "", 5));
    return;
  }
  Name name(command.request->key, command.request->id);
  if (names_.contains(name)) {
    command.stream->fail(ServiceError(errc::request_exists,
                                      "a request with this id is running already", "x-request-id"));
    return;
  }
  if (active_.size() >= limits::requests_max) {
    board.requests_refused.fetch_add(1, std::memory_order_relaxed);
    command.stream->fail(
        ServiceError(errc::overloaded, "the server has too many requests; try again later", "", 1));
    return;
  }

  RequestSetup setup;
  setup.number = ++requests_made_;
  setup.request = std::move(command.request);
  setup.stream = std::move(command.stream);
  setup.profile = target->profile;
  setup.board = target->route.board;
  setup.worker = target->route.worker;
  setup.router = self();
  setup.log = log_;
  setup.time_limit = target->route.request_timeout;
  const RequestNumber number = setup.number;
  const auto spawned = spawn_child("request", request, std::move(setup));
  if (spawned.empty())
    return;   // the system is stopping; the stream heard of it from the setup's end
  active_.emplace(number, Active{name, spawned});
  names_.emplace(std::move(name), number);
}

void Router::on(CancelById command) {
  const auto matches = [&](const Active& active) {
    return active.name.second == command.id &&
           (command.any_key || active.name.first == command.key);
  };
  bool found = false;
  for (const auto& [number, active] : active_) {
    if (!matches(active)) continue;
    found = true;
    active.request.send(CancelRequest{});
  }
  command.done(found ? CancelResult::cancelled : CancelResult::not_found);
}

void Router::on(RequestEnded fact) {
  const auto active = active_.find(fact.number);
  if (active == active_.end()) return;
  names_.erase(active->second.name);
  active_.erase(active);
}

void Router::on(ModelStateChanged fact) {
  Target* const target = find(fact.alias);
  if (target == nullptr) return;
  target->state = fact.state;
  if (fact.profile != nullptr) target->profile = std::move(fact.profile);
}

runtime::Properties Router::snapshot() const {
  runtime::Properties said(2 + targets_.size());
  said[0] = {"requests", static_cast<std::int64_t>(active_.size())};
  said[1] = {"requests_made", static_cast<std::int64_t>(requests_made_)};
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    said[2 + i].name = targets_[i].route.alias;
    said[2 + i].value.emplace<std::string>(to_string(targets_[i].state));
  }
  return said;
}

}   // namespace duet::actors
