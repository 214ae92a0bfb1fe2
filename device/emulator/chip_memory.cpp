// chip_memory.cpp: places regions in address order and refuses overlap and overflow.
#include "device/emulator/chip_memory.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <utility>

namespace duet::device::emulator {

result<void> ChipMemory::place(Region region) {
  DUET_ASSERT(region.bytes > 0);
  // Written so that nothing can wrap round.
  if (region.address > capacity_ || region.bytes > capacity_ - region.address) {
    return Failure{errc::out_of_memory,
                   "section \"" + region.name + "\" (" + std::to_string(region.bytes) +
                       " bytes at " + std::to_string(region.address) +
                       ") ends past the chip's memory of " + std::to_string(capacity_) + " bytes"};
  }
  const auto next = std::lower_bound(
      regions_.begin(), regions_.end(), region.address,
      [](const Region& placed, std::uint64_t address) { return placed.address < address; });
  const auto refuse = [&](const Region& other) {
    return Failure{errc::package_invalid,
                   "section \"" + region.name + "\" overlaps section \"" + other.name + "\""};
  };
  if (next != regions_.end() && next->address < region.address + region.bytes) {
    return refuse(*next);
  }
  if (next != regions_.begin() && (next - 1)->address + (next - 1)->bytes > region.address) {
    return refuse(*(next - 1));
  }
  used_ += region.bytes;
  DUET_ASSERT(used_ <= capacity_, used_, capacity_);
  regions_.insert(next, std::move(region));
  return {};
}

void ChipMemory::clear() noexcept {
  regions_.clear();
  used_ = 0;
}

std::uint64_t ChipMemory::used_bytes_of(const std::string& owner) const noexcept {
  std::uint64_t sum = 0;
  for (const Region& region : regions_) {
    if (region.owner == owner) sum += region.bytes;
  }
  return sum;
}

}   // namespace duet::device::emulator
