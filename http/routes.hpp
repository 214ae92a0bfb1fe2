// routes.hpp: which handler a method and a target lead to. Pure.
#pragma once

#include "http/request_reader.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace duet::http {

enum class RouteId : std::uint8_t {
  not_found,
  models,
  model,
  chat_completions,
  completions,
  cancel_request,
  health,
  ready,
  metrics,
  kserve_live,
  kserve_ready,
  kserve_model_ready,
};
inline constexpr std::size_t route_count = 12;

enum class Access : std::uint8_t {
  open,   ///< no key needed, ever.
  key,    ///< a key, if the server has any.
};

struct RouteInfo {
  RouteId id;
  std::string_view name;     ///< label of metrics and logs.
  std::string_view method;   ///< GET also serves HEAD.
  std::string_view path;     ///< with {} where the parameter stands.
  Access access;
};

/// Every route; indexed by RouteId.
[[nodiscard]] const std::array<RouteInfo, route_count>& routes() noexcept;

struct RouteMatch {
  RouteId id = RouteId::not_found;
  bool method_allowed = false;
  std::string_view allow;   ///< for the Allow field of a 405.
  std::string parameter;    ///< decoded: alias or request id.
  std::string query;        ///< after '?', as it came.
};

/// The path is compared as it came: one trailing slash is the same path, a double slash or an
/// encoded letter is another one (a proxy that guards a path sees the same letters as we do). Only
/// the parameter is percent-decoded, once; an alias may hold slashes. An absolute target
/// (http://host/path) is served by its path.
[[nodiscard]] RouteMatch match_route(Method method, std::string_view target);

/// The value of `name` in a query string, decoded; "" if absent.
[[nodiscard]] std::string query_value(std::string_view query, std::string_view name);

}   // namespace duet::http
