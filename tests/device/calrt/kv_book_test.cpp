// kv_book_test.cpp: reserve, job, commit or rollback, release, in every order that a caller may
// try.
#include "device/calrt/kv_book.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using duet::device::errc;
using duet::device::KvBook;

KvBook make_book() {
  return KvBook({.slots = 2, .tokens_per_slot = 8, .sequence_first = 10, .sequence_last = 19});
}

}   // namespace

BOOST_AUTO_TEST_SUITE(kv_book)

BOOST_AUTO_TEST_CASE(a_committed_job_moves_the_sequence_and_tells_the_runtime_with_the_next_job) {
  KvBook book = make_book();
  BOOST_REQUIRE(book.reserve(10, 5));
  auto first = book.begin_job(10, 0, 5);
  BOOST_REQUIRE(first.has_value());
  BOOST_TEST(!first->commit.has_value());
  BOOST_TEST(first->reserve == 5U);
  BOOST_TEST(!book.end_job(first->slot, true, 5));
  BOOST_REQUIRE(book.commit(10, 4));
  BOOST_REQUIRE(book.reserve(10, 1));
  auto second = book.begin_job(10, 4, 1);
  BOOST_REQUIRE(second.has_value());
  BOOST_TEST(second->commit.value() == 4U);
}

BOOST_AUTO_TEST_CASE(nothing_is_committed_that_no_job_has_written) {
  KvBook book = make_book();
  BOOST_REQUIRE(book.reserve(10, 5));
  BOOST_TEST((book.commit(10, 1).error().code == errc::bad_argument));
  const auto job = book.begin_job(10, 0, 3);
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST((book.commit(10, 1).error().code == errc::device_busy));
  BOOST_TEST(!book.end_job(job->slot, true, 0));   // the job failed
  BOOST_TEST((book.commit(10, 1).error().code == errc::bad_argument));
  BOOST_REQUIRE(book.rollback(10));
  BOOST_REQUIRE(book.reserve(10, 2));
  auto next = book.begin_job(10, 0, 2);
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST(next->commit.value() == 0U);   // the rollback
}

BOOST_AUTO_TEST_CASE(a_job_must_fit_what_is_committed_and_reserved) {
  KvBook book = make_book();
  BOOST_TEST((book.begin_job(10, 0, 1).error().code == errc::unknown_name));
  BOOST_REQUIRE(book.reserve(10, 2));
  BOOST_TEST((book.begin_job(10, 1, 1).error().code == errc::bad_argument));
  BOOST_TEST((book.begin_job(10, 0, 3).error().code == errc::bad_argument));
  BOOST_TEST((book.begin_job(10, 0, 0).error().code == errc::bad_argument));
  BOOST_REQUIRE(book.begin_job(10, 0, 2));
  BOOST_TEST((book.begin_job(10, 0, 2).error().code == errc::device_busy));
}

BOOST_AUTO_TEST_CASE(the_context_the_slots_and_the_range_of_ids_are_limits) {
  KvBook book = make_book();
  BOOST_TEST((book.reserve(10, 9).error().code == errc::bad_argument));
  BOOST_TEST((book.reserve(10, 0).error().code == errc::bad_argument));
  BOOST_TEST((book.reserve(9, 1).error().code == errc::bad_argument));
  BOOST_TEST((book.reserve(20, 1).error().code == errc::bad_argument));
  BOOST_REQUIRE(book.reserve(10, 8));
  BOOST_REQUIRE(book.reserve(19, 8));
  BOOST_TEST((book.reserve(11, 1).error().code == errc::kv_exhausted));
  BOOST_TEST(book.slots_used() == 2U);
  BOOST_TEST(!book.release(10).value());   // the runtime never heard of it
  BOOST_REQUIRE(book.reserve(11, 1));
}

BOOST_AUTO_TEST_CASE(a_release_under_a_running_job_takes_effect_when_the_job_ends) {
  KvBook book = make_book();
  BOOST_REQUIRE(book.reserve(10, 2));
  const auto job = book.begin_job(10, 0, 2);
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST(!book.release(10).value());
  BOOST_TEST(book.slots_used() == 1U);   // DMA may still write there
  BOOST_TEST((book.commit(10, 1).error().code == errc::unknown_name));
  BOOST_TEST(book.end_job(job->slot, true, 2));
  BOOST_TEST(book.slots_used() == 0U);
}

BOOST_AUTO_TEST_CASE(a_raised_generation_frees_all_but_running_slots_and_tells_nobody) {
  KvBook book = make_book();
  BOOST_REQUIRE(book.reserve(10, 2));
  BOOST_REQUIRE(book.reserve(11, 2));
  const auto old = book.begin_job(11, 0, 2);
  BOOST_REQUIRE(old.has_value());
  book.forget_all();
  BOOST_TEST(book.slots_used() == 1U);
  BOOST_REQUIRE(book.reserve(11, 3));   // the same id, a new life, beside the old job
  const auto young = book.begin_job(11, 0, 3);
  BOOST_REQUIRE(young.has_value());
  BOOST_TEST(!book.end_job(old->slot, true, 2));
  BOOST_TEST(book.slots_used() == 1U);
  BOOST_TEST(!book.end_job(young->slot, true, 3));
  BOOST_TEST(book.commit(11, 3).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
