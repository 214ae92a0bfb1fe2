// answer.hpp: the answers of inspection, for any HTTP listener of the host.
#pragma once

#include "runtime/system.hpp"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace duet::runtime::inspect {

using Request = boost::beast::http::request<boost::beast::http::empty_body>;
using Response = boost::beast::http::response<boost::beast::http::string_body>;

/// GET or HEAD /actors (the tree), /actors/NUMBER, /counters. Else 404 or 405 with a JSON error.
/// Any thread; it never waits for an actor.
[[nodiscard]] Response answer(const System& system, const Request& request);

}   // namespace duet::runtime::inspect
