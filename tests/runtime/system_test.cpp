// system_test.cpp: systems in their hosts: start, stop, several of them, contexts that go first.
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

using namespace duet::test;
using duet::runtime::Behaviour;
using duet::runtime::Ref;
using duet::runtime::Self;
using duet::runtime::StopReport;
using duet::runtime::System;
using duet::runtime::SystemOptions;
using Strings = std::vector<std::string>;

namespace {

using Plain = std::variant<Result>;

Behaviour relay(Self<Plain> self, Ref<Plain> next, std::atomic<int>* count, int until) {
  for (;;) {
    Plain message = co_await self.receive();
    const int number = std::get<Result>(message).number;
    ++*count;
    if (number < until) next.send(Result{number + 1});
  }
}

/// Never ends by itself: Stop is in its language, and it takes no notice.
class Deaf final
    : public duet::runtime::HandlerActor<Deaf, std::variant<Cancel, duet::runtime::Stop>> {
 public:
  void on(Cancel) { finish(); }
  void on(duet::runtime::Stop) {}
};

Behaviour waits_for_reply(Self<Plain> self, Ref<Language> holder) {
  Question question(1);
  static_cast<void>(co_await self.ask(holder, std::move(question), 1h));
}

class ReplyHolder final : public duet::runtime::HandlerActor<ReplyHolder, Language> {
 public:
  void on(Question question) { reply_ = std::move(question.reply); }
  void on(Work) {}
  void on(Cancel) {}
  void on(Result) {}
  void on(Gauge) {}
  void on(duet::runtime::Stop) {}

 private:
  duet::runtime::Reply<int> reply_;
};

struct DestroyedFlag {
  explicit DestroyedFlag(std::atomic<int>& value) noexcept : count(&value) {}
  DestroyedFlag(const DestroyedFlag&) = delete;
  DestroyedFlag& operator=(const DestroyedFlag&) = delete;
  ~DestroyedFlag() { ++*count; }
  std::atomic<int>* count;
};

Behaviour sleeps_long(Self<Plain> self, std::atomic<int>* destroyed) {
  const DestroyedFlag flag(*destroyed);
  co_await self.sleep(1h);
}

Behaviour receives_for_ever(Self<Plain> self, std::atomic<int>* destroyed) {
  const DestroyedFlag flag(*destroyed);
  co_await self.receive();
}

/// Runs handlers of `io` on this thread until `done`; blocks between them.
template <typename Done>
void run_until(boost::asio::io_context& io, Done done) {
  auto work = boost::asio::make_work_guard(io);
  while (!done()) io.run_one();
}

}   // namespace

BOOST_AUTO_TEST_SUITE(systems)

BOOST_AUTO_TEST_CASE(run_returns_when_no_actor_has_anything_to_do) {
  std::atomic<int> count = 0;
  boost::asio::io_context io;
  System system(io.get_executor());
  const auto last = system.spawn("last", relay, Ref<Plain>{}, &count, 0);
  system.spawn("first", relay, last, &count, 1).send(Result{0});
  io.run();
  BOOST_TEST(count == 2);
  BOOST_TEST(system.snapshot().actors.size() == 2U);
}

BOOST_AUTO_TEST_CASE(run_does_not_return_while_an_ask_is_pending) {
  Host host;
  const auto holder = host.system.spawn<ReplyHolder>("holder");
  const auto asker = host.system.spawn("asker", waits_for_reply, holder);
  host.run_ready();
  BOOST_TEST(!host.io.stopped());   // outstanding work
  host.system.stop(asker);
  host.run_ready();
  BOOST_TEST(host.io.stopped());
}

BOOST_AUTO_TEST_CASE(a_cancelled_real_timer_does_not_hold_run) {
  std::atomic<int> destroyed = 0;
  boost::asio::io_context io;
  System system(io.get_executor());
  const auto sleeper = system.spawn("sleeper", sleeps_long, &destroyed);
  run_until(io, [&] { return system.snapshot().actors.at(0).waits_for == "timer"; });
  system.stop(sleeper);
  io.restart();
  io.run();   // returns now, not in an hour
  BOOST_TEST(destroyed == 1);
}

BOOST_AUTO_TEST_CASE(stop_ends_all_actors_and_tells_when_none_is_left) {
  std::atomic<int> destroyed = 0;
  Strings log;
  Host host;
  host.system.spawn<Recorder>("recorder", log);
  host.system.spawn("sleeper", sleeps_long, &destroyed);
  host.system.spawn("receiver", receives_for_ever, &destroyed);
  host.run_ready();
  std::vector<StopReport> reports;
  host.system.stop(1s, [&reports](StopReport report) { reports.push_back(std::move(report)); });
  host.run_ready();
  BOOST_REQUIRE(reports.size() == 1U);
  BOOST_TEST(reports[0].stragglers.empty());
  BOOST_TEST(destroyed == 2);
  BOOST_TEST(log == (Strings{"stop"}), boost::test_tools::per_element());
  BOOST_TEST(host.clock.armed() == 0U);
  BOOST_TEST(host.system.spawn<Recorder>("late", log).empty());
}

