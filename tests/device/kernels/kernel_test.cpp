// kernel_test.cpp: every kernel against the scalar reference, on every SIMD target.
#include "device/kernels/half.hpp"
#include "device/kernels/kernels.hpp"
#include "device/kernels/rope_table.hpp"
#include "tests/device/kernels/reference.hpp"
#include "tests/device/kernels/targets.hpp"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace duet::device::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> random_floats(std::mt19937& random, std::size_t n, float spread = 1) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> out(n);
  for (float& x : out) x = normal(random);
  return out;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float v : values) bits.push_back(std::bit_cast<std::uint32_t>(v));
  return bits;
}

/// Q8_0 rows with every int8, -128 among them, and scales of both signs.
std::vector<std::byte> random_q8(std::mt19937& random, std::size_t rows, std::size_t columns) {
  std::vector<std::byte> out(rows * columns / 32 * 34);
  for (std::size_t at = 0; at < out.size(); at += 34) {
    const auto scale =
        static_cast<std::uint16_t>((random() & 0x8000U) | (0x1000U + random() % 0x1800U));
    std::memcpy(&out[at], &scale, sizeof scale);
    for (std::size_t i = 2; i < 34; ++i) out[at + i] = static_cast<std::byte>(random() & 0xffU);
  }
  return out;
}

/// Memory at a multiple of 64, as the executor gives it to kernels.
class Aligned {
 public:
  explicit Aligned(std::size_t bytes) : memory_(bytes + 64) {}
  std::byte* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (64 - address % 64) % 64;
  }

 private:
  std::vector<std::byte> memory_;
};

/// A tile of quantised tokens with strides as in a workspace.
struct TokenRows {
  TokenRows(std::mt19937& random, std::size_t tokens, std::size_t columns)
      : q_stride((columns + 63) / 64 * 64),
        d_stride((columns / 32 + 7) / 8 * 8),
        q(tokens * q_stride),
        d(tokens * d_stride) {
    for (std::size_t t = 0; t < tokens; ++t) {
      x.push_back(random_floats(random, columns));
      expected.push_back(reference::quantize_exact(x.back()));
      kernels().quantize(x.back().data(), columns, &q[t * q_stride], &d[t * d_stride]);
    }
  }
  Q8Rows rows() { return {q.data(), d.data(), q_stride, d_stride}; }

  std::size_t q_stride;
  std::size_t d_stride;
  std::vector<std::int8_t> q;
  std::vector<float> d;
  std::vector<std::vector<float>> x;
  std::vector<reference::Quantized> expected;
};

void check_q8_matmul(std::mt19937& random, std::uint32_t columns, std::uint32_t tokens, bool bias,
                     bool accumulate) {
  constexpr std::uint32_t rows = 11, first = 2, count = 7;
  const std::vector<std::byte> weights = random_q8(random, rows, columns);
  const std::vector<float> biases = random_floats(random, rows);
  TokenRows in(random, tokens, columns);
  std::vector<float> out(std::size_t{tokens} * rows, 0.25F);
  Aligned scratch(matmul_scratch_bytes(columns, tokens));
  Matmul m;
  m.weights = weights.data();
  m.bias = bias ? biases.data() : nullptr;
  m.columns = columns;
  m.first = first;
  m.count = count;
  m.tokens = tokens;
  m.accumulate = accumulate;
  m.in_q8 = in.rows();
  m.out = {out.data(), rows};
  m.scratch = scratch.data();
  kernels().matmul_q8(m);

  std::vector<float> expected(out.size(), 0.25F);
  for (std::uint32_t t = 0; t < tokens; ++t) {
    for (std::uint32_t r = first; r < first + count; ++r) {
      float value = reference::q8_dot_exact(&weights[r * columns / 32 * 34], in.expected[t]);
      if (bias) value += biases[r];
      expected[t * rows + r] = accumulate ? 0.25F + value : value;
    }
  }
  BOOST_TEST(bits_of(out) == bits_of(expected), columns << " columns, " << tokens << " tokens"
                                                        << (bias ? ", bias" : "")
                                                        << (accumulate ? ", accumulate" : ""));
}

double largest_error(const std::vector<float>& got, const std::vector<double>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - expected[i]));
  return worst;
}

