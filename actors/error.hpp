// error.hpp: why a request was not served, as a value that http/ turns into a status and an error
// object.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace duet::actors {

enum class errc : std::uint8_t {
  bad_request = 1,     ///< The request itself is wrong; the client must change it. 400
  model_not_found,     ///< No model of that name is configured. 404
  request_not_found,   ///< No running request of that id belongs to that key. 404
  request_exists,      ///< A request with that id is running already. 409
  quota_exceeded,      ///< This client has too much going on; it shall wait. 429
  overloaded,    ///< The model's queue is full or the wait in it was too long; retry later. 503
  unavailable,   ///< The model is not ready: loading, draining, recovering or failed. 503
  deadline_exceeded,   ///< The request's own deadline passed. 504 before the first byte
  cancelled,           ///< By its client or an operator. 499 before the first byte
  reader_too_slow,     ///< The client did not read for too long. No status can reach it.
  device_fault,        ///< The chip failed under the request and it could not be replayed. 500
  internal,            ///< A fault of ours. 500
};

/// One sentence for the client; it never names chips, paths, addresses or other clients.
struct ServiceError {
  ServiceError() = default;   ///< Only containers need it.
  ServiceError(errc error_code, std::string sentence, std::string field = {},
               std::uint32_t retry_after = 0)
      : code(error_code),
        message(std::move(sentence)),
        param(std::move(field)),
        retry_after_seconds(retry_after) {}
  errc code = errc::internal;
  std::string message;
  std::string param;   ///< the request's field, "" if none.
  std::uint32_t retry_after_seconds =
      0;   ///< for overloaded, unavailable and quota_exceeded; 0: unknown.
};

[[nodiscard]] const char* to_string(errc code) noexcept;

}   // namespace duet::actors