BOOST_AUTO_TEST_CASE(stop_of_an_empty_system_tells_at_once) {
  Host host;
  int told = 0;
  host.system.stop(
      1s, [&told](const StopReport& report) { told += report.stragglers.empty() ? 1 : 100; });
  host.run_ready();
  BOOST_TEST(told == 1);
}

BOOST_AUTO_TEST_CASE(a_straggler_is_named_with_what_it_waits_for_and_since_when) {
  Host host;
  const auto deaf = host.system.spawn<ReplyHolder>("deaf");
  host.system.spawn<Deaf>("obstinate");
  host.run_ready();
  std::vector<StopReport> reports;
  host.system.stop(5s, [&reports](StopReport report) { reports.push_back(std::move(report)); });
  host.advance(4s);
  BOOST_TEST(reports.empty());
  host.advance(1s);
  BOOST_REQUIRE(reports.size() == 1U);
  BOOST_REQUIRE(reports[0].stragglers.size() == 2U);
  const auto& straggler = reports[0].stragglers[0];
  BOOST_TEST(straggler.name == "deaf");
  BOOST_TEST((straggler.state == duet::runtime::ActorState::waiting));
  BOOST_TEST(straggler.number == deaf.address().number());
  const std::string line = describe(straggler, host.clock.now());
  BOOST_TEST(line == "deaf: waiting for message since 5.000 s");
}

BOOST_AUTO_TEST_CASE(a_context_that_is_destroyed_first_releases_all_frames) {
  std::atomic<int> destroyed = 0;
  Strings log;
  std::optional<boost::asio::io_context> io(std::in_place);
  System system(io->get_executor());
  const auto recorder = system.spawn<Recorder>("recorder", log);
  system.spawn("sleeper", sleeps_long, &destroyed);
  system.spawn("receiver", receives_for_ever, &destroyed);
  io->poll();
  recorder.send(Result{1});   // a pump is posted and never runs
  io.reset();
  BOOST_TEST(destroyed == 2);
  BOOST_TEST(system.finished());
  BOOST_TEST(!recorder.alive());
  BOOST_TEST(!recorder.send(Result{2}).ok());
  BOOST_TEST(system.spawn<Recorder>("late", log).empty());
  BOOST_TEST(system.snapshot().actors.empty());
  BOOST_TEST(log.empty());
}

BOOST_AUTO_TEST_CASE(a_system_that_is_destroyed_first_leaves_its_host_usable) {
  std::atomic<int> destroyed = 0;
  boost::asio::io_context io;
  {
    System system(io.get_executor());
    system.spawn("sleeper", sleeps_long, &destroyed);
    system.spawn("receiver", receives_for_ever, &destroyed);
    io.poll();
  }
  BOOST_TEST(destroyed == 2);
  bool ran = false;
  boost::asio::post(io, [&ran] { ran = true; });
  io.restart();
  io.run();
  BOOST_TEST(ran);
}

BOOST_AUTO_TEST_CASE(actors_that_never_ran_are_destroyed_too) {
  std::atomic<int> destroyed = 0;
  boost::asio::io_context io;
  Strings log;
  {
    System system(io.get_executor());
    system.spawn("receiver", receives_for_ever, &destroyed);
    system.spawn<Recorder>("recorder", log).send(Result{1});
  }
  io.run();
  BOOST_TEST(destroyed == 0);   // its body had not begun: there was nothing to unwind
  BOOST_TEST(log.empty());
}

BOOST_AUTO_TEST_CASE(several_systems_share_a_context_and_talk_to_each_other) {
  std::atomic<int> count = 0;
  boost::asio::io_context io;
  System one(io.get_executor());
  System two(io.get_executor());
  Ref<Plain> last = one.spawn("last", relay, Ref<Plain>{}, &count, 100);
  for (int i = 0; i < 50; ++i) {
    last = (i % 2 == 0 ? two : one).spawn("relay", relay, last, &count, 100);
  }
  last.send(Result{1});
  io.run();
  BOOST_TEST(count == 51);
}

