// tombstones_test.cpp: a cancel that overtakes its request is not lost, and nothing is kept for
// ever.
#include "runtime/tombstones.hpp"

#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

using namespace duet::test;
using duet::runtime::Ref;
using duet::runtime::TimePoint;
using duet::runtime::Tombstones;
using Strings = std::vector<std::string>;

namespace {

const TimePoint start{std::chrono::hours(1)};

/// Works on a Work unless its Cancel came, before or meanwhile.
class Worker final : public duet::runtime::HandlerActor<Worker, std::variant<Work, Cancel>> {
 public:
  explicit Worker(Strings& log) : log_(log) {}
  void on(Work work) {
    const bool cancelled = tombstones_.take(work.number, now());
    log_.push_back((cancelled ? "not started " : "started ") + std::to_string(work.number));
  }
  void on(Cancel cancel) {
    log_.push_back("cancelled " + std::to_string(cancel.number));
    tombstones_.bury(cancel.number, now() + 10s, now());
  }

 private:
  Strings& log_;
  Tombstones<int> tombstones_;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(tombstones)

BOOST_AUTO_TEST_CASE(a_cancel_that_overtakes_its_request_keeps_it_from_being_started) {
  Strings log;
  Host host;
  const auto worker = host.system.spawn<Worker>("worker", log);
  BOOST_TEST(worker.send(Work{1}).ok());
  BOOST_TEST(worker.send(Work{2}).ok());
  worker.send(Cancel{2});   // urgent
  host.run_ready();
  BOOST_TEST(log == (Strings{"cancelled 2", "started 1", "not started 2"}),
             boost::test_tools::per_element());
  BOOST_TEST(worker.send(Work{2}).ok());   // another request with that number
  host.run_ready();
  BOOST_TEST(log.back() == "started 2");
}

BOOST_AUTO_TEST_CASE(a_tombstone_is_taken_once_and_only_before_its_deadline) {
  Tombstones<int> tombstones;
  tombstones.bury(1, start + 10s, start);
  tombstones.bury(2, start + 20s, start);
  BOOST_TEST(!tombstones.take(3, start));
  BOOST_TEST(tombstones.take(1, start + 9s));
  BOOST_TEST(!tombstones.take(1, start + 9s));
  BOOST_TEST(!tombstones.take(2, start + 20s));
  BOOST_TEST(tombstones.size() == 0U);
}

BOOST_AUTO_TEST_CASE(tombstones_whose_time_has_passed_are_not_kept) {
  Tombstones<int> tombstones;
  for (int i = 0; i < 1000; ++i) tombstones.bury(i, start + (i + 10) * 1s, start + i * 1s);
  BOOST_TEST(tombstones.size() == 10U);
  BOOST_TEST(tombstones.evicted() == 0U);
  tombstones.bury(5000, start, start + 1000s);   // late already
  BOOST_TEST(tombstones.size() < 10U);
  BOOST_TEST(!tombstones.take(5000, start + 1000s));
}

BOOST_AUTO_TEST_CASE(the_later_of_two_deadlines_counts) {
  Tombstones<int> tombstones;
  tombstones.bury(1, start + 10s, start);
  tombstones.bury(1, start + 20s, start);
  tombstones.bury(1, start + 5s, start);
  BOOST_TEST(tombstones.size() == 1U);
  BOOST_TEST(tombstones.take(1, start + 19s));
}

BOOST_AUTO_TEST_CASE(at_the_bound_the_one_that_expires_first_makes_room_and_is_counted) {
  Tombstones<int> tombstones(3);
  tombstones.bury(1, start + 30s, start);
  tombstones.bury(2, start + 10s, start);
  tombstones.bury(3, start + 20s, start);
  tombstones.bury(4, start + 40s, start);
  BOOST_TEST(tombstones.size() == 3U);
  BOOST_TEST(tombstones.evicted() == 1U);
  BOOST_TEST(!tombstones.take(2, start));
  for (const int id : {1, 3, 4}) BOOST_TEST(tombstones.take(id, start));
  // One that is known needs no more room.
  Tombstones<int> one(1);
  one.bury(1, start + 10s, start);
  one.bury(1, start + 20s, start);
  BOOST_TEST(one.evicted() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
