// answer.cpp: which path gives what.
#include "runtime/inspect/answer.hpp"

#include "runtime/inspect/tree.hpp"

#include <boost/json/serialize.hpp>

#include <charconv>
#include <string_view>

namespace duet::runtime::inspect {
namespace {

namespace http = boost::beast::http;
namespace json = boost::json;

Response make(const Request& request, http::status status, const json::value& body) {
  Response response(status, request.version());
  response.set(http::field::content_type, "application/json");
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(request.keep_alive());
  std::string text = json::serialize(body) + "\n";
  if (request.method() == http::verb::head) {
    response.content_length(text.size());
  } else {
    response.body() = std::move(text);
    response.prepare_payload();
  }
  return response;
}

Response error(const Request& request, http::status status, std::string_view message) {
  return make(request, status, json::object{{"error", message}});
}

Response actor(const System& system, const Request& request, std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc{} && end == text.data() + text.size()) {
    const SystemSnapshot snapshot = system.snapshot();
    for (const ActorSnapshot& found : snapshot.actors) {
      if (found.number == number) {
        return make(request, http::status::ok, actor_json(found, snapshot.now));
      }
    }
  }
  return error(request, http::status::not_found, "no living actor has this number");
}

}   // namespace

Response answer(const System& system, const Request& request) {
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    Response response = error(request, http::status::method_not_allowed, "only GET and HEAD");
    response.set(http::field::allow, "GET, HEAD");
    return response;
  }
  const std::string_view target(request.target().data(), request.target().size());
  constexpr std::string_view one = "/actors/";
  if (target == "/actors") return make(request, http::status::ok, tree_json(system.snapshot()));
  if (target == "/counters") {
    return make(request, http::status::ok, counters_json(system.snapshot().counters));
  }
  if (target.starts_with(one)) return actor(system, request, target.substr(one.size()));
  return error(request, http::status::not_found, "try /actors, /actors/NUMBER or /counters");
}

}   // namespace duet::runtime::inspect
