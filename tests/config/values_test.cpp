// values_test.cpp: numbers with units, and hints at misspelled keys.
#include "config/values.hpp"

#include "config/spelling.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>
#include <string>

namespace duet::config::test {

BOOST_AUTO_TEST_SUITE(config_values)

BOOST_AUTO_TEST_CASE(numbers_are_decimal_digits_alone) {
  BOOST_TEST(parse_number("0").value() == 0U);
  BOOST_TEST(parse_number("65535").value() == 65535U);
  constexpr auto top = std::numeric_limits<std::uint64_t>::max();
  BOOST_TEST(parse_number("18446744073709551615").value() == top);
  BOOST_TEST(parse_number("18446744073709551616").value() == top);
  BOOST_TEST(parse_number(std::string(4000, '9')).value() == top);
  for (const char* text :
       {"", "-1", "+1", "01", "0x10", "1_000", "1.0", "1e3", " 1", "1 ", "one"}) {
    BOOST_TEST(!parse_number(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(durations_need_a_unit) {
  BOOST_TEST(parse_duration("250ms").value() == 250U);
  BOOST_TEST(parse_duration("30s").value() == 30'000U);
  BOOST_TEST(parse_duration("5m").value() == 300'000U);
  BOOST_TEST(parse_duration("2h").value() == 7'200'000U);
  BOOST_TEST(parse_duration("0").value() == 0U);
  BOOST_TEST(parse_duration("18446744073709551615h").value() ==
             std::numeric_limits<std::uint64_t>::max());
  for (const char* text : {"", "30", "s", "30 s", "30S", "1.5s", "30sec", "-1s", "1d", "1s1ms"}) {
    BOOST_TEST(!parse_duration(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(sizes_are_bytes_or_powers_of_1024) {
  BOOST_TEST(parse_size("65536").value() == 65536U);
  BOOST_TEST(parse_size("64KiB").value() == 65536U);
  BOOST_TEST(parse_size("8MiB").value() == 8U << 20U);
  BOOST_TEST(parse_size("1GiB").value() == 1U << 30U);
  for (const char* text : {"", "64KB", "64k", "64 KiB", "KiB", "1.5MiB", "-1"}) {
    BOOST_TEST(!parse_size(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(what_is_printed_reads_back_as_itself) {
  for (std::uint64_t value : {0U, 1U, 999U, 1000U, 1024U, 60'000U, 90'000U, 3'600'000U, 1U << 20U,
                              (1U << 20U) + 1, 1U << 30U}) {
    BOOST_TEST(parse_duration(print_duration(value)).value() == value);
    BOOST_TEST(parse_size(print_size(value)).value() == value);
  }
  BOOST_TEST(print_duration(90'000) == "90s");
  BOOST_TEST(print_size(64U << 10U) == "64KiB");
}

BOOST_AUTO_TEST_CASE(the_nearest_known_key_is_suggested_and_a_far_one_is_not) {
  const std::vector<std::string_view> known = {"alias", "chip_id", "max_inflight",
                                               "max_waiting_requests"};
  BOOST_TEST(nearest_key("chip-id", known) == "chip_id");
  BOOST_TEST(nearest_key("ChipId", known) == "chip_id");
  BOOST_TEST(nearest_key("max_infligth", known) == "max_inflight");
  BOOST_TEST(nearest_key("max_waiting_request", known) == "max_waiting_requests");
  BOOST_TEST(nearest_key("alais", known) == "alias");
  BOOST_TEST(nearest_key("temperature", known) == "");
  BOOST_TEST(nearest_key("", known) == "");
  BOOST_TEST(nearest_key(std::string(5000, 'a'), known) == "");
  BOOST_TEST(nearest_key("x", {}) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::config::test
