// sha256.hpp: SHA-256 of bytes, streamed and in one go (OpenSSL).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace duet::device {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Ends the stream; the object is of no further use.
  [[nodiscard]] Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] Digest sha256(std::span<const std::byte> bytes);

/// Lower-case hex.
[[nodiscard]] std::string hex_text(std::span<const std::byte> bytes);

}   // namespace duet::device
