// duet_bench_memory.hpp: big blocks of memory on huge pages, and how fast they can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace duet::tools {

/// Anonymous memory that the kernel is asked to back with huge pages. Throws std::bad_alloc.
class HugeBlock {
 public:
  explicit HugeBlock(std::size_t bytes);
  ~HugeBlock();
  HugeBlock(const HugeBlock&) = delete;
  HugeBlock& operator=(const HugeBlock&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

/// Fills with pseudo-random bits, quickly.
void fill_random(std::span<std::byte> bytes, std::uint64_t seed);

/// Sum of all 64-bit words with the widest vectors of this CPU, eight sums side by side. The size
/// must be a multiple of 1024.
[[nodiscard]] std::uint64_t sum_words(std::span<const std::byte> bytes);

}   // namespace duet::tools
