// host_memory.cpp: mmap of anonymous pages.
#include "device/emulator/host_memory.hpp"

#include <sys/mman.h>

#include <limits>
#include <new>
#include <utility>

namespace duet::device::emulator {

HostMemory::HostMemory(std::uint64_t bytes) {
  if (bytes == 0) return;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw std::bad_alloc{};
  // Not reserved: a package may set aside more key/value memory than a test machine has.
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc{};
  // Weights are read from end to end for each token; without huge pages the TLB limits that. It is
  // advice, so a refusal changes nothing.
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  bytes_ = {static_cast<std::byte*>(memory), static_cast<std::size_t>(bytes)};
}

HostMemory::HostMemory(HostMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  if (this != &other) {
    release();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

HostMemory::~HostMemory() {
  release();
}

void HostMemory::make_read_only() noexcept {
  if (!bytes_.empty()) ::mprotect(bytes_.data(), bytes_.size(), PROT_READ);
}

void HostMemory::release() noexcept {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

}   // namespace duet::device::emulator
