// wake_history_test.cpp: when a thread sends without a branch, and the queue that takes part in it.
#include "runtime/detail/wake_history.hpp"
#include "runtime/scheduler.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <random>

using duet::runtime::RunnableQueue;
using duet::runtime::detail::WakeHistory;

namespace {

template <typename F>
bool varies_after(F wakes) {
  WakeHistory history;
  for (int i = 0; i < 1000; ++i) history.add(wakes(i));
  history.look();
  return history.vary();
}

class Nothing final : public duet::runtime::Runnable {
 public:
  void run() noexcept override {}
};

}   // namespace

BOOST_AUTO_TEST_SUITE(wake_history)

BOOST_AUTO_TEST_CASE(what_a_processor_predicts_does_not_vary) {
  BOOST_TEST(!WakeHistory().vary());
  BOOST_TEST(!varies_after([](int) { return false; }));
  BOOST_TEST(!varies_after([](int) { return true; }));
  BOOST_TEST(!varies_after([](int i) { return i % 2 == 0; }));
  BOOST_TEST(!varies_after([](int i) { return i % 16 == 0; }));
}

BOOST_AUTO_TEST_CASE(what_is_random_varies_until_it_no_longer_is) {
  WakeHistory history;
  std::mt19937 random(1);   // NOLINT(cert-msc51-cpp): the same in every run
  for (int i = 0; i < 64; ++i) history.add(random() % 2 == 0);
  BOOST_TEST(!history.vary());   // nobody has looked
  history.look();
  BOOST_TEST(history.vary());
  for (int i = 0; i < 64; ++i) history.add(true);
  BOOST_TEST(history.vary());
  history.look();
  BOOST_TEST(!history.vary());
}

BOOST_AUTO_TEST_CASE(what_is_not_wanted_is_not_in_the_queue) {
  std::array<Nothing, 4> items;
  RunnableQueue queue;
  queue.push_if(items[0], false);
  BOOST_TEST(queue.empty());
  BOOST_TEST(queue.pop() == nullptr);

  queue.push_if(items[1], true);
  queue.push_if(items[0], false);   // beyond the end, now an item
  queue.push_if(items[2], true);
  queue.push(items[3]);
  queue.push_if(items[0], false);
  BOOST_TEST(queue.size() == 3U);
  for (int i = 1; i <= 3; ++i) BOOST_TEST(queue.pop() == &items[static_cast<std::size_t>(i)]);
  BOOST_TEST(queue.pop() == nullptr);

  queue.push_if(items[0], false);   // as at first
  BOOST_TEST(queue.pop() == nullptr);
  queue.push(items[3]);   // each may come again, and in another queue
  RunnableQueue other;
  other.push(*queue.pop());
  BOOST_TEST(other.pop() == &items[3]);
}

BOOST_AUTO_TEST_SUITE_END()
