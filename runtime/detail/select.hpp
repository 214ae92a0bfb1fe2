// select.hpp: a choice without a branch.
#pragma once

namespace duet::runtime::detail {

/// `condition ? yes : no`. For conditions that are as good as random, such as whether a receiver is
/// idle: a branch would be mispredicted every other time, which costs about twenty cycles.
/// Compilers are asked for a conditional move.
template <typename T>
[[nodiscard, gnu::always_inline]] inline T* select(bool condition, T* yes, T* no) noexcept {
  __asm__("" : "+r"(condition));   // else they go two ways from here on
  return __builtin_expect_with_probability(static_cast<long>(condition), 1, 0.5) ? yes : no;
}

}   // namespace duet::runtime::detail
