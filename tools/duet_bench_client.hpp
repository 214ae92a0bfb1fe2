// duet_bench_client.hpp: many readers of streams on one thread, cheap beside what they measure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::tools {

/// A non-blocking TCP connection to this host that is read to its end or to a mark.
class BenchStream {
 public:
  explicit BenchStream(std::uint16_t port);   ///< throws std::runtime_error.
  ~BenchStream();
  BenchStream(const BenchStream&) = delete;
  BenchStream& operator=(const BenchStream&) = delete;

  /// Writes all of a request; the answer then ends with the last chunk of chunked transfer.
  void send(std::string_view request);
  /// Reads what is there. `mark` is true for a stream whose first token is timed.
  void read();

  int descriptor = -1;
  bool ended = true;         ///< the answer is complete.
  bool timed = false;        ///< look for the first token.
  std::uint64_t bytes = 0;   ///< of the answer under way, or the last one.
  std::uint64_t reads = 0;
  std::chrono::steady_clock::time_point sent;
  std::optional<std::chrono::steady_clock::time_point> first_token;
  std::string tail;   ///< the last bytes of the answer.

 private:
  void look_for_first_token(std::string_view piece);
  std::string head_;   // until the first token was seen
};

/// Waits for its streams. They must outlive it.
class BenchReaders {
 public:
  BenchReaders();
  ~BenchReaders();
  BenchReaders(const BenchReaders&) = delete;
  BenchReaders& operator=(const BenchReaders&) = delete;

  void add(BenchStream& stream);
  /// Reads whatever can be read; waits until something can. Throws after a minute without.
  /// Returns the streams whose answer has ended.
  const std::vector<BenchStream*>& step();

 private:
  int epoll_ = -1;
  std::vector<BenchStream*> ended_;
};

/// The body of a GET. Blocking, on a connection of its own.
[[nodiscard]] std::string fetch(std::uint16_t port, const std::string& path);

}   // namespace duet::tools
