// short_lock_test.cpp: the lock of books that several threads keep.
#include "runtime/short_lock.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(short_lock)

BOOST_AUTO_TEST_CASE(one_holds_it_at_a_time_and_nobody_who_waits_is_forgotten) {
  constexpr std::uint32_t threads = 4;
  constexpr std::uint32_t each = 20'000;
  duet::runtime::ShortLock lock;
  std::uint64_t count = 0;   // not atomic: the lock guards it
  std::vector<std::thread> all;
  for (std::uint32_t i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (std::uint32_t n = 0; n < each; ++n) {
        const std::lock_guard guard(lock);
        ++count;
        if (n % 1000 == 0) std::this_thread::yield();   // so that others come to wait
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  BOOST_TEST(count == std::uint64_t{threads} * each);
}

BOOST_AUTO_TEST_CASE(it_is_tried_without_waiting) {
  duet::runtime::ShortLock lock;
  BOOST_TEST(lock.try_lock());
  BOOST_TEST(!lock.try_lock());
  lock.unlock();
  BOOST_TEST(lock.try_lock());
  lock.unlock();
}

BOOST_AUTO_TEST_SUITE_END()
