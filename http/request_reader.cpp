// request_reader.cpp: Beast's parser, with the bounds and refusals that it leaves to its user. The
// one file that includes Beast.
#include "http/request_reader.hpp"

#include "http/limits.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <utility>

namespace duet::http {

namespace beast = boost::beast;
using boost::system::error_code;
using FieldText = beast::string_view;

/// Collects what we act on. Its callbacks report Beast's own error values; the reader turns them
/// into a status.
class RequestReader::Parser final : public beast::http::basic_parser<true> {
 public:
  explicit Parser(const ReaderLimits& limits) : limits_(limits) {
    header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    body_limit(
        boost::none);   // checked here, so that an absurd chunk size is told from a large one
    eager(false);
  }

  RequestHead head;
  std::string body;
  bool discard = false;
  bool bad_host = false;
  bool bad_framing = false;   // Transfer-Encoding that is not just "chunked"
  bool bad_expectation = false;
  std::size_t wire_bytes = 0;        // consumed so far
  std::size_t body_bytes = 0;        // announced or received
  std::uint64_t chunk_missing = 0;   // of the chunk that is being read

 private:
  void on_request_impl(beast::http::verb method, FieldText /*name*/, FieldText target, int version,
                       error_code& /*ec*/) override {
    switch (method) {
      case beast::http::verb::get:
        head.method = Method::get;
        break;
      case beast::http::verb::head:
        head.method = Method::head;
        break;
      case beast::http::verb::post:
        head.method = Method::post;
        break;
      case beast::http::verb::delete_:
        head.method = Method::delete_;
        break;
      default:
        head.method = Method::other;
    }
    head.target.assign(target.data(), target.size());
    head.http_1_0 = version == 10;
  }
  void on_response_impl(int /*code*/, FieldText /*reason*/, int /*version*/,
                        error_code& /*ec*/) override {}

  void on_field_impl(beast::http::field name, FieldText text, FieldText value,
                     error_code& /*ec*/) override {
    if (is_header_done() || in_trailers_) return;   // trailers say nothing that we act on
    switch (name) {
      case beast::http::field::content_type:
        return keep(head.content_type, value);
      case beast::http::field::content_encoding:
        return keep(head.content_encoding, value);
      case beast::http::field::authorization:
        return keep(head.authorization, value);
      case beast::http::field::transfer_encoding:
        bad_framing = bad_framing || !beast::iequals(value, "chunked");
        return;
      case beast::http::field::expect:
        head.expect_continue = beast::iequals(value, "100-continue");
        bad_expectation = !head.expect_continue;
        return;
      case beast::http::field::host:
        bad_host = bad_host || seen_host_;
        seen_host_ = true;
        return;
      default:
        if (beast::iequals(text, "x-request-id")) keep(head.request_id, value);
    }
  }

  void on_header_impl(error_code& ec) override {
    in_trailers_ = true;   // what comes after this are trailers
    if (beast::http::basic_parser<true>::chunked()) {
      head.chunked = true;
      // Proxies of HTTP/1.0 do not know chunks and would see another end of this request.
      bad_framing = bad_framing || head.http_1_0;
    }
    if (const auto length = content_length()) head.content_length = *length;
    head.keep_alive = keep_alive();
    head.expect_continue = head.expect_continue && !head.http_1_0;
    if (head.content_length.value_or(0) > limits_.body_bytes) ec = beast::http::error::body_limit;
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                         error_code& /*ec*/) override {}
  std::size_t on_body_impl(FieldText text, error_code& /*ec*/) override {
    if (!discard) body.append(text.data(), text.size());
    return text.size();
  }
  void on_chunk_header_impl(std::uint64_t size, FieldText /*extensions*/, error_code& ec) override {
    if (size >= limits::chunk_bytes_max) {
      ec = beast::http::error::bad_chunk;
    } else if (size > limits_.body_bytes - body_bytes) {
      ec = beast::http::error::body_limit;
    } else {
      body_bytes += size;
      chunk_missing = size;
    }
  }
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, FieldText text,
                                 error_code& /*ec*/) override {
    if (!discard) body.append(text.data(), text.size());
    chunk_missing -= text.size();
    return text.size();
  }
  void on_finish_impl(error_code& /*ec*/) override {}

  static void keep(std::string& target, FieldText value) {
    if (target.empty()) target.assign(value.data(), value.size());
  }

