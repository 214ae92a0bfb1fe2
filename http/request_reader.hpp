// request_reader.hpp: bytes of a connection to HTTP/1 requests, without I/O.
#pragma once

#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace duet::http {

enum class Method : std::uint8_t { get, head, post, delete_, other };

/// The fields that we act on; of a repeated one the first counts, except where repetition is an
/// error.
struct RequestHead {
  Method method = Method::other;
  std::string target;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expect_continue = false;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
  std::string content_type;       ///< "" if absent.
  std::string content_encoding;   ///< "" if absent.
  std::string authorization;
  std::string request_id;   ///< x-request-id.
};

struct ReaderLimits {
  std::size_t header_bytes = 16U << 10U;
  std::size_t body_bytes = 8U << 20U;
};

/// Reads one request after the other. One strand. Memory: the body, and nothing else that grows.
/// A framing error is final: where the next request begins is then unknown.
class RequestReader {
 public:
  enum class Status : std::uint8_t {
    need_more,       ///< Feed again, beginning with what was not consumed.
    head_complete,   ///< The head is there, the body is not; feeding goes on with the body.
    complete,
    failed,
  };

  explicit RequestReader(ReaderLimits limits);
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;
  ~RequestReader();

  /// Returns how many bytes were consumed; they are not to be given again. Stops after the head and
  /// at the end of the request. Not to be called after complete or failed.
  std::size_t feed(std::string_view bytes);

  [[nodiscard]] Status status() const noexcept { return status_; }
  [[nodiscard]] bool started() const noexcept;   ///< a byte of a request was consumed or refused.
  [[nodiscard]] const RequestHead& head() const noexcept;   ///< from head_complete on.
  [[nodiscard]] std::string take_body();                    ///< when complete.

  /// The body that follows is counted and thrown away. At head_complete only.
  void discard_body() noexcept;

  /// When failed: the status to answer with, and why.
  [[nodiscard]] unsigned error_status() const noexcept { return error_status_; }
  [[nodiscard]] const std::string& error_message() const noexcept { return error_message_; }

  void reset();   ///< Ready for the next request; gives its memory back.

 private:
  class Parser;
  void fail(unsigned status, std::string message);
  void refuse(const boost::system::error_code& ec, std::size_t waiting);
  void refuse_header_size();
  void check_head();
  [[nodiscard]] bool withheld(std::string_view bytes) const noexcept;

  ReaderLimits limits_;
  std::unique_ptr<Parser> parser_;
  Status status_ = Status::need_more;
  unsigned error_status_ = 0;
  std::string error_message_;
};

}   // namespace duet::http
