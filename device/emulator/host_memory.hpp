// host_memory.hpp: anonymous pages that stand for a region of the board's DRAM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace duet::device::emulator {

/// Zero pages, committed when they are first written; huge ones where the system has them. Owner of
/// the mapping.
class HostMemory {
 public:
  HostMemory() = default;
  /// Throws std::bad_alloc. `bytes` may be 0.
  explicit HostMemory(std::uint64_t bytes);
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();

  [[nodiscard]] std::span<std::byte> bytes() noexcept { return bytes_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// From now on a write to it stops the process.
  void make_read_only() noexcept;

 private:
  void release() noexcept;
  std::span<std::byte> bytes_;
};

}   // namespace duet::device::emulator
