// admission.cpp: route, method, key, media type.
#include "http/admission.hpp"

#include "actors/limits.hpp"
#include "http/json_text.hpp"

#include <algorithm>
#include <cctype>

namespace duet::http {

namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Looks at every byte of `given`, wherever the first difference is.
bool equal_secret(std::string_view given, std::string_view secret) noexcept {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret[i % secret.size()];
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected);
  }
  return difference == 0;
}

const ApiKey* find_key(std::string_view authorization, std::span<const ApiKey> keys) noexcept {
  constexpr std::string_view scheme = "bearer ";
  if (authorization.size() <= scheme.size()) return nullptr;
  if (!equal_ignoring_case(authorization.substr(0, scheme.size()), scheme)) return nullptr;
  const std::string_view given = trim(authorization.substr(scheme.size()));
  const ApiKey* found = nullptr;
  for (const ApiKey& key : keys) {
    if (equal_secret(given, key.secret)) found = &key;
  }
  return found;
}

Reply wrong_method(std::string_view allow) {
  Reply reply =
      error_reply(make_http_error(405, "this path allows " + std::string(allow) + " only"));
  reply.fields += "Allow: ";
  reply.fields += allow;
  reply.fields += "\r\n";
  return reply;
}

std::optional<Reply> check_completion(const RequestHead& head) {
  if (!is_json_type(head.content_type)) {
    return error_reply(
        make_http_error(415, "the body's Content-Type must be application/json in UTF-8"));
  }
  if (!head.content_encoding.empty() && !equal_ignoring_case(head.content_encoding, "identity")) {
    return error_reply(make_http_error(415, "the body must not have a Content-Encoding"));
  }
  if (!head.request_id.empty() && !is_request_id(head.request_id)) {
    return error_reply(make_http_error(400,
                                       "'x-request-id' must be 1 to " +
                                           std::to_string(actors::limits::request_id_bytes_max) +
                                           " letters, digits, '.', '_', ':' or '-'",
                                       "x-request-id"));
  }
  return std::nullopt;
}

}   // namespace

Admission admit(const RequestHead& head, std::span<const ApiKey> keys) {
  Admission admission;
  admission.match = match_route(head.method, head.target);
  admission.any_key = false;
  if (is_request_id(head.request_id)) admission.request_id = head.request_id;
  const RouteMatch& match = admission.match;
  const RouteInfo& route = routes()[static_cast<std::size_t>(match.id)];
  if (match.id == RouteId::not_found) {
    admission.refusal = error_reply(make_http_error(404, "there is nothing at this path"));
    return admission;
  }
  if (!match.method_allowed) {
    admission.refusal = wrong_method(match.allow);
    return admission;
  }
  if (route.access == Access::key && !keys.empty()) {
    const ApiKey* const key = find_key(head.authorization, keys);
    if (key == nullptr) {
      admission.refusal = error_reply(make_http_error(
          401, head.authorization.empty() ? "this path needs a key: Authorization: Bearer KEY"
                                          : "this key is not known here"));
      return admission;
    }
    admission.key = key->name;
    admission.any_key = key->admin;
  }
  if (head.method == Method::post) admission.refusal = check_completion(head);
  return admission;
}

bool is_json_type(std::string_view content_type) {
  if (trim(content_type).empty()) return true;
  const std::size_t semicolon = content_type.find(';');
  if (!equal_ignoring_case(trim(content_type.substr(0, semicolon)), "application/json"))
    return false;
  std::string_view rest =
      semicolon == std::string_view::npos ? "" : content_type.substr(semicolon + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find(';');
    const std::string_view parameter = trim(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos) continue;
    if (!equal_ignoring_case(trim(parameter.substr(0, equals)), "charset")) continue;
    std::string_view value = trim(parameter.substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    // ASCII is UTF-8.
    if (!equal_ignoring_case(value, "utf-8") && !equal_ignoring_case(value, "utf8") &&
        !equal_ignoring_case(value, "us-ascii"))
      return false;
  }
  return true;
}

bool is_request_id(std::string_view id) noexcept {
  if (id.empty() || id.size() > actors::limits::request_id_bytes_max) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  });
}

}   // namespace duet::http
