// assert.cpp: printing of a failed assert, without the heap.
#include "runtime/assert.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace duet::runtime {

void assertion_failed(const char* condition, const char* file, int line,
                      std::string_view values) noexcept {
  char text[1024];
  const int size =
      std::snprintf(text, sizeof text, "%s:%d: assertion failed: %s%s%.*s\n", file, line, condition,
                    values.empty() ? "" : " with ", static_cast<int>(values.size()), values.data());
  if (size > 0) {
    const auto length = static_cast<std::size_t>(size) < sizeof text
                            ? static_cast<std::size_t>(size)
                            : sizeof text - 1;
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, length);
  }
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  std::abort();
}

namespace detail {

void AssertValues::add(long long value) noexcept {
  char text[32];
  std::snprintf(text, sizeof text, "%lld", value);
  add(std::string_view{text});
}

void AssertValues::add(unsigned long long value) noexcept {
  char text[32];
  std::snprintf(text, sizeof text, "%llu", value);
  add(std::string_view{text});
}

void AssertValues::add(double value) noexcept {
  char text[64];
  std::snprintf(text, sizeof text, "%g", value);
  add(std::string_view{text});
}

void AssertValues::add(std::string_view value) noexcept {
  if (size_ > 0 && size_ + 2 < sizeof text_) {
    text_[size_++] = ',';
    text_[size_++] = ' ';
  }
  const std::size_t room = sizeof text_ - size_ - 1;
  const std::size_t count = value.size() < room ? value.size() : room;
  std::memcpy(text_ + size_, value.data(), count);
  size_ += count;
}

}   // namespace detail
}   // namespace duet::runtime
