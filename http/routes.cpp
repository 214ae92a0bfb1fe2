// routes.cpp: the table of routes and its search.
#include "http/routes.hpp"

#include <optional>

namespace duet::http {

namespace {

constexpr std::array<RouteInfo, route_count> table = {{
    {RouteId::not_found, "none", "", "", Access::open},
    {RouteId::models, "models", "GET", "/v1/models", Access::key},
    {RouteId::model, "model", "GET", "/v1/models/{}", Access::key},
    {RouteId::chat_completions, "chat_completions", "POST", "/v1/chat/completions", Access::key},
    {RouteId::completions, "completions", "POST", "/v1/completions", Access::key},
    {RouteId::cancel_request, "cancel_request", "DELETE", "/internal/requests/{}", Access::key},
    {RouteId::health, "health", "GET", "/health", Access::open},
    {RouteId::ready, "ready", "GET", "/ready", Access::open},
    {RouteId::metrics, "metrics", "GET", "/metrics", Access::open},
    {RouteId::kserve_live, "kserve_live", "GET", "/v2/health/live", Access::open},
    {RouteId::kserve_ready, "kserve_ready", "GET", "/v2/health/ready", Access::open},
    {RouteId::kserve_model_ready, "kserve_model_ready", "GET", "/v2/models/{}/ready", Access::open},
}};

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Null: a percent sign without two hexadecimal digits.
std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string_view without_origin(std::string_view target) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t path = target.find_first_of("/?", scheme.size());
    return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  return target;
}

/// The parameter as it came; null: another path.
std::optional<std::string_view> match_path(std::string_view pattern, std::string_view path) {
  const std::size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) {
    if (path != pattern) return std::nullopt;
    return std::string_view();
  }
  const std::string_view before = pattern.substr(0, hole);
  const std::string_view after = pattern.substr(hole + 2);
  if (path.size() <= before.size() + after.size()) return std::nullopt;
  if (!path.starts_with(before) || !path.ends_with(after)) return std::nullopt;
  return path.substr(before.size(), path.size() - before.size() - after.size());
}

std::string_view allow_of(const RouteInfo& route) noexcept {
  return route.method == "GET" ? std::string_view("GET, HEAD") : route.method;
}

bool allows(const RouteInfo& route, Method method) noexcept {
  if (route.method == "GET") return method == Method::get || method == Method::head;
  if (route.method == "POST") return method == Method::post;
  return method == Method::delete_;
}

}   // namespace

const std::array<RouteInfo, route_count>& routes() noexcept {
  return table;
}

RouteMatch match_route(Method method, std::string_view target) {
  RouteMatch match;
  std::string_view path = without_origin(target);
  path = path.substr(0, path.find('#'));
  if (const std::size_t question = path.find('?'); question != std::string_view::npos) {
    match.query = path.substr(question + 1);
    path = path.substr(0, question);
  }
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  for (const RouteInfo& route : table) {
    if (route.path.empty()) continue;
    const std::optional<std::string_view> parameter = match_path(route.path, path);
    if (!parameter) continue;
    std::optional<std::string> decoded = percent_decode(*parameter);
    // A parameter never begins or ends with a slash: that is a doubled one.
    if (!decoded || parameter->starts_with('/') || parameter->ends_with('/')) continue;
    match.id = route.id;
    match.method_allowed = allows(route, method);
    match.allow = allow_of(route);
    match.parameter = std::move(*decoded);
    return match;
  }
  return match;
}

std::string query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    const std::size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name || equals == std::string_view::npos) continue;
    return percent_decode(pair.substr(equals + 1)).value_or(std::string());
  }
  return {};
}

}   // namespace duet::http
