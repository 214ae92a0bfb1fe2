// assert_test.cpp: a failed assert names the condition and its values.
#include "runtime/assert.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(assert_suite)

BOOST_AUTO_TEST_CASE(values_are_printed_in_order_and_cut_at_the_buffer) {
  duet::runtime::detail::AssertValues values;
  duet::runtime::detail::add_assert_value(values, -3);
  duet::runtime::detail::add_assert_value(values, 18446744073709551615ULL);
  duet::runtime::detail::add_assert_value(values, 0.5);
  duet::runtime::detail::add_assert_value(values, "ready");
  BOOST_TEST(values.view() == "-3, 18446744073709551615, 0.5, ready");
  for (int i = 0; i < 1000; ++i) values.add(std::string_view{"0123456789"});
  BOOST_TEST(values.view().size() <= 511U);
}

BOOST_AUTO_TEST_CASE(a_true_condition_evaluates_once_and_goes_on) {
  int evaluations = 0;
  DUET_ASSERT(++evaluations == 1, evaluations);
  BOOST_TEST(evaluations == 1);
}

BOOST_AUTO_TEST_SUITE_END()
