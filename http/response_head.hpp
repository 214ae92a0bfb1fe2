// response_head.hpp: the status line and header of an answer.
#pragma once

#include "http/http_error.hpp"
#include "runtime/time.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace duet::http {

/// What of the request and the connection shows in the head of its answer.
struct AnswerContext {
  std::string request_id;   ///< goes out as x-request-id; visible ASCII.
  bool keep_alive = true;
  bool http_1_0 = false;    ///< no chunks: an answer of unknown length ends with the connection.
  bool head_only = false;   ///< HEAD: the header says what the body would have been.
};

/// An answer that is complete.
struct Reply {
  unsigned status = 200;
  std::string_view content_type = "application/json";
  std::string body;
  std::string fields;   ///< further lines of the header, each with its CRLF.
};

[[nodiscard]] Reply error_reply(const HttpError& error);

/// Appends the whole answer.
void append_reply(std::string& out, const Reply& reply, const AnswerContext& context,
                  runtime::WallTime now);

/// Appends the head of an event stream; its body is chunked unless the client speaks HTTP/1.0.
void append_stream_head(std::string& out, const AnswerContext& context, runtime::WallTime now);

/// Appends `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
void append_http_date(std::string& out, runtime::WallTime time);

}   // namespace duet::http
