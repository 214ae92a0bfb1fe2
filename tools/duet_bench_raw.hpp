// duet_bench_raw.hpp: the cheapest thing that could stand in a server's place: it only writes.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace duet::tools {

/// What a server wrote: to how many sockets, in how many writes, how much.
struct RawLoad {
  std::uint64_t streams = 0;
  std::uint64_t writes = 0;
  std::uint64_t bytes = 0;
};

/// A forked process that writes to sockets, one after the other in turn. Make it before any thread.
class RawWriter {
 public:
  RawWriter();   ///< throws std::runtime_error.
  ~RawWriter();
  RawWriter(const RawWriter&) = delete;
  RawWriter& operator=(const RawWriter&) = delete;

  /// Connects, lets it write, reads everything. Its CPU time from the first to the last write, ns.
  [[nodiscard]] std::uint64_t write(const RawLoad& load);

 private:
  pid_t pid_ = -1;
  int control_ = -1;
  std::uint16_t port_ = 0;
};

}   // namespace duet::tools
