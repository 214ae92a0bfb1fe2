// http_error.hpp: errors as a status and OpenAI's error object.
#pragma once

#include "actors/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace duet::http {

/// What a client is told. `type` and `code` are literals.
struct HttpError {
  unsigned status = 500;
  std::string_view type = "server_error";
  std::string_view code = "internal";
  std::string message;
  std::string param;                       ///< the request's field, "" = none (null in JSON).
  std::uint32_t retry_after_seconds = 0;   ///< 0: no Retry-After.
};

/// 429 is the client's own quota, 503 is our capacity; both always carry a Retry-After.
[[nodiscard]] HttpError to_http_error(const actors::ServiceError& error);

/// Errors of HTTP itself: 400 401 403 404 405 408 413 415 417 431 500 501 503 505.
[[nodiscard]] HttpError make_http_error(unsigned status, std::string message,
                                        std::string param = {});

/// {"error":{"message","type","param","code"}}
void append_error_object(std::string& out, const HttpError& error);

/// The reason phrase; "Unknown" for what is never sent.
[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

}   // namespace duet::http
