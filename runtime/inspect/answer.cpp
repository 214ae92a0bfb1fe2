// answer.cpp: which path gives what.
#include "runtime/inspect/answer.hpp"

#include "runtime/inspect/tree.hpp"

#include <boost/json/serialize.hpp>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace duet::runtime::inspect {
namespace {

namespace http = boost::beast::http;
namespace json = boost::json;

constexpr std::string_view all_actors = "/actors";
constexpr std::string_view one_actor = "/actors/";
constexpr std::string_view counters = "/counters";
constexpr std::string_view types = "/types";

std::string_view target_of(const Request& request) noexcept {
  return {request.target().data(), request.target().size()};
}

/// Of /actors/NUMBER; 0, which no actor has, if it is no number.
std::uint64_t number_in(std::string_view target) noexcept {
  const std::string_view text = target.substr(one_actor.size());
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() ? number : 0;
}

Response actor(const System& system, const Request& request,
               const std::optional<Properties>& properties) {
  const std::uint64_t number = number_in(target_of(request));
  const SystemSnapshot snapshot = system.snapshot();
  for (const ActorSnapshot& found : snapshot.actors) {
    if (found.number != number) continue;
    json::object object = actor_json(found, snapshot.now).as_object();
    object["properties"] = properties ? properties_json(*properties) : json::value(nullptr);
    return json_response(request, http::status::ok, object);
  }
  return error_response(request, http::status::not_found, "no living actor has this number");
}

}   // namespace

bool is_inspection(const Request& request) noexcept {
  const std::string_view target = target_of(request);
  return target == all_actors || target == counters || target == types ||
         target.starts_with(one_actor);
}

Response text_response(const Request& request, http::status status, std::string_view content_type,
                       std::string text) {
  Response response(status, request.version());
  response.set(http::field::content_type, boost::beast::string_view(content_type));
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(request.keep_alive());
  if (request.method() == http::verb::head) {
    response.content_length(text.size());
  } else {
    response.body() = std::move(text);
    response.prepare_payload();
  }
  return response;
}

Response json_response(const Request& request, http::status status, const json::value& body) {
  return text_response(request, status, "application/json", json::serialize(body) + "\n");
}

Response error_response(const Request& request, http::status status, std::string_view message) {
  return json_response(request, status, json::object{{"error", message}});
}

void answer_later(const System& system, const Request& request,
                  std::function<void(Response)> done) {
  const std::string_view target = target_of(request);
  const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
  if (!reads || !target.starts_with(one_actor)) return done(answer(system, request));
  system.describe(number_in(target),
                  [&system, request, done = std::move(done)](std::optional<Properties> said) {
                    done(actor(system, request, said));
                  });
}

Response answer(const System& system, const Request& request) {
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    Response response =
        error_response(request, http::status::method_not_allowed, "only GET and HEAD");
    response.set(http::field::allow, "GET, HEAD");
    return response;
  }
  const std::string_view target = target_of(request);
  if (target == all_actors)
    return json_response(request, http::status::ok, tree_json(system.snapshot()));
  if (target == counters) {
    return json_response(request, http::status::ok, counters_json(system.snapshot().counters));
  }
  if (target == types) {
    return json_response(request, http::status::ok, types_json(system.snapshot().types));
  }
  if (target.starts_with(one_actor)) {
    return actor(system, request, std::nullopt);
  }
  return error_response(request, http::status::not_found,
                        "try /actors, /actors/NUMBER, /counters or /types");
}

}   // namespace duet::runtime::inspect
