// contract_test.cpp: error sentences, names, and the overlap of two chips.
#include "device/contract/device.hpp"
#include "device/contract/overlap.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>
#include <vector>

namespace duet::device {
namespace {

constexpr int errc_last = static_cast<int>(errc::unsupported);

TraceEvent computed(std::uint32_t chip, ChipNanoseconds begin, ChipNanoseconds end) {
  TraceEvent event;
  event.chip = chip;
  event.begin = begin;
  event.end = end;
  return event;
}

BOOST_AUTO_TEST_SUITE(contract_errors)

BOOST_AUTO_TEST_CASE(every_error_has_a_sentence_of_its_own) {
  std::set<std::string> sentences;
  for (int value = 1; value <= errc_last; ++value) {
    const boost::system::error_code code = make_error_code(static_cast<errc>(value));
    BOOST_TEST(code.failed());
    BOOST_TEST(std::string{code.category().name()} == "duet.device");
    BOOST_TEST(code.message() != "unknown device error");
    char text[8];
    BOOST_TEST(std::string{code.category().message(value, text, sizeof text)} == code.message());
    sentences.insert(code.message());
  }
  BOOST_TEST(sentences.size() == static_cast<std::size_t>(errc_last));
  BOOST_TEST(make_error_code(static_cast<errc>(errc_last + 1)).message() == "unknown device error");
}

BOOST_AUTO_TEST_CASE(an_error_code_compares_equal_to_its_value_only) {
  const boost::system::error_code code = errc::queue_full;
  BOOST_TEST((code == errc::queue_full));
  BOOST_TEST((code != errc::device_busy));
}

BOOST_AUTO_TEST_CASE(taking_the_value_of_a_failed_result_throws_its_sentence) {
  const result<int> failed = Failure{errc::unknown_name, "graph \"x\""};
  try {
    (void)failed.value();
    BOOST_ERROR("no exception");
  } catch (const std::logic_error& error) {
    BOOST_TEST(std::string{error.what()} == "nothing of that name or number exists: graph \"x\"");
  }
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(contract_names)

BOOST_AUTO_TEST_CASE(every_call_graph_kind_and_engine_has_a_name_of_its_own) {
  std::set<std::string> names;
  const int calls = static_cast<int>(CallKind::close) + 1;
  for (int i = 0; i < calls; ++i) names.insert(to_string(static_cast<CallKind>(i)));
  BOOST_TEST(names.size() == static_cast<std::size_t>(calls));
  BOOST_TEST(names.count("unknown") == 0U);
  BOOST_TEST(std::string{to_string(static_cast<CallKind>(calls))} == "unknown");
  BOOST_TEST(std::string{to_string(GraphKind::prefill)} == "prefill");
  BOOST_TEST(std::string{to_string(GraphKind::decode)} == "decode");
  BOOST_TEST(std::string{to_string(Engine::automatic)} == "auto");
  BOOST_TEST(std::string{to_string(Engine::ping)} == "ping");
  BOOST_TEST(std::string{to_string(Engine::pong)} == "pong");
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(contract_overlap)

BOOST_AUTO_TEST_CASE(overlap_is_the_common_time_over_the_shorter_total) {
  const std::vector<TraceEvent> trace{computed(0, 0, 100), computed(1, 60, 110)};
  const Overlap overlap = compute_overlap(trace, 0, 1);
  BOOST_TEST(overlap.first_busy == 100U);
  BOOST_TEST(overlap.second_busy == 50U);
  BOOST_TEST(overlap.both_busy == 40U);
  BOOST_TEST(overlap.ratio == 0.8);
}

BOOST_AUTO_TEST_CASE(chips_that_take_turns_do_not_overlap) {
  const std::vector<TraceEvent> trace{computed(0, 0, 10), computed(1, 10, 20), computed(0, 20, 30)};
  BOOST_TEST(compute_overlap(trace, 0, 1).both_busy == 0U);
  BOOST_TEST(compute_overlap(trace, 0, 1).ratio == 0.0);
}

BOOST_AUTO_TEST_CASE(order_of_events_and_intervals_within_a_chip_do_not_count_twice) {
  const std::vector<TraceEvent> trace{computed(1, 30, 50), computed(0, 40, 60), computed(0, 0, 10),
                                      computed(1, 5, 35), computed(0, 41, 59)};
  const Overlap overlap = compute_overlap(trace, 0, 1);
  BOOST_TEST(overlap.first_busy == 30U);
  BOOST_TEST(overlap.second_busy == 45U);
  BOOST_TEST(overlap.both_busy == 15U);
  BOOST_TEST(overlap.ratio == 0.5);
  const Overlap swapped = compute_overlap(trace, 1, 0);
  BOOST_TEST(swapped.first_busy == 45U);
  BOOST_TEST(swapped.ratio == 0.5);
}

BOOST_AUTO_TEST_CASE(transfers_other_chips_and_inverted_intervals_are_ignored) {
  std::vector<TraceEvent> trace{computed(0, 0, 10), computed(2, 0, 10), computed(1, 9, 3)};
  trace.push_back(computed(1, 0, 10));
  trace.back().kind = TraceKind::h2d;
  const Overlap overlap = compute_overlap(trace, 0, 1);
  BOOST_TEST(overlap.first_busy == 10U);
  BOOST_TEST(overlap.second_busy == 0U);
  BOOST_TEST(overlap.ratio == 0.0);
  BOOST_TEST(compute_overlap({}, 0, 1).ratio == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device
