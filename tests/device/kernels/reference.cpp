// reference.cpp: `numerics: 1` in plain scalar loops; what docs/numerics.md says, and nothing else.
#include "tests/device/kernels/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace duet::device::test::reference {

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

std::uint16_t half_bits(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7e00;
  const double magnitude = std::abs(static_cast<double>(value));
  // Positive halves are ordered as their bits; 0x7c00 stands for 65536 here, where rounding begins
  // to give infinity.
  const auto number = [](std::uint32_t bits) {
    return bits == 0x7c00 ? 65536.0 : half_value(static_cast<std::uint16_t>(bits));
  };
  if (magnitude >= 65536.0) return sign | 0x7c00;
  std::uint32_t low = 0;
  std::uint32_t high = 0x7c00;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (number(middle) <= magnitude ? low : high) = middle;
  }
  const double down = magnitude - number(low);
  const double up = number(high) - magnitude;
  const bool take_high = up < down || (up == down && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (take_high ? high : low));
}

std::uint16_t brain_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t low = bits & 0xffff0000U;
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  if (std::isinf(value)) return static_cast<std::uint16_t>(bits >> 16);
  const std::uint32_t rest = bits & 0xffffU;
  const bool up = rest > 0x8000U || (rest == 0x8000U && (low >> 16) % 2 == 1);
  return static_cast<std::uint16_t>((low >> 16) + (up ? 1 : 0));
}

Quantized quantize_exact(const std::vector<float>& x) {
  Quantized out;
  for (std::size_t block = 0; block < x.size(); block += 32) {
    float top = 0;
    for (std::size_t i = 0; i < 32; ++i) top = std::max(top, std::abs(x[block + i]));
    const float d = top / 127.0F;
    out.d.push_back(static_cast<float>(half_value(half_bits(d))));
    const float inverse = 1.0F / d;
    for (std::size_t i = 0; i < 32; ++i) {
      // A d that is no normal number counts as 0.
      const float scaled = d < std::numeric_limits<float>::min() ? 0 : x[block + i] * inverse;
      const double rounded = std::round(static_cast<double>(scaled));   // halves away from zero
      out.q.push_back(static_cast<std::int8_t>(std::clamp(rounded, -127.0, 127.0)));
    }
  }
  return out;
}

namespace {

float fold(const float (&lane)[8]) {
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

}   // namespace

float q8_dot_exact(const std::byte* row, const Quantized& x) {
  float lane[8] = {};
  for (std::size_t block = 0; block < x.d.size(); ++block) {
    std::uint16_t bits;
    std::memcpy(&bits, row + 34 * block, sizeof bits);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < 32; ++i)
      sum += static_cast<std::int64_t>(static_cast<std::int8_t>(row[34 * block + 2 + i])) *
             x.q[32 * block + i];
    const float scale = static_cast<float>(half_value(bits)) * x.d[block];
    const float product = static_cast<float>(sum) * scale;
    lane[block % 8] += product;
  }
  return fold(lane);
}

float f32_dot_exact(const std::vector<float>& row, const std::vector<float>& x) {
  float lane[8] = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float product = row[i] * x[i];
    lane[i % 8] += product;
  }
  return fold(lane);
}

std::vector<double> rms_norm(const std::vector<float>& x, const std::vector<float>& weight,
                             float epsilon) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  const double factor = 1 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
  std::vector<double> out;
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(x[i] * factor * weight[i]);
  return out;
}

std::vector<double> rope(const std::vector<float>& head, std::size_t dims, double base,
                         std::size_t position, bool neox) {
  std::vector<double> out(head.begin(), head.end());
  for (std::size_t i = 0; i < dims / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dims);
    const double angle = static_cast<double>(position) * std::pow(base, exponent);
    const std::size_t first = neox ? i : 2 * i;
    const std::size_t second = neox ? i + dims / 2 : 2 * i + 1;
    out[first] = head[first] * std::cos(angle) - head[second] * std::sin(angle);
    out[second] = head[first] * std::sin(angle) + head[second] * std::cos(angle);
  }
  return out;
}

std::vector<double> attention(const std::vector<float>& query,
                              const std::vector<std::vector<float>>& keys,
                              const std::vector<std::vector<float>>& values) {
  std::vector<double> score;
  for (const std::vector<float>& key : keys) {
    double dot = 0;
    for (std::size_t i = 0; i < query.size(); ++i) dot += static_cast<double>(query[i]) * key[i];
    score.push_back(dot / std::sqrt(static_cast<double>(query.size())));
  }
  const double top = *std::max_element(score.begin(), score.end());
  double total = 0;
  for (double& s : score) total += s = std::exp(s - top);
  std::vector<double> out(query.size());
  for (std::size_t p = 0; p < keys.size(); ++p)
    for (std::size_t i = 0; i < query.size(); ++i) out[i] += score[p] / total * values[p][i];
  return out;
}

}   // namespace duet::device::test::reference
