// duet_bench_memory.cpp: big blocks of memory on huge pages, and how fast they can be read.
#include "tools/duet_bench_memory.hpp"

#include <sys/mman.h>
#include <cstring>
#include <new>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/duet_bench_memory.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace duet::tools {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

std::uint64_t sum(const std::uint64_t* words, std::size_t count) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t step = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (std::size_t i = 0; i < count; i += 8 * step) {
    const std::uint64_t* p = words + i;
    s0 = hn::Add(s0, hn::LoadU(d, p));
    s1 = hn::Add(s1, hn::LoadU(d, p + step));
    s2 = hn::Add(s2, hn::LoadU(d, p + 2 * step));
    s3 = hn::Add(s3, hn::LoadU(d, p + 3 * step));
    s4 = hn::Add(s4, hn::LoadU(d, p + 4 * step));
    s5 = hn::Add(s5, hn::LoadU(d, p + 5 * step));
    s6 = hn::Add(s6, hn::LoadU(d, p + 6 * step));
    s7 = hn::Add(s7, hn::LoadU(d, p + 7 * step));
  }
  const auto all =
      hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  std::uint64_t lanes[8] = {};
  hn::StoreU(all, d, lanes);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < step; ++i) total += lanes[i];
  return total;
}

}   // namespace HWY_NAMESPACE
}   // namespace duet::tools
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace duet::tools {

HWY_EXPORT(sum);

std::uint64_t sum_words(std::span<const std::byte> bytes) {
  return HWY_DYNAMIC_DISPATCH(sum)(reinterpret_cast<const std::uint64_t*>(bytes.data()),
                                   bytes.size() / sizeof(std::uint64_t));
}

HugeBlock::HugeBlock(std::size_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Without huge pages the figures are lower, but still right.
  static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
  data_ = static_cast<std::byte*>(memory);
}

HugeBlock::~HugeBlock() {
  munmap(data_, bytes_);
}

void fill_random(std::span<std::byte> bytes, std::uint64_t seed) {
  std::uint64_t state = seed | 1;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    // xorshift64: good enough for weights, and far faster than memory.
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(bytes.data() + i, &state, sizeof state);
  }
}

}   // namespace duet::tools
#endif
