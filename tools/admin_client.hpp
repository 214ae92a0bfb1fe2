// admin_client.hpp: one request to a server's administration socket.
#pragma once

#include <boost/system/result.hpp>

#include <string>

namespace duet::tools {

struct AdminAnswer {
  unsigned status = 0;
  std::string body;
};

/// One sentence with the socket's path.
struct AdminError {
  std::string message;
};
[[noreturn]] void throw_exception_from_error(const AdminError& error,
                                             const boost::source_location& where);

/// Blocks until the answer is there, at most ten seconds; bodies of at most 64 MiB (a trace of two
/// chips with all the intervals that are kept). `method` is "GET" or "DELETE".
[[nodiscard]] boost::system::result<AdminAnswer, AdminError> ask_admin(const std::string& socket,
                                                                       const char* method,
                                                                       const std::string& target);

}   // namespace duet::tools
