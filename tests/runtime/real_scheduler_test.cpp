// real_scheduler_test.cpp: runnables on an Asio executor, beside the host's own handlers.
#include "runtime/real_scheduler.hpp"

#include "runtime/detail/thread_state.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

struct FunctionRunnable final : duet::runtime::Runnable {
  explicit FunctionRunnable(std::function<void()> function) : on_run(std::move(function)) {}
  void run() noexcept override { on_run(); }
  std::function<void()> on_run;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(real_scheduler)

BOOST_AUTO_TEST_CASE(runnables_run_in_order_and_run_returns_when_nothing_is_ready) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {});
  std::vector<int> order;
  FunctionRunnable first([&] { order.push_back(1); });
  FunctionRunnable second([&] { order.push_back(2); });
  scheduler.post(first);
  scheduler.post(second);
  BOOST_TEST(order.empty());
  io.run();
  BOOST_TEST(order == (std::vector<int>{1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_runnable_that_re_posts_itself_does_not_starve_the_host) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {.pumps_max = 1, .slice_max = 8});
  bool host_ran = false;
  std::uint64_t runs = 0;
  FunctionRunnable busy([] {});
  busy.on_run = [&] {
    ++runs;
    if (!host_ran) scheduler.post(busy);
  };
  scheduler.post(busy);
  boost::asio::post(io, [&] { host_ran = true; });
  io.run();
  BOOST_TEST(host_ran);
  BOOST_TEST(runs <= 16U);
}

BOOST_AUTO_TEST_CASE(outstanding_work_holds_the_hosts_run) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {});
  bool delivered = false;
  FunctionRunnable deliver([&] {
    delivered = true;
    scheduler.work_finished();
  });
  scheduler.work_started();
  std::thread other([&] { scheduler.post(deliver); });
  io.run();
  other.join();
  BOOST_TEST(delivered);
}

BOOST_AUTO_TEST_CASE(work_that_begins_or_ends_in_a_slice_is_counted_when_the_slice_ends) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {});
  FunctionRunnable begin([&] { scheduler.work_started(); });
  FunctionRunnable finish([&] { scheduler.work_finished(); });
  FunctionRunnable both([&] {
    scheduler.work_started();
    std::thread other([&] { scheduler.work_finished(); });   // counted before it has begun
    other.join();
  });

  scheduler.post(begin);
  io.poll();
  BOOST_TEST(!io.stopped());
  scheduler.work_finished();
  io.poll();
  BOOST_TEST(io.stopped());

  io.restart();
  scheduler.work_started();
  scheduler.post(finish);
  io.poll();
  BOOST_TEST(io.stopped());

  io.restart();
  scheduler.post(both);
  io.poll();
  BOOST_TEST(io.stopped());

  io.restart();
  scheduler.work_started();
  scheduler.post(both);
  scheduler.post(begin);
  io.poll();
  BOOST_TEST(!io.stopped());
  scheduler.work_finished();
  BOOST_TEST(io.poll() == 0U);
  BOOST_TEST(!io.stopped());
  scheduler.work_finished();
  io.poll();
  BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(work_of_an_inline_run_counts_at_once_and_ends_with_its_post) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {});
  duet::runtime::detail::ThreadState& here = duet::runtime::detail::thread_state();
  duet::runtime::RunnableQueue ready;
  const auto inline_run = [&](const auto& body) {   // as Slot::put_and_run()
    here.ready = &ready;
    here.ready_of = here.slice_of = &scheduler;
    body();
    here.ready_of = here.slice_of = nullptr;
    scheduler.post_all(ready);
  };

  scheduler.work_started();
  inline_run([&] {
    scheduler.work_started();
    std::thread other([&] { scheduler.work_finished(); });   // the one or the other
    other.join();
    io.poll();
    BOOST_TEST(!io.stopped());
  });
  io.poll();
  BOOST_TEST(!io.stopped());

  bool ran = false;
  FunctionRunnable made_ready([&ran] { ran = true; });
  inline_run([&] {
    scheduler.post(made_ready);
    scheduler.work_finished();
    BOOST_TEST(!io.stopped());
    io.poll();
    BOOST_TEST(!io.stopped());
  });
  io.poll();
  BOOST_TEST(ran);
  BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(two_pumps_on_two_threads_run_every_post_once) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {.pumps_max = 2, .slice_max = 4});
  constexpr int count = 1000;
  std::atomic<int> runs = 0;
  std::vector<std::unique_ptr<FunctionRunnable>> runnables;
  for (int i = 0; i < count; ++i) {
    runnables.push_back(std::make_unique<FunctionRunnable>([&runs] { ++runs; }));
  }
  scheduler.work_started();
  std::thread second([&io] { io.run(); });
  for (auto& runnable : runnables) scheduler.post(*runnable);
  scheduler.work_finished();
  io.run();
  second.join();
  BOOST_TEST(runs == count);
}