  const ReaderLimits limits_;
  bool seen_host_ = false;
  bool in_trailers_ = false;
};

RequestReader::RequestReader(ReaderLimits limits) : limits_(limits) {}
RequestReader::RequestReader(RequestReader&&) noexcept = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;
RequestReader::~RequestReader() = default;

bool RequestReader::started() const noexcept {
  return parser_ != nullptr;
}

const RequestHead& RequestReader::head() const noexcept {
  return parser_->head;
}

std::string RequestReader::take_body() {
  return std::move(parser_->body);
}

void RequestReader::discard_body() noexcept {
  parser_->discard = true;
}

void RequestReader::reset() {
  parser_.reset();
  status_ = Status::need_more;
  error_status_ = 0;
  error_message_.clear();
}

void RequestReader::fail(unsigned status, std::string message) {
  status_ = Status::failed;
  error_status_ = status;
  error_message_ = std::move(message);
}

// Beast asserts that a last chunk is at least five bytes long when it looks at it for the second
// time, so what may become one is not shown to it before. Nothing is held up by that: at least as
// many bytes follow.
bool RequestReader::withheld(std::string_view bytes) const noexcept {
  constexpr std::size_t last_chunk_bytes = 5;
  return parser_->is_header_done() && parser_->head.chunked && parser_->chunk_missing == 0 &&
         bytes.size() < last_chunk_bytes && bytes.find('0') != std::string_view::npos;
}

std::size_t RequestReader::feed(std::string_view bytes) {
  std::size_t used = 0;
  if (parser_ == nullptr) {
    // Clients of old end a body with a line feed too many.
    while (used < bytes.size() && (bytes[used] == '\r' || bytes[used] == '\n')) ++used;
    if (used == bytes.size()) return used;
    parser_ = std::make_unique<Parser>(limits_);
  }
  Parser& parser = *parser_;
  for (;;) {
    const bool had_head = parser.is_header_done();
    if (had_head) status_ = parser.is_done() ? Status::complete : Status::need_more;
    if (status_ == Status::complete) return used;
    if (used == bytes.size() || withheld(bytes.substr(used))) return used;
    error_code ec;
    const std::size_t taken = parser.put({bytes.data() + used, bytes.size() - used}, ec);
    used += taken;
    parser.wire_bytes += taken;
    if (ec) {
      refuse(ec, bytes.size() - used);
      return used;
    }
    if (!had_head && parser.is_header_done()) {
      status_ = Status::head_complete;
      check_head();
      return used;
    }
    if (parser.wire_bytes >
        limits_.header_bytes + limits::wire_bytes_a_body_byte_max * limits_.body_bytes) {
      fail(400, "the body's chunks are mostly overhead");
      return used;
    }
  }
}

// `waiting` bytes were looked at and not consumed.
void RequestReader::refuse(const error_code& ec, std::size_t waiting) {
  const Parser& parser = *parser_;
  if (ec == beast::http::error::need_more) {
    // Beast bounds one line or field, not all of them together.
    if (!parser.is_header_done() && parser.wire_bytes + waiting > limits_.header_bytes) {
      refuse_header_size();
    } else if (parser.is_header_done() && waiting > limits_.header_bytes) {
      fail(400, "a chunk's header or the trailers are too large");
    }
  } else if (ec == beast::http::error::header_limit) {
    refuse_header_size();
  } else if (ec == beast::http::error::body_limit) {
    fail(413, "the body is larger than " + std::to_string(limits_.body_bytes) + " bytes");
  } else if (ec == beast::http::error::bad_version) {
    fail(505, "HTTP/1.0 and HTTP/1.1 are served");
  } else {
    fail(400, "the request is not well-formed HTTP: " + ec.message());
  }
}

void RequestReader::check_head() {
  const Parser& parser = *parser_;
  if (parser.wire_bytes > limits_.header_bytes) {
    refuse_header_size();
  } else if (parser.bad_framing) {
    fail(400, "the only transfer coding served is \"chunked\", in HTTP/1.1");
  } else if (parser.bad_host) {
    fail(400, "the request has more than one Host field");
  } else if (parser.bad_expectation) {
    fail(417, "the only expectation served is \"100-continue\"");
  }
}

void RequestReader::refuse_header_size() {
  fail(431,
       "the request's header is larger than " + std::to_string(limits_.header_bytes) + " bytes");
}

}   // namespace duet::http
