// assert.hpp: the three assert levels. They guard invariants of ours, never input, time, the
// network or a vendor library.
#pragma once

#include <cstddef>
#include <string_view>

namespace duet::runtime {

/// Prints the failed condition, the values given and a backtrace to stderr, then aborts. Any
/// thread; does not return.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   std::string_view values) noexcept;

namespace detail {

/// A fixed buffer, so that a failing assert needs no heap.
class AssertValues {
 public:
  void add(long long value) noexcept;
  void add(unsigned long long value) noexcept;
  void add(double value) noexcept;
  void add(std::string_view value) noexcept;
  [[nodiscard]] std::string_view view() const noexcept { return {text_, size_}; }

 private:
  char text_[512] = {};
  std::size_t size_ = 0;
};

template <typename T>
void add_assert_value(AssertValues& values, const T& value) noexcept {
  if constexpr (requires { std::string_view{value}; }) {
    values.add(std::string_view{value});
  } else if constexpr (
      requires { static_cast<double>(value) / 2.5; } && !requires { value % 2; }) {
    values.add(static_cast<double>(value));
  } else if constexpr (requires {
                         value < T{};
                         static_cast<unsigned long long>(value);
                       }) {
    if (value < T{}) {
      values.add(static_cast<long long>(value));
    } else {
      values.add(static_cast<unsigned long long>(value));
    }
  }
}

template <typename... T>
[[noreturn]] void fail_assert(const char* condition, const char* file, int line,
                              const T&... args) noexcept {
  AssertValues values;
  (add_assert_value(values, args), ...);
  assertion_failed(condition, file, line, values.view());
}

}   // namespace detail
}   // namespace duet::runtime

/// Always on. Further arguments are values to print: DUET_ASSERT(used <= size, used, size).
#define DUET_ASSERT(condition, ...)                                         \
  ((condition) ? static_cast<void>(0)                                       \
               : ::duet::runtime::detail::fail_assert(#condition, __FILE__, \
                                                      __LINE__ __VA_OPT__(, ) __VA_ARGS__))

/// For checks that cost more than the code they guard: on in Debug and under sanitizers.
#if defined(DUET_SANITIZED) || !defined(NDEBUG)
#define DUET_DEBUG_ASSERT(...) DUET_ASSERT(__VA_ARGS__)
#else
#define DUET_DEBUG_ASSERT(...) static_cast<void>(0)
#endif

/// A place that no execution can reach.
#define DUET_UNREACHABLE() \
  ::duet::runtime::assertion_failed("unreachable", __FILE__, __LINE__, std::string_view{})