/// Attention over a random cache, all of its unused positions poisoned with NaN.
void check_attention(std::mt19937& random, bool bf16, std::uint32_t head_dim,
                     std::uint32_t kv_heads, std::uint32_t group, std::uint32_t past,
                     std::uint32_t tokens) {
  const std::uint32_t heads = kv_heads * group;
  const std::uint32_t positions = past + tokens;
  const std::size_t row = std::size_t{kv_heads} * head_dim;
  std::vector<std::vector<float>> keys, values;
  std::vector<float> k32, v32;
  std::vector<std::uint16_t> k16, v16;
  for (std::uint32_t p = 0; p < positions + 70; ++p) {
    std::vector<float> k = random_floats(random, row), v = random_floats(random, row);
    for (std::vector<float>* x : {&k, &v}) {
      for (float& e : *x) {
        if (p >= positions) e = std::numeric_limits<float>::quiet_NaN();
        if (bf16) e = bf16_to_f32(reference::brain_bits(e));
        (x == &k ? k32 : v32).push_back(e);
        (x == &k ? k16 : v16).push_back(reference::brain_bits(e));
      }
    }
    keys.push_back(k);
    values.push_back(v);
  }
  const std::vector<float> in = random_floats(random, std::size_t{tokens} * heads * head_dim, 2);
  std::vector<float> out(in.size());
  Aligned scratch(attention_scratch_bytes(head_dim, group, tokens));
  Attention a;
  // Kernels only read queries.
  a.in = {const_cast<float*>(in.data()), std::size_t{heads} * head_dim};
  a.out = {out.data(), std::size_t{heads} * head_dim};
  a.keys =
      bf16 ? reinterpret_cast<std::byte*>(k16.data()) : reinterpret_cast<std::byte*>(k32.data());
  a.values =
      bf16 ? reinterpret_cast<std::byte*>(v16.data()) : reinterpret_cast<std::byte*>(v32.data());
  a.kv_heads = kv_heads;
  a.head_dim = head_dim;
  a.group = group;
  a.count = heads;
  a.tokens = tokens;
  a.past = past;
  a.scratch = scratch.data();
  (bf16 ? kernels().attention_bf16 : kernels().attention_f32)(a);

  double worst = 0;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    for (std::uint32_t h = 0; h < heads; ++h) {
      const std::size_t at = (std::size_t{t} * heads + h) * head_dim;
      const std::vector<float> query(&in[at], &in[at] + head_dim);
      const auto slice = [&](const std::vector<std::vector<float>>& all) {
        std::vector<std::vector<float>> part;
        for (std::uint32_t p = 0; p <= past + t; ++p) {
          const auto begin = all[p].begin() + static_cast<std::ptrdiff_t>(h / group * head_dim);
          part.emplace_back(begin, begin + head_dim);
        }
        return part;
      };
      const std::vector<float> got(&out[at], &out[at] + head_dim);
      worst = std::max(worst,
                       largest_error(got, reference::attention(query, slice(keys), slice(values))));
    }
  }
  BOOST_TEST(worst < 4e-6, "head_dim " << head_dim << " group " << group << " past " << past
                                       << " tokens " << tokens << ": " << worst);
}

}   // namespace

// R-13.1 (golden): the arithmetic that goldens are judged by.
BOOST_AUTO_TEST_SUITE(kernels_scalar_reference)

BOOST_AUTO_TEST_CASE(every_f16_widens_exactly_and_comes_back) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (std::isnan(value)) {
      BOOST_REQUIRE(std::isnan(reference::half_value(half)));
      continue;
    }
    BOOST_REQUIRE_EQUAL(value, reference::half_value(half));
    BOOST_REQUIRE_EQUAL(f32_to_f16(value), half);
  }
}

BOOST_AUTO_TEST_CASE(floats_round_to_the_nearest_f16_and_bf16_with_ties_to_even) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    // Every second one lies on or beside the middle of two halves, subnormal ones among them.
    if (i % 2 == 1) {
      const auto low = static_cast<std::uint16_t>(random() % 0x7bff);
      value = static_cast<float>((reference::half_value(low) + reference::half_value(low + 1)) / 2);
      if (i % 4 == 1) value = std::nextafter(value, i % 8 == 1 ? infinity : -infinity);
    }
    BOOST_REQUIRE_EQUAL(f32_to_f16(value), reference::half_bits(value));
    BOOST_REQUIRE_EQUAL(f32_to_bf16(value), reference::brain_bits(value));
  }
  BOOST_TEST(f32_to_f16(65519.996F) == 0x7bff);
  BOOST_TEST(f32_to_f16(65520.0F) == 0x7c00);
  BOOST_TEST(f32_to_f16(infinity) == 0x7c00);
}

