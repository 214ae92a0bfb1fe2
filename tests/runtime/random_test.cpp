// random_test.cpp: bounded draws and the kernel's source.
#include "runtime/random.hpp"

#include "runtime/real_random.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <set>

namespace {

/// Gives the values written down.
struct Scripted final : duet::runtime::Random {
  explicit Scripted(std::array<std::uint64_t, 3> script) : values(script) {}
  std::uint64_t next() noexcept override { return values.at(used++); }
  std::array<std::uint64_t, 3> values;
  std::size_t used = 0;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(random_suite)

BOOST_AUTO_TEST_CASE(below_rejects_the_values_that_would_favour_small_results) {
  // 2^64 mod 3 = 1, so the value 0 is drawn again.
  Scripted random({0, 5, 7});
  BOOST_TEST(random.below(3) == 2U);
  BOOST_TEST(random.used == 2U);
  BOOST_TEST(random.below(1) == 0U);
}

BOOST_AUTO_TEST_CASE(unit_is_in_the_half_open_interval) {
  Scripted random({0, ~0ULL, 1ULL << 63U});
  BOOST_TEST(random.unit() == 0.0);
  BOOST_TEST(random.unit() < 1.0);
  BOOST_TEST(random.unit() == 0.5);
}

BOOST_AUTO_TEST_CASE(the_kernels_source_does_not_repeat_over_many_blocks) {
  duet::runtime::RealRandom random;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.next());
  BOOST_TEST(seen.size() == 1000U);
}

BOOST_AUTO_TEST_SUITE_END()
