// rope_table.cpp: cosines and sines of rotary positions, computed once, in double, without libm.
#include "device/kernels/rope_table.hpp"

#include <bit>
#include <cstddef>

namespace duet::device {
namespace {

constexpr double ln2 = 0.693147180559945309417;

std::int64_t nearest(double x) {
  return static_cast<std::int64_t>(x < 0 ? x - 0.5 : x + 0.5);
}

/// sin(r) for |r| <= pi/4: Taylor to r^17; what is left out is below 1e-19.
double sine_near_zero(double r) {
  const double s = r * r;
  double sum = 0;
  for (int k = 17; k >= 3; k -= 2) sum = (sum + 1) * -s / (k * (k - 1));
  return r + r * sum;
}

/// cos(r) for |r| <= pi/4: Taylor to r^18.
double cosine_near_zero(double r) {
  const double s = r * r;
  double sum = 0;
  for (int k = 18; k >= 2; k -= 2) sum = (sum + 1) * -s / (k * (k - 1));
  return 1 + sum;
}

}   // namespace

double own_log2(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.41421356237309504880) {
    m /= 2;
    ++exponent;
  }
  // ln m = 2 atanh(z), |z| <= 0.1716: z^25/25 is below 1e-20.
  const double z = (m - 1) / (m + 1);
  const double s = z * z;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * s + 1.0 / k;
  return exponent + 2 * z * sum / ln2;
}

double own_exp2(double x) {
  const std::int64_t n = nearest(x);
  const double r = (x - static_cast<double>(n)) * ln2;
  // |r| <= 0.3466: r^16/16! is below 1e-20.
  double sum = 1;
  for (int k = 16; k >= 1; --k) sum = 1 + r * sum / k;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

void own_sincos(double x, double& sine, double& cosine) {
  // pi/2 in three parts; the first two have 33 bits, so that for |n| < 2^20 the products are exact.
  constexpr double part1 = 1.57079632673412561417e+00;
  constexpr double part2 = 6.07710050630396597660e-11;
  constexpr double part3 = 2.02226624879595063154e-21;
  constexpr double two_over_pi = 0.636619772367581343076;
  const std::int64_t n = nearest(x * two_over_pi);
  const auto turns = static_cast<double>(n);
  const double r = ((x - turns * part1) - turns * part2) - turns * part3;
  const double s = sine_near_zero(r);
  const double c = cosine_near_zero(r);
  switch (n & 3) {
    case 0:
      sine = s;
      cosine = c;
      return;
    case 1:
      sine = c;
      cosine = -s;
      return;
    case 2:
      sine = -s;
      cosine = -c;
      return;
    default:
      sine = -c;
      cosine = s;
  }
}

RopeTable make_rope_table(std::uint32_t positions, std::uint32_t dims, float base) {
  RopeTable table;
  table.dims = dims;
  table.base = base;
  const std::size_t half = dims / 2;
  std::vector<double> frequency(half);
  const double log_base = own_log2(static_cast<double>(base));
  for (std::size_t i = 0; i < half; ++i)
    frequency[i] = own_exp2(-2.0 * static_cast<double>(i) / dims * log_base);
  table.cosine.resize(positions * half);
  table.sine.resize(positions * half);
  for (std::size_t p = 0; p < positions; ++p) {
    for (std::size_t i = 0; i < half; ++i) {
      double s = 0;
      double c = 0;
      own_sincos(static_cast<double>(p) * frequency[i], s, c);
      table.cosine[p * half + i] = static_cast<float>(c);
      table.sine[p * half + i] = static_cast<float>(s);
    }
  }
  return table;
}

}   // namespace duet::device