BOOST_AUTO_TEST_CASE(quantising_is_the_reference_bit_for_bit) {
  on_every_target([](const std::string&) {
    std::mt19937 random(2);
    for (int round = 0; round < 400; ++round) {
      std::vector<float> x = random_floats(random, 96, std::pow(10.0F, float(round % 40 - 30)));
      if (round % 5 == 1) {
        // Products on and beside the halves, where rounding is decided.
        for (std::size_t i = 0; i < 32; ++i) {
          x[i] = (static_cast<float>(i) + 0.5F) * (i % 2 == 0 ? 1.0F : -1.0F);
          if (i % 3 == 1) x[i] = std::nextafter(x[i], 0.0F);
        }
        x[7] = 127;
      }
      if (round % 5 == 2) std::fill(x.begin(), x.begin() + 32, 0.0F);
      if (round % 5 == 3) std::fill(x.begin() + 32, x.begin() + 64, -1e-39F);
      const reference::Quantized expected = reference::quantize_exact(x);
      std::vector<std::int8_t> q(96);
      std::vector<float> d(3);
      kernels().quantize(x.data(), x.size(), q.data(), d.data());
      BOOST_TEST(q == expected.q, boost::test_tools::per_element());
      BOOST_TEST(bits_of(d) == bits_of(expected.d));
    }
  });
}

