// job_queues_test.cpp: decode first, a share for prefills, nobody starves.
#include "actors/job_queues.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace {

using duet::actors::JobChoice;
using duet::actors::JobQueues;
using duet::runtime::TimePoint;
using std::chrono::milliseconds;

TimePoint at(int millisecond) {
  return TimePoint(milliseconds(millisecond));
}

duet::actors::SchedulingOptions options() {
  duet::actors::SchedulingOptions scheduling;
  scheduling.short_prefill_tokens = 10;
  scheduling.medium_prefill_tokens = 100;
  scheduling.decode_run_max = 3;
  scheduling.prefill_wait_max = milliseconds(50);
  return scheduling;
}

/// "p7" is a prefill of sequence 7, "d7" a decode, "-" nothing.
std::string choose(JobQueues& queues, int now, std::uint32_t sampling = 0, bool allowed = true) {
  const auto choice = queues.choose(at(now), sampling, allowed);
  if (!choice) return "-";
  return (choice->kind == JobChoice::Kind::prefill ? "p" : "d") + std::to_string(choice->sequence);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(job_queues)

BOOST_AUTO_TEST_CASE(decodes_go_first_and_take_turns) {
  JobQueues queues(options());
  queues.push_prefill(1, 5, at(0));
  queues.push_decode(2);
  queues.push_decode(3);
  BOOST_TEST(choose(queues, 1) == "d2");
  queues.push_decode(2);
  BOOST_TEST(choose(queues, 1) == "d3");
  BOOST_TEST(choose(queues, 1) == "d2");
  BOOST_TEST(choose(queues, 1) == "p1");
  BOOST_TEST(choose(queues, 1) == "-");
}

BOOST_AUTO_TEST_CASE(after_a_run_of_decodes_a_prefill_gets_its_share) {
  JobQueues queues(options());
  queues.push_prefill(1, 5, at(0));
  queues.push_prefill(4, 5, at(0));
  std::string order;
  for (int i = 0; i < 9; ++i) {
    queues.push_decode(9);
    order += choose(queues, 1) + " ";
    queues.remove(9);
  }
  BOOST_TEST(order == "d9 d9 d9 p1 d9 d9 d9 p4 d9 ");
}

BOOST_AUTO_TEST_CASE(a_prefill_that_has_waited_long_enough_passes_the_decodes) {
  JobQueues queues(options());
  queues.push_prefill(1, 5, at(0));
  queues.push_decode(9);
  BOOST_TEST((queues.next_due().value() == at(50)));
  BOOST_TEST(choose(queues, 49) == "d9");
  queues.push_decode(9);
  BOOST_TEST(choose(queues, 50) == "p1");
}

BOOST_AUTO_TEST_CASE(an_empty_decode_queue_is_no_reason_for_a_prefill_while_a_token_is_sampled) {
  JobQueues queues(options());
  queues.push_prefill(1, 5, at(0));
  BOOST_TEST(choose(queues, 1, 1) == "-");
  BOOST_TEST(choose(queues, 60, 1) == "-");
  queues.push_decode(9);
  BOOST_TEST(choose(queues, 60, 1) ==
             "p1");   // due, and two sequences would always be one sampling
  BOOST_TEST(choose(queues, 60, 1) == "d9");
}

BOOST_AUTO_TEST_CASE(without_a_free_slot_no_prefill_runs) {
  JobQueues queues(options());
  queues.push_prefill(1, 5, at(0));
  BOOST_TEST(choose(queues, 500, 0, false) == "-");
  queues.push_decode(9);
  BOOST_TEST(choose(queues, 500, 0, false) == "d9");
  BOOST_TEST(choose(queues, 500, 0, true) == "p1");
}

BOOST_AUTO_TEST_CASE(short_prompts_go_before_long_ones_until_those_have_aged) {
  JobQueues queues(options());
  queues.push_prefill(1, 1000, at(0));
  queues.push_prefill(2, 100, at(1));
  queues.push_prefill(3, 10, at(2));
  BOOST_TEST(choose(queues, 3) == "p3");
  BOOST_TEST(choose(queues, 3) == "p2");
  queues.push_prefill(4, 10, at(99));
  BOOST_TEST(choose(queues, 99) == "p4");   // the long one has moved up one class only
  queues.push_prefill(5, 10, at(100));
  BOOST_TEST(choose(queues, 100) == "p1");   // two classes up and older
}

BOOST_AUTO_TEST_CASE(what_is_removed_is_never_chosen_and_the_sums_stay_right) {
  JobQueues queues(options());
  queues.push_prefill(1, 5, at(0));
  queues.push_prefill(2, 500, at(0));
  queues.push_decode(3);
  BOOST_TEST(queues.prefill_tokens() == 505U);
  BOOST_TEST(queues.remove(1));
  BOOST_TEST(queues.remove(3));
  BOOST_TEST(!queues.remove(1));
  BOOST_TEST(queues.prefill_tokens() == 500U);
  BOOST_TEST(queues.prefills() == 1U);
  BOOST_TEST(choose(queues, 1) == "p2");
  BOOST_TEST(queues.prefill_tokens() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
