// exponential.hpp: exp() that gives the same bits on every machine, for reproducible sampling.
#pragma once

#include <bit>
#include <cstdint>

namespace duet::text {

/// exp(x) for x <= 0, with a relative error below 1e-15; 0 below -708, where doubles lose
/// precision. The C library's differs between processors in its last bit, which could change a
/// sampled token. Order and kind of the operations are fixed (the tree is built without contraction
/// of a product and a sum).
[[nodiscard]] constexpr double portable_exp(double x) noexcept {
  if (!(x > -708.0)) return 0.0;
  if (x >= 0.0) return 1.0;
  // x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 is given in two parts, the first exact times n.
  const double scaled = x * 1.4426950408889634;
  const auto n = static_cast<std::int64_t>(scaled - 0.5);   // towards zero: the nearest, x < 0
  const double r = (x - static_cast<double>(n) * 0x1.62e42feep-1) -
                   static_cast<double>(n) * 0x1.a39ef35793c76p-33;
  // Taylor's series up to r^13 / 13!: the rest is below 2e-17.
  double sum = 1.0 / 6227020800.0;
  constexpr double factorials[] = {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0,
                                   5040.0,      720.0,      120.0,     24.0,     6.0,
                                   2.0,         1.0,        1.0};
  for (const double factorial : factorials) sum = sum * r + 1.0 / factorial;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52U);
}

}   // namespace duet::text
