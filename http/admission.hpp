// admission.hpp: what can be decided of a request from its head alone. Pure.
#pragma once

#include "http/request_reader.hpp"
#include "http/response_head.hpp"
#include "http/routes.hpp"
#include "http/server_options.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace duet::http {

struct Admission {
  RouteMatch match;
  std::string key;          ///< name of the API key; "" without keys.
  bool any_key = false;     ///< may cancel everybody's requests.
  std::string request_id;   ///< the client's own, if it is fit for use; else "".
  std::optional<Reply> refusal;
};

/// Route, method, key, media type and client's request id, in this order: the first that is wrong
/// makes the refusal. Keys are compared in time that does not depend on where they differ.
[[nodiscard]] Admission admit(const RequestHead& head, std::span<const ApiKey> keys);

/// application/json with any parameters but another charset than UTF-8, or no type at all (many
/// scripts send none).
[[nodiscard]] bool is_json_type(std::string_view content_type);

/// 1 to actors::limits::request_id_bytes_max letters, digits and . _ : - only: it goes into
/// headers, logs and paths.
[[nodiscard]] bool is_request_id(std::string_view id) noexcept;

}   // namespace duet::http
