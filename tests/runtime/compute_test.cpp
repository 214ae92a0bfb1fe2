// compute_test.cpp: work on other threads and its way back to the actor.
#include "runtime/blocking.hpp"
#include "runtime/real_completion_source.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <thread>

using namespace duet::test;
using duet::runtime::Behaviour;
using duet::runtime::errc;
using duet::runtime::Ref;
using duet::runtime::Self;
using duet::runtime::System;
using duet::runtime::SystemOptions;
using Strings = std::vector<std::string>;

namespace {

using Plain = std::variant<Result>;

struct Seen {
  std::thread::id actor;
  std::thread::id compute;
  int value = 0;
  std::string failure;
};

Behaviour offloading(Self<Plain> self, Seen* seen) {
  const auto work = [seen] {
    seen->compute = std::this_thread::get_id();
    return 6 * 7;
  };
  const auto value = co_await self.offload(work);
  seen->actor = std::this_thread::get_id();
  seen->value = value.value();
}

Behaviour offloading_a_throw(Self<Plain> self, Seen* seen) {
  const auto work = []() -> int { throw std::runtime_error("too hard"); };
  try {
    static_cast<void>(co_await self.offload(work));
  } catch (const std::runtime_error& error) {
    seen->failure = error.what();
  }
}

Behaviour offloading_much(Self<Plain> self, std::binary_semaphore* gate, std::atomic<int>* refused,
                          std::atomic<int>* done) {
  const auto work = [gate] {
    gate->acquire();
    gate->release();
  };
  const auto result = co_await self.offload(work);
  ++(result.has_value() ? *done : *refused);
}

class OffloadingHandler final : public duet::runtime::HandlerActor<OffloadingHandler, Plain> {
 public:
  explicit OffloadingHandler(Seen& seen) : seen_(seen) {}
  void started() {
    offload([] { return 5; },
            [this](const duet::runtime::Offloaded<int>& result) {
              seen_.value = result.result.value();
              offload([]() -> int { throw std::runtime_error("no"); },
                      [this](const duet::runtime::Offloaded<int>& second) {
                        seen_.failure = second.exception != nullptr ? "threw" : "?";
                        finish();
                      });
            });
  }
  void on(Result) {}

 private:
  Seen& seen_;
};

/// Says on which thread it handled what.
class Where final : public duet::runtime::HandlerActor<Where, Plain> {
 public:
  Where(std::vector<std::thread::id>& threads, Ref<Plain> next) : threads_(threads), next_(next) {}
  void on(Result result) {
    threads_.push_back(std::this_thread::get_id());
    if (result.number > 0) next_.send(Result{result.number - 1});
  }

