// admin_client.cpp: HTTP over a Unix socket, with a deadline.
#include "tools/admin_client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/throw_exception.hpp>

#include <chrono>
#include <stdexcept>
#include <utility>

namespace duet::tools {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::chrono::seconds deadline{10};
constexpr std::uint64_t body_bytes_max = std::uint64_t{64} << 20U;

/// One exchange; each step begins the next.
class Exchange {
 public:
  Exchange(const char* method, const std::string& target)
      : socket_(context_), request_(http::string_to_verb(method), target, 11) {
    request_.set(http::field::host, "localhost");
    request_.set(http::field::connection, "close");
    parser_.body_limit(body_bytes_max);
  }

  /// Success: the answer has been read.
  boost::system::error_code run(const std::string& path) {
    socket_.async_connect(asio::local::stream_protocol::endpoint(path),
                          [this](boost::system::error_code error) { connected(error); });
    context_.run_for(deadline);
    return error_;
  }
  [[nodiscard]] AdminAnswer answer() { return {parser_.get().result_int(), parser_.get().body()}; }

 private:
  void connected(boost::system::error_code error) {
    error_ = error;
    if (error) return;
    error_ = asio::error::timed_out;   // unless the answer comes
    http::async_write(socket_, request_,
                      [this](boost::system::error_code failure, std::size_t) { written(failure); });
  }
  void written(boost::system::error_code error) {
    if (error) {
      error_ = error;
      return;
    }
    http::async_read(socket_, buffer_, parser_,
                     [this](boost::system::error_code failure, std::size_t) { error_ = failure; });
  }

  asio::io_context context_;
  asio::local::stream_protocol::socket socket_;
  http::request<http::empty_body> request_;
  http::response_parser<http::string_body> parser_;
  boost::beast::flat_buffer buffer_;
  boost::system::error_code error_ = asio::error::timed_out;
};

}   // namespace

void throw_exception_from_error(const AdminError& error, const boost::source_location& where) {
  boost::throw_exception(std::runtime_error(error.message), where);
}

boost::system::result<AdminAnswer, AdminError> ask_admin(const std::string& socket,
                                                         const char* method,
                                                         const std::string& target) {
  constexpr std::size_t path_bytes_max = 107;   // of a Unix socket's address
  if (socket.empty() || socket.size() > path_bytes_max) {
    return AdminError{"the socket's path must have 1 to 107 bytes: '" + socket + "'"};
  }
  Exchange exchange(method, target);
  const boost::system::error_code error = exchange.run(socket);
  if (error) return AdminError{"no answer from " + socket + ": " + error.message()};
  return exchange.answer();
}

}   // namespace duet::tools
