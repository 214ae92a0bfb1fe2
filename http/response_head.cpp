// response_head.cpp: heads of complete answers and of event streams.
#include "http/response_head.hpp"

#include "http/json_text.hpp"

#include <array>
#include <chrono>

namespace duet::http {

namespace {

void append_two(std::string& out, unsigned value) {
  out += static_cast<char>('0' + value / 10 % 10);
  out += static_cast<char>('0' + value % 10);
}

void append_start(std::string& out, unsigned status, std::string_view content_type,
                  const AnswerContext& context, runtime::WallTime now) {
  out += "HTTP/1.1 ";
  append_number(out, std::uint64_t{status});
  out += ' ';
  out += reason_phrase(status);
  out += "\r\nDate: ";
  append_http_date(out, now);
  out += "\r\nContent-Type: ";
  out += content_type;
  out += "\r\n";
  if (!context.request_id.empty()) {
    out += "x-request-id: ";
    out += context.request_id;
    out += "\r\n";
  }
}

void append_connection(std::string& out, bool keep_alive, bool http_1_0) {
  if (!keep_alive) {
    out += "Connection: close\r\n";
  } else if (http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
}

}   // namespace

Reply error_reply(const HttpError& error) {
  Reply reply;
  reply.status = error.status;
  append_error_object(reply.body, error);
  if (error.retry_after_seconds > 0)
    reply.fields += "Retry-After: " + std::to_string(error.retry_after_seconds) + "\r\n";
  if (error.status == 401) reply.fields += "WWW-Authenticate: Bearer\r\n";
  return reply;
}

void append_reply(std::string& out, const Reply& reply, const AnswerContext& context,
                  runtime::WallTime now) {
  append_start(out, reply.status, reply.content_type, context, now);
  out += "Content-Length: ";
  append_number(out, std::uint64_t{reply.body.size()});
  out += "\r\n";
  out += reply.fields;
  append_connection(out, context.keep_alive, context.http_1_0);
  out += "\r\n";
  if (!context.head_only) out += reply.body;
}

void append_stream_head(std::string& out, const AnswerContext& context, runtime::WallTime now) {
  append_start(out, 200, "text/event-stream", context, now);
  // A proxy that buffers or compresses would hold tokens back.
  out += "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  if (!context.http_1_0) out += "Transfer-Encoding: chunked\r\n";
  append_connection(out, context.keep_alive && !context.http_1_0, context.http_1_0);
  out += "\r\n";
}

void append_http_date(std::string& out, runtime::WallTime time) {
  constexpr std::array<std::string_view, 7> days = {"Sun", "Mon", "Tue", "Wed",
                                                    "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  out += days[std::chrono::weekday(day).c_encoding()];
  out += ", ";
  append_two(out, static_cast<unsigned>(date.day()));
  out += ' ';
  out += months[static_cast<unsigned>(date.month()) - 1];
  out += ' ';
  append_number(out, static_cast<std::uint64_t>(static_cast<int>(date.year())));
  out += ' ';
  append_two(out, static_cast<unsigned>(clock.hours().count()));
  out += ':';
  append_two(out, static_cast<unsigned>(clock.minutes().count()));
  out += ':';
  append_two(out, static_cast<unsigned>(clock.seconds().count()));
  out += " GMT";
}

}   // namespace duet::http