 private:
  std::vector<std::thread::id>& threads_;
  Ref<Plain> next_;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(compute)

BOOST_AUTO_TEST_CASE(a_computation_runs_elsewhere_and_its_value_is_awaited_here) {
  Seen seen;
  boost::asio::io_context io;
  System system(io.get_executor());
  system.spawn("offloading", offloading, &seen);
  io.run();   // does not return before the value is there
  BOOST_TEST(seen.value == 42);
  BOOST_TEST((seen.actor == std::this_thread::get_id()));
  BOOST_TEST((seen.compute != std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(what_a_computation_throws_is_thrown_where_it_is_awaited) {
  Seen seen;
  boost::asio::io_context io;
  System system(io.get_executor());
  system.spawn("offloading", offloading_a_throw, &seen);
  io.run();
  BOOST_TEST(seen.failure == "too hard");
}

BOOST_AUTO_TEST_CASE(a_handler_actor_offloads_with_a_callback) {
  Seen seen;
  boost::asio::io_context io;
  System system(io.get_executor());
  system.spawn<OffloadingHandler>("offloading", seen);
  io.run();
  BOOST_TEST(seen.value == 5);
  BOOST_TEST(seen.failure == "threw");
  BOOST_TEST(system.snapshot().actors.empty());
}

BOOST_AUTO_TEST_CASE(the_queue_of_the_compute_threads_is_bounded) {
  std::atomic<int> refused = 0;
  std::atomic<int> done = 0;
  std::binary_semaphore gate(0);
  boost::asio::io_context io;
  SystemOptions options;
  options.compute_threads = 2;
  options.compute_queued_max = 3;
  System system(io.get_executor(), options);
  for (int i = 0; i < 20; ++i) {
    system.spawn("offloading", offloading_much, &gate, &refused, &done);
  }
  io.poll();
  BOOST_TEST(refused >= 20 - 2 * (3 + 1));   // a thread may or may not have taken its first yet
  BOOST_TEST(refused <= 20 - 2 * 3);
  gate.release();
  io.run();
  BOOST_TEST(refused + done == 20);
}

BOOST_AUTO_TEST_CASE(a_computation_that_outlives_its_actor_is_dropped) {
  std::atomic<int> refused = 0;
  std::atomic<int> done = 0;
  std::binary_semaphore gate(0);
  boost::asio::io_context io;
  System system(io.get_executor());
  const auto actor = system.spawn("offloading", offloading_much, &gate, &refused, &done);
  io.poll();
  BOOST_TEST(system.stop(actor));
  io.restart();
  io.poll();
  BOOST_TEST(!actor.alive());
  gate.release();
  io.restart();
  io.run();
  BOOST_TEST(done == 0);
}

// what comes back carries the generation it was started under.
BOOST_AUTO_TEST_CASE(a_blocking_calls_result_comes_as_a_message_and_holds_run_until_then) {
  Strings log;
  duet::runtime::RealCompletionSource source;
  boost::asio::io_context io;
  System system(io.get_executor());
  const auto recorder = system.spawn<Recorder>("recorder", log);
  const auto lane = source.open_lane("vendor", 4);
  std::latch go(1);
  int generation = 17;
  const auto call = [&go, generation] {
    go.wait();
    return Result{generation};
  };
  const auto unmade = [] { return Result{-1}; };
  BOOST_TEST(duet::runtime::call_blocking(*lane, recorder, call, unmade));
  io.poll();
  BOOST_TEST(!io.stopped());
  go.count_down();
  io.run();
  BOOST_TEST(log == (Strings{"result 17"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(calls_of_a_closed_lane_are_told_as_unmade) {
  Strings log;
  duet::runtime::RealCompletionSource source;
  Host host;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  const auto lane = source.open_lane("vendor", 1);
  std::latch began(1);
  std::latch go(1);
  const auto first = [&] {
    began.count_down();
    go.wait();
    return Result{1};
  };
  const auto second = [] { return Result{2}; };
  const auto unmade = [] { return Result{-2}; };
  BOOST_TEST(duet::runtime::call_blocking(*lane, recorder, first, unmade));
  began.wait();
  BOOST_TEST(duet::runtime::call_blocking(*lane, recorder, second, unmade));
  BOOST_TEST(!duet::runtime::call_blocking(*lane, recorder, second, unmade));   // full
  std::thread closer([&lane] { lane->close(); });
  go.count_down();
  closer.join();
  BOOST_TEST(!duet::runtime::call_blocking(*lane, recorder, second, unmade));
  host.run_ready();
  BOOST_REQUIRE(log.size() >= 1U);
  BOOST_TEST(log.size() == 2U);
  BOOST_TEST(log[0] == "result 1");
  // The closing thread may come after the lane's thread has taken the second call.
  BOOST_TEST((log[1] == "result -2" || log[1] == "result 2"));
}

BOOST_AUTO_TEST_CASE(an_actor_that_wants_it_runs_on_the_completing_thread_for_one_activation) {
  std::vector<std::thread::id> inline_threads;
  std::vector<std::thread::id> plain_threads;
  boost::asio::io_context io;
  System system(io.get_executor());
  const auto plain = system.spawn<Where>("plain", plain_threads, Ref<Plain>{});
  duet::runtime::ActorOptions options("inline");
  options.run_on_completion_thread = true;
  const auto here = system.spawn<Where>(options, inline_threads, plain);
  io.run();
  io.restart();
  std::thread completing([&] {
    here.send_and_run(Result{1});
    plain.send_and_run(Result{0});   // did not ask for it
  });
  const std::thread::id other = completing.get_id();
  completing.join();
  BOOST_TEST(inline_threads.size() == 1U);
  BOOST_TEST((inline_threads.at(0) == other));
  BOOST_TEST(plain_threads.empty());
  io.run();
  BOOST_TEST(plain_threads.size() == 2U);
  BOOST_TEST((plain_threads.at(0) == std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(completions_on_two_threads_beside_the_loop_never_meet_in_the_actor) {
  struct Alone final : duet::runtime::HandlerActor<Alone, Plain> {
    Alone(std::atomic<int>& violations, std::atomic<int>& count)
        : violations_(violations), count_(count) {}
    void on(Result) {
      if (inside_.exchange(true)) ++violations_;
      ++count_;
      inside_ = false;
    }
    std::atomic<bool> inside_ = false;
    std::atomic<int>& violations_;
    std::atomic<int>& count_;
  };
  constexpr int each = 5000;
  std::atomic<int> violations = 0;
  std::atomic<int> count = 0;
  boost::asio::io_context io;
  System system(io.get_executor());
  duet::runtime::ActorOptions options("alone");
  options.run_on_completion_thread = true;
  const auto alone = system.spawn<Alone>(options, violations, count);
  auto work = boost::asio::make_work_guard(io);
  std::thread pump([&io] { io.run(); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i) alone.send_and_run(Result{0});
    });
  }
  for (int i = 0; i < each; ++i) alone.send(Result{0});
  for (std::thread& thread : threads) thread.join();
  work.reset();
  pump.join();
  BOOST_TEST(count == 3 * each);
  BOOST_TEST(violations == 0);
}

BOOST_AUTO_TEST_CASE(a_stuck_actor_is_seen_with_what_it_handles_and_what_waits) {
  struct Stuck final : duet::runtime::HandlerActor<Stuck, std::variant<Work, Result>> {
    Stuck(std::latch& began, std::latch& go) : began_(began), go_(go) {}
    void on(Work) {
      began_.count_down();
      go_.wait();
    }
    void on(Result) {}
    std::latch& began_;
    std::latch& go_;
  };
  std::latch began(1);
  std::latch go(1);
  boost::asio::io_context io;
  System system(io.get_executor());
  const auto stuck = system.spawn<Stuck>("stuck", began, go);
  BOOST_TEST(stuck.send(Work{}).ok());
  std::thread pump([&io] { io.run(); });
  began.wait();
  for (int i = 0; i < 10; ++i) stuck.send(Result{i});
  const auto snapshot = system.snapshot();
  go.count_down();
  pump.join();
  BOOST_REQUIRE(snapshot.actors.size() == 1U);
  const auto& actor = snapshot.actors[0];
  BOOST_TEST((actor.state == duet::runtime::ActorState::running));
  BOOST_TEST(actor.message == "Work");
  BOOST_TEST(actor.normal.depth == 10U);
  BOOST_TEST((actor.since <= snapshot.now));
  BOOST_TEST(system.snapshot().actors[0].normal.peak == 10U);
}

BOOST_AUTO_TEST_SUITE_END()
