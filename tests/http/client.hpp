// client.hpp: a blocking client of raw bytes, for tests. A read that takes ten seconds fails the
// test instead of hanging it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::http::tests {

struct Response {
  unsigned status = 0;
  std::map<std::string, std::string> fields;   // names in lower case
  std::string body;                            // without chunk framing
  bool whole = false;                          // it ended as HTTP says
  [[nodiscard]] std::string field(const std::string& name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
  }
};

class Client {
 public:
  explicit Client(std::uint16_t port, int receive_buffer = 0);
  explicit Client(const std::string& unix_path);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view bytes);   ///< all of it; a reset is ignored: the answer tells.
  void half_close();
  void reset();   ///< closes with a RST.
  void close();

  /// The next response of this connection, 100 Continue apart. `head`: it has no body.
  Response read(bool head = false);
  /// Reads until `text` has come; everything so far. "" if the connection ends before.
  std::string read_until(std::string_view text);
  /// True: the other side closed (or reset) after what has been read.
  bool at_end();
  [[nodiscard]] const std::string& buffered() const { return buffer_; }

 private:
  bool fill();   // one more piece; false at the end
  std::string take_line();

  int descriptor_ = -1;
  std::string buffer_;
};

std::string get(std::string_view target, std::string_view fields = "");
std::string post(std::string_view target, std::string_view body, std::string_view fields = "");

/// The `data:` of each event of a stream; comments are left out.
std::vector<std::string> events(std::string_view body);

}   // namespace duet::http::tests
