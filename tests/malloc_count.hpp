// malloc_count.hpp: counts every malloc of a test program. For one source file of a program of its
// own, and not beside a sanitizer, which is in malloc's place itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {
std::atomic<std::uint64_t> allocations = 0;
}   // namespace

// glibc's own entry points, so that malloc itself is counted; operator new calls it.
extern "C" void* __libc_malloc(std::size_t) noexcept;
extern "C" void* malloc(std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
