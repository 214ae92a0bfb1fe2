// transport.hpp: the byte stream below a connection: a socket in production, memory in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace duet::http {

/// Where a connection runs. Reserved: heads are read and pages are answered there, so that health
/// and metrics answer while main is busy. Main: bodies of completions are read and parsed there and
/// their answers are written, beside the actors that make them.
enum class Home : std::uint8_t { reserved, main };

enum class IoStatus : std::uint8_t {
  done,
  would_block,
  ended,    ///< reading: the other side writes no more. It may still read.
  failed,   ///< reset, or the like: the stream is dead.
};

struct IoResult {
  IoStatus status;
  std::size_t bytes = 0;   ///< with done, at least 1.
};

/// Called on the home strand, never from inside a call of the transport.
class TransportEvents {
 public:
  virtual ~TransportEvents() = default;
  virtual void on_readable() noexcept = 0;
  virtual void on_writable() noexcept = 0;
  virtual void on_hangup() noexcept = 0;   ///< the stream is dead, maybe since before the wait.
  virtual void on_wake() noexcept = 0;
  virtual void on_moved() noexcept = 0;
};

/// Every call but post_wake() is made on the home strand.
class Transport {
 public:
  virtual ~Transport() = default;

  // These never wait.
  [[nodiscard]] virtual IoResult read_some(std::span<char> into) noexcept = 0;
  [[nodiscard]] virtual IoResult write_some(std::string_view bytes) noexcept = 0;

  /// Each leads to one event later; at most one of a kind is waited for. The events' owner is kept
  /// alive by it.
  virtual void wait_readable(std::shared_ptr<TransportEvents> events) noexcept = 0;
  virtual void wait_writable(std::shared_ptr<TransportEvents> events) noexcept = 0;
  virtual void wait_hangup(std::shared_ptr<TransportEvents> events) noexcept = 0;

  /// Any thread, also after close(). Leads to one on_wake(); not called again before that.
  virtual void post_wake(std::shared_ptr<TransportEvents> events) noexcept = 0;

  [[nodiscard]] virtual bool needs_move(Home home) const noexcept = 0;
  /// Ends all waits without their events; then on_moved() comes on the new home. Until then only
  /// post_wake() may be called.
  virtual void move_to(Home home, std::shared_ptr<TransportEvents> events) noexcept = 0;

  virtual void shutdown_write() noexcept = 0;
  /// Ends all waits without their events. `abort`: what is unsent is thrown away.
  virtual void close(bool abort) noexcept = 0;
};

}   // namespace duet::http
