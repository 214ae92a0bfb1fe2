// chip_memory.hpp: who holds which addresses of one chip's DRAM. Bookkeeping only, no bytes.
#pragma once

#include "device/contract/error.hpp"
#include "device/package/manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duet::device::emulator {

/// Regions are kept sorted by address and never overlap. Not thread-safe.
class ChipMemory {
 public:
  struct Region {
    std::string owner;   ///< the model.
    std::string name;    ///< the section.
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    SectionKind kind = SectionKind::program;
  };

  explicit ChipMemory(std::uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

  /// `bytes` > 0. Errors: out_of_memory if it ends past the capacity, package_invalid if it
  /// overlaps another region; nothing is placed then.
  result<void> place(Region region);
  void clear() noexcept;

  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept { return capacity_; }
  [[nodiscard]] std::uint64_t used_bytes() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t used_bytes_of(const std::string& owner) const noexcept;
  [[nodiscard]] const std::vector<Region>& regions() const noexcept { return regions_; }

 private:
  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
  std::vector<Region> regions_;
};

}   // namespace duet::device::emulator