BOOST_AUTO_TEST_CASE(a_pump_gives_away_what_it_could_only_run_after_something_long) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {.pumps_max = 2});
  std::atomic<int> meeting = 0;
  const auto meet = [&meeting] {   // one alone would wait for ever
    ++meeting;
    meeting.notify_all();
    for (int there = meeting; there < 2; there = meeting) meeting.wait(there);
  };
  FunctionRunnable one(meet);
  FunctionRunnable other(meet);
  FunctionRunnable both([&] {
    scheduler.post(one);
    scheduler.post(other);
  });
  scheduler.post(both);
  std::thread second([&io] { io.run(); });
  io.run();
  second.join();
  BOOST_TEST(meeting == 2);
}

BOOST_AUTO_TEST_CASE(light_work_that_waits_is_tried_on_a_second_thread_and_taken_back) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {.pumps_max = 2});
  std::array<std::atomic<std::thread::id>, 2> ran_by;
  std::atomic<bool> apart = false;   // they were on two threads at the same time
  std::atomic<bool> together = false;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::atomic<int> same = 0;   // runs in a row that found the other one's thread to be theirs
  std::array<int, 2> runs{};
  std::array<std::unique_ptr<FunctionRunnable>, 2> light;
  for (std::size_t i = 0; i < 2; ++i) {
    light[i] = std::make_unique<FunctionRunnable>([&, i] {
      const std::thread::id here = std::this_thread::get_id();
      ran_by[i] = here;
      const std::thread::id other = ran_by[1 - i];
      if (here == other) {
        if (++same > 500 && apart) together = true;
      } else {
        same = 0;
        if (other != std::thread::id()) apart = true;
      }
      // An eighth of what is handled is counted then, so that trials show a loss.
      if (!apart || ++runs[i] % 8 == 0) ++duet::runtime::detail::thread_state().handled;
      if (!together && std::chrono::steady_clock::now() < give_up) scheduler.post(*light[i]);
    });
  }
  int alone = 10'000;   // until the pump knows how light its work is
  FunctionRunnable first([&] {
    if (--alone > 0) return scheduler.post(first);
    for (const auto& runnable : light) scheduler.post(*runnable);
  });
  scheduler.post(first);
  std::thread second([&io] { io.run(); });
  io.run();
  second.join();
  BOOST_TEST(apart);
  BOOST_TEST(together);
}

BOOST_AUTO_TEST_CASE(light_work_goes_on_beside_something_that_blocks_the_other_pump) {
  boost::asio::io_context io;
  duet::runtime::RealScheduler scheduler(io.get_executor(), {.pumps_max = 2});
  std::atomic<bool> over = false;
  // Long enough for what both pumps have to be reviewed, several times: nobody else takes the work
  // of the one that is not blocked.
  std::chrono::steady_clock::time_point end;
  FunctionRunnable light([] {});
  light.on_run = [&] {
    const auto now = std::chrono::steady_clock::now();
    if (end == std::chrono::steady_clock::time_point()) {
      end = now + 4 * duet::runtime::limits::spread_rest_min;
    }
    if (now < end) return scheduler.post(light);
    over = true;
  };
  std::atomic<bool> begun = false;
  std::atomic<bool> in_time = false;
  FunctionRunnable blocks([&] {
    begun = true;
    begun.notify_all();
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!over && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    in_time = over.load();
  });
  scheduler.post(blocks);
  scheduler.work_started();
  std::thread second([&io] { io.run(); });
  std::thread third([&io] { io.run(); });
  begun.wait(false);
  scheduler.post(light);
  scheduler.work_finished();
  second.join();
  third.join();
  BOOST_TEST(in_time);
}

BOOST_AUTO_TEST_SUITE_END()
