// http_error.cpp: which error has which status, type and code.
#include "http/http_error.hpp"

#include "http/json_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace duet::http {

namespace {

constexpr std::string_view invalid_request = "invalid_request_error";

struct Kind {
  unsigned status;
  std::string_view type;
};

Kind kind_of(actors::errc code) noexcept {
  using actors::errc;
  switch (code) {
    case errc::bad_request:
      return {400, invalid_request};
    case errc::model_not_found:
    case errc::request_not_found:
      return {404, invalid_request};
    case errc::request_exists:
      return {409, invalid_request};
    case errc::quota_exceeded:
      return {429, "rate_limit_error"};
    case errc::overloaded:
    case errc::unavailable:
      return {503, "unavailable_error"};
    case errc::deadline_exceeded:
      return {504, "timeout_error"};
    case errc::cancelled:
      return {499, "cancelled_error"};
    case errc::reader_too_slow:
    case errc::device_fault:
    case errc::internal:
      break;
  }
  return {500, "server_error"};
}

struct StatusLine {
  unsigned status;
  std::string_view reason;
  std::string_view type;   // of an error that HTTP itself finds
  std::string_view code;
};

constexpr std::array statuses = {
    StatusLine{200, "OK", "", ""},
    StatusLine{400, "Bad Request", invalid_request, "bad_request"},
    StatusLine{401, "Unauthorized", "authentication_error", "invalid_api_key"},
    StatusLine{403, "Forbidden", "permission_error", "forbidden"},
    StatusLine{404, "Not Found", invalid_request, "not_found"},
    StatusLine{405, "Method Not Allowed", invalid_request, "method_not_allowed"},
    StatusLine{408, "Request Timeout", "timeout_error", "request_timeout"},
    StatusLine{409, "Conflict", invalid_request, "conflict"},
    StatusLine{413, "Content Too Large", invalid_request, "content_too_large"},
    StatusLine{415, "Unsupported Media Type", invalid_request, "unsupported_media_type"},
    StatusLine{417, "Expectation Failed", invalid_request, "expectation_failed"},
    StatusLine{429, "Too Many Requests", "rate_limit_error", "quota_exceeded"},
    StatusLine{431, "Request Header Fields Too Large", invalid_request, "header_too_large"},
    StatusLine{499, "Client Closed Request", "cancelled_error", "cancelled"},
    StatusLine{500, "Internal Server Error", "server_error", "internal"},
    StatusLine{501, "Not Implemented", invalid_request, "not_implemented"},
    StatusLine{503, "Service Unavailable", "unavailable_error", "unavailable"},
    StatusLine{504, "Gateway Timeout", "timeout_error", "deadline_exceeded"},
    StatusLine{505, "HTTP Version Not Supported", invalid_request, "http_version"},
};

const StatusLine* line_of(unsigned status) noexcept {
  const auto* const found =
      std::find_if(statuses.begin(), statuses.end(),
                   [&](const StatusLine& line) { return line.status == status; });
  return found == statuses.end() ? nullptr : found;
}

}   // namespace

HttpError to_http_error(const actors::ServiceError& error) {
  const Kind kind = kind_of(error.code);
  HttpError out{kind.status,   kind.type,   actors::to_string(error.code),
                error.message, error.param, 0};
  if (kind.status == 429 || kind.status == 503) {
    out.retry_after_seconds = std::max<std::uint32_t>(error.retry_after_seconds, 1);
  }
  return out;
}

HttpError make_http_error(unsigned status, std::string message, std::string param) {
  const StatusLine* const line = line_of(status);
  HttpError out{status, "server_error", "internal", std::move(message), std::move(param), 0};
  if (line != nullptr) {
    out.type = line->type;
    out.code = line->code;
  }
  if (status == 503) out.retry_after_seconds = 1;
  return out;
}

void append_error_object(std::string& out, const HttpError& error) {
  out += R"({"error":{"message":)";
  append_json_repaired(out, error.message);
  out += R"(,"type":)";
  append_json_string(out, error.type);
  out += R"(,"param":)";
  if (error.param.empty()) {
    out += "null";
  } else {
    append_json_repaired(out, error.param);
  }
  out += R"(,"code":)";
  append_json_string(out, error.code);
  out += "}}";
}

std::string_view reason_phrase(unsigned status) noexcept {
  const StatusLine* const line = line_of(status);
  return line == nullptr ? std::string_view("Unknown") : line->reason;
}

}   // namespace duet::http