BOOST_AUTO_TEST_CASE(systems_start_and_stop_any_number_of_times) {
  std::atomic<int> destroyed = 0;
  std::atomic<int> count = 0;
  boost::asio::io_context io;
  for (int round = 0; round < 200; ++round) {
    System system(io.get_executor());
    system.spawn("receiver", receives_for_ever, &destroyed);
    system.spawn("relay", relay, Ref<Plain>{}, &count, 0).send(Result{1});
    bool told = false;
    io.poll();
    system.stop(10s, [&told](const StopReport&) { told = true; });
    io.restart();
    while (!told) io.run_one();
  }
  BOOST_TEST(destroyed == 200);
  BOOST_TEST(count == 200);
}

BOOST_AUTO_TEST_CASE(a_thread_pool_hosts_actors) {
  std::atomic<int> count = 0;
  std::atomic<int> destroyed = 0;
  {
    boost::asio::thread_pool pool(2);
    SystemOptions options;
    options.pumps = 2;
    System system(pool.get_executor(), options);
    Ref<Plain> last = system.spawn("last", relay, Ref<Plain>{}, &count, 20000);
    std::vector<Ref<Plain>> all;
    for (int i = 0; i < 20; ++i) last = system.spawn("relay", relay, last, &count, 20000);
    for (int i = 0; i < 1000; ++i) last.send(Result{1});
    system.spawn("receiver", receives_for_ever, &destroyed);
    std::mutex mutex;
    std::condition_variable told;
    bool done = false;
    pool.wait();   // returns when nothing is ready: all messages have passed
    BOOST_TEST(count == 21 * 1000);
    boost::asio::thread_pool second(2);
    System other(second.get_executor(), options);
    other.spawn("receiver", receives_for_ever, &destroyed);
    other.stop(10s, [&](const StopReport& report) {
      const std::lock_guard lock(mutex);
      done = report.stragglers.empty();
      told.notify_one();
    });
    std::unique_lock lock(mutex);
    told.wait(lock, [&done] { return done; });
  }
  BOOST_TEST(destroyed == 2);
}

BOOST_AUTO_TEST_CASE(a_system_ends_while_other_threads_still_send_to_it) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> count = 0;
    boost::asio::io_context io(2);
    auto system = std::make_unique<System>(io.get_executor());
    const auto actor = system->spawn("relay", relay, Ref<Plain>{}, &count, 0);
    std::atomic<bool> begun = false;
    std::thread pump([&io] {
      auto work = boost::asio::make_work_guard(io);
      io.run();
    });
    std::thread sender([&] {
      while (actor.send(Result{1}).ok()) {
        begun = true;
        begun.notify_one();
      }
    });
    begun.wait(false);
    system.reset();
    sender.join();   // it ends because the actor is gone
    io.stop();
    pump.join();
    BOOST_TEST_REQUIRE(!actor.alive());
  }
}

BOOST_AUTO_TEST_CASE(children_know_their_parent_and_all_are_found_in_the_snapshot) {
  struct Parent final : duet::runtime::HandlerActor<Parent, Plain> {
    void started() {
      spawn_child<Deaf>("child");
      spawn_child<Deaf>("a-name-that-is-much-too-long-for-the-record");
    }
    void on(Result) {}
  };
  Host host;
  const auto parent = host.system.spawn<Parent>("parent");
  host.run_ready();
  const auto snapshot = host.system.snapshot();
  BOOST_REQUIRE(snapshot.actors.size() == 3U);
  BOOST_TEST(snapshot.actors[0].parent == 0U);
  BOOST_TEST(snapshot.actors[1].parent == parent.address().number());
  BOOST_TEST(snapshot.actors[2].name == "a-name-that-is-much-too");
  BOOST_TEST(snapshot.counters.spawned == 3U);
}

BOOST_AUTO_TEST_CASE(a_hosts_own_handler_gets_its_turn_beside_busy_actors) {
  struct Busy final : duet::runtime::HandlerActor<Busy, Plain> {
    explicit Busy(bool& stop) : stop_(stop) {}
    void on(Result) {
      if (!stop_) self().send(Result{});
    }
    bool& stop_;
  };
  Host host;
  bool stop = false;
  for (int i = 0; i < 100; ++i) host.system.spawn<Busy>("busy", stop).send(Result{});
  int turns = 0;
  std::function<void()> turn = [&] {
    if (++turns == 100) {
      stop = true;
    } else {
      boost::asio::post(host.io, turn);
    }
  };
  boost::asio::post(host.io, turn);
  host.io.run();
  BOOST_TEST(turns == 100);
  // Between two turns lies a slice at most.
  BOOST_TEST(host.counters().delivered <= 101U * duet::runtime::limits::slice_activations_max *
                                              duet::runtime::limits::activation_messages_max);
}

BOOST_AUTO_TEST_SUITE_END()