BOOST_AUTO_TEST_CASE(quantising_does_not_hide_what_is_not_finite) {
  on_every_target([](const std::string&) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
      for (std::size_t at = 0; at < 32; ++at) {
        std::vector<float> x(32, 0.5F);
        x[at] = bad;
        std::vector<std::int8_t> q(32);
        float d = 0;
        kernels().quantize(x.data(), x.size(), q.data(), &d);
        BOOST_TEST(!std::isfinite(d));
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(int8_products_are_the_reference_bit_for_bit) {
  on_every_target([](const std::string&) {
    std::mt19937 random(3);
    for (std::uint32_t blocks = 1; blocks <= 26; ++blocks)
      for (const std::uint32_t tokens : {1U, 2U, 3U, 4U, 5U, 9U})
        check_q8_matmul(random, 32 * blocks, tokens, blocks % 2 == 0, blocks % 3 == 0);
  });
}

BOOST_AUTO_TEST_CASE(the_largest_int8_products_do_not_overflow) {
  on_every_target([](const std::string&) {
    for (const int weight : {-128, 127}) {
      for (const float sign : {-1.0F, 1.0F}) {
        for (const std::uint32_t tokens : {1U, 4U}) {
          constexpr std::uint32_t columns = 512, rows = 2;
          std::vector<std::byte> weights(rows * columns / 32 * 34, static_cast<std::byte>(weight));
          const std::uint16_t one = 0x3c00;
          for (std::size_t at = 0; at < weights.size(); at += 34)
            std::memcpy(&weights[at], &one, sizeof one);
          std::vector<std::int8_t> q(tokens * columns, static_cast<std::int8_t>(127 * sign));
          std::vector<float> d(tokens * columns / 32, 1.0F);
          std::vector<float> out(tokens * rows);
          Aligned scratch(matmul_scratch_bytes(columns, tokens));
          Matmul m;
          m.weights = weights.data();
          m.columns = columns;
          m.count = rows;
          m.tokens = tokens;
          m.in_q8 = {q.data(), d.data(), columns, columns / 32};
          m.out = {out.data(), rows};
          m.scratch = scratch.data();
          kernels().matmul_q8(m);
          for (const float value : out) BOOST_TEST(value == 512.0F * 127 * sign * weight);
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(float_products_are_the_reference_bit_for_bit_for_every_type) {
  on_every_target([](const std::string&) {
    std::mt19937 random(4);
    constexpr std::uint32_t columns = 224, rows = 7, tokens = 3;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
      std::vector<std::vector<float>> wide;
      std::vector<std::byte> weights;
      for (std::uint32_t r = 0; r < rows; ++r) {
        const std::vector<std::byte> q8 = random_q8(random, 1, columns);
        std::vector<float> row = random_floats(random, columns);
        for (std::uint32_t i = 0; i < columns; ++i) {
          std::uint16_t half = 0;
          if (dtype == DType::q8_0) {
            std::memcpy(&half, &q8[i / 32 * 34], 2);
            row[i] = static_cast<float>(static_cast<std::int8_t>(q8[i / 32 * 34 + 2 + i % 32])) *
                     static_cast<float>(reference::half_value(half));
            continue;
          }
          if (dtype == DType::f16) row[i] = f16_to_f32(half = f32_to_f16(row[i]));
          if (dtype == DType::bf16) row[i] = bf16_to_f32(half = f32_to_bf16(row[i]));
          const auto* bytes = dtype == DType::f32 ? reinterpret_cast<const std::byte*>(&row[i])
                                                  : reinterpret_cast<const std::byte*>(&half);
          weights.insert(weights.end(), bytes, bytes + (dtype == DType::f32 ? 4 : 2));
        }
        if (dtype == DType::q8_0) weights.insert(weights.end(), q8.begin(), q8.end());
        wide.push_back(row);
      }
      std::vector<float> in = random_floats(random, tokens * columns);
      std::vector<float> out(tokens * rows);
      Aligned scratch(matmul_scratch_bytes(columns, tokens));
      Matmul m;
      m.dtype = dtype;
      m.weights = weights.data();
      m.columns = columns;
      m.count = rows;
      m.tokens = tokens;
      m.in_f32 = {in.data(), columns};
      m.out = {out.data(), rows};
      m.scratch = scratch.data();
      kernels().matmul_f32(m);
      std::vector<float> expected;
      for (std::uint32_t t = 0; t < tokens; ++t)
        for (std::uint32_t r = 0; r < rows; ++r)
          expected.push_back(reference::f32_dot_exact(
              wide[r], {in.begin() + t * columns, in.begin() + (t + 1) * columns}));
      BOOST_TEST(bits_of(out) == bits_of(expected), "type " << static_cast<unsigned>(dtype));
    }
  });
}

BOOST_AUTO_TEST_CASE(norms_are_within_two_units_of_the_last_place) {
  on_every_target([](const std::string&) {
    std::mt19937 random(5);
    for (const std::size_t n : {std::size_t{8}, std::size_t{32}, std::size_t{896}}) {
      const std::vector<float> x = random_floats(random, n, 3), w = random_floats(random, n);
      std::vector<float> y(n);
      kernels().rms_norm_f32(x.data(), w.data(), 1e-5F, n, y.data());
      const std::vector<double> expected = reference::rms_norm(x, w, 1e-5F);
      for (std::size_t i = 0; i < n; ++i)
        BOOST_TEST(std::abs(y[i] - expected[i]) <= 3e-7 * std::abs(expected[i]));
      if (n % 32 != 0) continue;
      std::vector<std::int8_t> q(n);
      std::vector<float> d(n / 32);
      kernels().rms_norm_q8(x.data(), w.data(), 1e-5F, n, q.data(), d.data());
      const reference::Quantized quantized = reference::quantize_exact(y);
      BOOST_TEST(q == quantized.q);
      BOOST_TEST(d == quantized.d);
    }
  });
}

BOOST_AUTO_TEST_CASE(the_exponential_is_within_3e_7_and_the_same_on_every_target) {
  std::vector<std::uint32_t> first;
  on_every_target([&](const std::string& target) {
    std::vector<float> x;
    for (float v = -90; v <= 88; v += 0.00371F) x.push_back(v);
    while (x.size() % 8 != 0) x.push_back(0);
    std::vector<float> y(x.size());
    kernels().exponential(x.data(), x.size(), y.data());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] < -87) {
        BOOST_TEST(y[i] == 0);
        continue;
      }
      const double expected = std::exp(static_cast<double>(x[i]));
      worst = std::max(worst, std::abs(y[i] - expected) / expected);
    }
    std::cout << "exp on " << target << ": largest relative error " << worst << '\n';
    BOOST_TEST(worst < 3e-7);
    if (first.empty()) first = bits_of(y);
    BOOST_TEST(bits_of(y) == first);
    const std::vector<float> odd{
        std::numeric_limits<float>::quiet_NaN(), -infinity, 0, -0.0F, -1e-30F, -1000, 88, 1};
    std::vector<float> z(8);
    kernels().exponential(odd.data(), 8, z.data());
    BOOST_TEST(std::isnan(z[0]));
    BOOST_TEST(z[1] == 0);
    BOOST_TEST(z[2] == 1);
    BOOST_TEST(z[5] == 0);
  });
}

BOOST_AUTO_TEST_CASE(swiglu_is_close_and_finite_for_every_gate) {
  on_every_target([](const std::string&) {
    std::vector<float> gate, up;
    for (float v = -200; v <= 200; v += 0.0625F) {
      gate.push_back(v);
      up.push_back(1.5F);
    }
    gate.resize(gate.size() / 8 * 8);
    std::vector<float> y(gate.size());
    kernels().swiglu(gate.data(), up.data(), gate.size(), y.data());
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      const double expected = g / (1 + std::exp(-g)) * 1.5;
      BOOST_TEST(std::abs(y[i] - expected) <= 6e-7 * std::abs(expected) + 1e-35);
    }
  });
}

BOOST_AUTO_TEST_CASE(rope_turns_pairs_of_neighbours_or_of_halves) {
  on_every_target([](const std::string&) {
    std::mt19937 random(6);
    for (const bool neox : {false, true}) {
      for (const std::uint32_t dims : {2U, 6U, 24U, 32U, 64U}) {
        constexpr std::uint32_t head_dim = 64, heads = 3;
        const RopeTable table = make_rope_table(600, dims, 10000);
        for (const std::size_t position : {std::size_t{0}, std::size_t{1}, std::size_t{599}}) {
          const std::vector<float> x = random_floats(random, heads * head_dim);
          std::vector<float> y = x;
          const std::size_t at = position * (dims / 2);
          kernels().rope(
              {y.data(), heads, head_dim, dims, neox, &table.cosine[at], &table.sine[at]});
          for (std::uint32_t h = 0; h < heads; ++h) {
            const auto from = static_cast<std::ptrdiff_t>(h * head_dim);
            const std::vector<double> expected = reference::rope(
                {x.begin() + from, x.begin() + from + head_dim}, dims, 10000, position, neox);
            const std::vector<float> got(y.begin() + from, y.begin() + from + head_dim);
            BOOST_TEST(largest_error(got, expected) < 1e-6);
          }
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(rope_tables_are_rounded_from_values_within_1e_10) {
  double worst = 0;
  for (const double x : {0.0, 0.1, 0.7853981, 1.0, 3.14159, 100.0, 4095.5, 262143.25, 1048575.0}) {
    double s = 0, c = 0;
    own_sincos(x, s, c);
    worst = std::max({worst, std::abs(s - std::sin(x)), std::abs(c - std::cos(x))});
    own_sincos(-x, s, c);
    worst = std::max({worst, std::abs(s - std::sin(-x)), std::abs(c - std::cos(-x))});
  }
  BOOST_TEST(worst < 1e-12);
  for (const double x : {1.0, 2.0, 10.0, 10000.0, 500000.0, 1e6, 1e7})
    BOOST_TEST(std::abs(own_log2(x) - std::log2(x)) <= 1e-15 * std::log2(x));
  for (double x = -30; x <= 5; x += 0.37)
    BOOST_TEST(std::abs(own_exp2(x) - std::exp2(x)) <= 1e-15 * std::exp2(x));

  worst = 0;
  std::size_t other = 0;
  std::size_t all = 0;
  for (const float base : {10000.0F, 1e6F}) {
    constexpr std::uint32_t positions = 20000, dims = 64;
    const RopeTable table = make_rope_table(positions, dims, base);
    for (std::uint32_t p = 0; p < positions; p += 7) {
      for (std::uint32_t i = 0; i < dims / 2; ++i) {
        const double angle = p * std::pow(static_cast<double>(base), -2.0 * i / dims);
        const std::size_t at = std::size_t{p} * (dims / 2) + i;
        worst = std::max({worst, std::abs(table.cosine[at] - std::cos(angle)),
                          std::abs(table.sine[at] - std::sin(angle))});
        other += table.cosine[at] != static_cast<float>(std::cos(angle));
        other += table.sine[at] != static_cast<float>(std::sin(angle));
        all += 2;
      }
    }
  }
  std::cout << "RoPE tables: " << other << " of " << all
            << " differ from libm's, largest difference from the double " << worst << '\n';
  BOOST_TEST(worst < 3.1e-8);   // half a unit in the last place of a float below 1
  BOOST_TEST(other * 1000 < all);
}

BOOST_AUTO_TEST_CASE(attention_is_the_softmax_of_all_positions_up_to_its_own) {
  on_every_target([](const std::string&) {
    std::mt19937 random(7);
    for (const bool bf16 : {false, true}) {
      check_attention(random, bf16, 32, 2, 3, 0, 1);
      check_attention(random, bf16, 8, 1, 1, 5, 3);
      check_attention(random, bf16, 40, 1, 5, 60, 9);
      check_attention(random, bf16, 64, 2, 7, 63, 1);
      check_attention(random, bf16, 64, 2, 2, 64, 1);
      check_attention(random, bf16, 128, 3, 1, 130, 70);
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
