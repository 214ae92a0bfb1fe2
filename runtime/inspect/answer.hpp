// answer.hpp: the answers of inspection, for any HTTP listener of the host.
#pragma once

#include "runtime/system.hpp"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/json/value.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace duet::runtime::inspect {

using Request = boost::beast::http::request<boost::beast::http::empty_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;

/// True for the paths that answer() knows: /actors, /actors/NUMBER, /counters, /types.
[[nodiscard]] bool is_inspection(const Request& request) noexcept;

/// GET or HEAD /actors (the tree), /actors/NUMBER, /counters, /types. Else 404 or 405 with a JSON
/// error. Any thread; it never waits for an actor.
[[nodiscard]] Response answer(const System& system, const Request& request);

/// As answer(); one actor's answer has "properties" as well: what it says about itself, or null.
/// `done` is called once: now, or, for an actor, when it comes to it, on its strand.
void answer_later(const System& system, const Request& request, std::function<void(Response)> done);

/// A whole answer to `request`; without the body for HEAD. For pages of the host.
[[nodiscard]] Response text_response(const Request& request, boost::beast::http::status status,
                                     std::string_view content_type, std::string text);
[[nodiscard]] Response json_response(const Request& request, boost::beast::http::status status,
                                     const boost::json::value& body);
/// {"error": message}.
[[nodiscard]] Response error_response(const Request& request, boost::beast::http::status status,
                                      std::string_view message);

}   // namespace duet::runtime::inspect
