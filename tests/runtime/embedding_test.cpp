// embedding_test.cpp: real hosts: contexts of one and of several threads, pools, strands; who waits
// for whom, and who goes first.
#include "runtime/blocking.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <thread>

using namespace duet::test;
namespace asio = boost::asio;
using duet::runtime::Behaviour;
using duet::runtime::HandlerActor;
using duet::runtime::Ref;
using duet::runtime::Self;
using duet::runtime::StopReport;
using duet::runtime::System;
using duet::runtime::SystemOptions;

namespace {

using Plain = std::variant<Result>;

SystemOptions with_pumps(std::uint32_t pumps) {
  SystemOptions options;
  options.pumps = pumps;
  return options;
}

/// Counts; passes each number on, lowered by one, until it is 0.
class Passer final : public HandlerActor<Passer, Plain> {
 public:
  explicit Passer(std::atomic<int>& count, Ref<Plain> next = {}) : count_(count), next_(next) {}
  void on(Result result) {
    ++count_;
    if (result.number > 0) (next_.empty() ? self() : next_).send(Result{result.number - 1});
  }

 private:
  std::atomic<int>& count_;
  Ref<Plain> next_;
};

/// Sends to itself until it is told to stop.
class Busy final : public HandlerActor<Busy, Plain> {
 public:
  Busy(const std::atomic<bool>& stop, std::atomic<std::uint64_t>& count)
      : stop_(stop), count_(count) {}
  void on(Result) {
    ++count_;
    if (!stop_) self().send(Result{});
  }

 private:
  const std::atomic<bool>& stop_;
  std::atomic<std::uint64_t>& count_;
};

Behaviour busy_coroutine(Self<Plain> self, const std::atomic<bool>* stop,
                         std::atomic<std::uint64_t>* count) {
  while (!*stop) {
    self.ref().send(Result{});
    co_await self.receive();
    ++*count;
  }
}

Behaviour sleeps_once(Self<Plain> self, std::atomic<int>* count) {
  co_await self.sleep(1ms);
  ++*count;
}

Behaviour computes(Self<Plain> self, std::latch* go, std::atomic<int>* value) {
  const auto wait = [go] {
    go->wait();
    return 42;
  };
  const auto result = co_await self.offload(wait);
  *value = result.value();
}

struct Destroyed {
  explicit Destroyed(std::atomic<int>& value) noexcept : count(&value) {}
  Destroyed(const Destroyed&) = delete;
  Destroyed& operator=(const Destroyed&) = delete;
  ~Destroyed() { ++*count; }
  std::atomic<int>* count;
};

Behaviour receives_for_ever(Self<Plain> self, std::atomic<int>* count,
                            std::atomic<int>* destroyed) {
  const Destroyed mark(*destroyed);
  for (;;) {
    co_await self.receive();
    ++*count;
  }
}

/// A host's handler that posts itself again, `turns` times; then tells the busy to stop.
template <typename Executor>
class Repeater {
 public:
  Repeater(Executor executor, int turns, std::atomic<bool>& stop)
      : executor_(std::move(executor)), left_(turns), stop_(stop) {}
  void begin() {
    asio::post(executor_, [this] {
      if (--left_ == 0) {
        stop_ = true;
      } else {
        begin();
      }
    });
  }

 private:
  Executor executor_;
  int left_;
  std::atomic<bool>& stop_;
};

/// One activation handles so many messages, one slice so many activations (runtime/limits.hpp).
constexpr std::uint64_t slice_messages =
    std::uint64_t{duet::runtime::limits::slice_activations_max} *
    duet::runtime::limits::activation_messages_max;

}   // namespace

BOOST_AUTO_TEST_SUITE(embedding)

BOOST_AUTO_TEST_CASE(run_does_not_return_while_a_timer_is_pending_and_returns_after_it) {
  std::atomic<int> count = 0;
  asio::io_context io;
  System system(io.get_executor());
  for (int i = 0; i < 10; ++i) system.spawn("sleeper", sleeps_once, &count);
  io.run();
  BOOST_TEST(count == 10);
}

BOOST_AUTO_TEST_CASE(run_does_not_return_while_a_blocking_call_is_pending_and_returns_after_it) {
  std::atomic<int> count = 0;
  std::latch go(1);
  asio::io_context io;
  System system(io.get_executor());
  const auto actor = system.spawn<Passer>("passer", count);
  const auto lane = system.completions().open_lane("lane", 4);
  const auto call = [&go] {
    go.wait();
    return Result{0};
  };
  const auto unmade = [] { return Result{0}; };
  BOOST_TEST(call_blocking(*lane, actor, call, unmade));
  io.poll();
  BOOST_TEST(!io.stopped());
  BOOST_TEST(count == 0);
  go.count_down();
  io.run();
  BOOST_TEST(count == 1);
}

BOOST_AUTO_TEST_CASE(run_does_not_return_while_a_computation_is_pending_and_returns_after_it) {
  std::atomic<int> value = 0;
  std::latch go(1);
  asio::io_context io;
  System system(io.get_executor());
  system.spawn("computes", computes, &go, &value);
  io.poll();
  BOOST_TEST(!io.stopped());
  go.count_down();
  io.run();
  BOOST_TEST(value == 42);
}

BOOST_AUTO_TEST_CASE(run_returns_though_idle_actors_of_both_kinds_live) {
  std::atomic<int> count = 0;
  std::atomic<int> destroyed = 0;
  asio::io_context io;
  System system(io.get_executor());
  system.spawn<Passer>("passer", count);
  system.spawn("receiver", receives_for_ever, &count, &destroyed).send(Result{});
  io.run();
  BOOST_TEST(count == 1);
  BOOST_TEST(destroyed == 0);
}

BOOST_AUTO_TEST_CASE(a_context_of_four_threads_hosts_actors) {
  std::atomic<int> count = 0;
  asio::io_context io(4);
  System system(io.get_executor(), with_pumps(4));
  std::vector<Ref<Plain>> actors;
  for (int i = 0; i < 40; ++i) actors.push_back(system.spawn<Passer>("passer", count));
  for (const auto& actor : actors) actor.send(Result{999});
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&io] { io.run(); });
  io.run();
  for (auto& thread : threads) thread.join();
  BOOST_TEST(count == 40 * 1000);
}

BOOST_AUTO_TEST_CASE(a_strand_of_the_host_hosts_actors_that_share_it_with_its_handlers) {
  std::atomic<int> count = 0;
  std::atomic<int> inside = 0;
  std::atomic<int> violations = 0;
  asio::io_context io(2);
  const auto strand = asio::make_strand(io);
  struct Careful final : HandlerActor<Careful, Plain> {
    Careful(std::atomic<int>& in, std::atomic<int>& bad, std::atomic<int>& all)
        : inside_(in), violations_(bad), count_(all) {}
    void on(Result result) {
      if (inside_.fetch_add(1) != 0) ++violations_;
      inside_.fetch_sub(1);
      ++count_;
      if (result.number > 0) self().send(Result{result.number - 1});
    }
    std::atomic<int>& inside_;
    std::atomic<int>& violations_;
    std::atomic<int>& count_;
  };
  System system(strand);
  for (int i = 0; i < 8; ++i) {
    system.spawn<Careful>("careful", inside, violations, count).send(Result{499});
  }
  for (int i = 0; i < 500; ++i) {
    asio::post(strand, [&] {
      if (inside.fetch_add(1) != 0) ++violations;
      inside.fetch_sub(1);
    });
  }
  std::thread second([&io] { io.run(); });
  io.run();
  second.join();
  BOOST_TEST(count == 8 * 500);
  BOOST_TEST(violations == 0);
}

BOOST_AUTO_TEST_CASE(asios_system_executor_hosts_actors) {
  std::atomic<int> count = 0;
  std::latch told(1);
  System system{asio::system_executor()};
  system.spawn<Passer>("passer", count).send(Result{99});
  class Teller final : public HandlerActor<Teller, Plain> {
   public:
    Teller(std::atomic<int>& all, std::latch& latch) : count_(all), told_(latch) {}
    void on(Result) {
      if (count_ == 100) {
        told_.count_down();
      } else {
        self().send(Result{});
      }
    }

   private:
    std::atomic<int>& count_;
    std::latch& told_;
  };
  system.spawn<Teller>("teller", count, told).send(Result{});
  told.wait();
  BOOST_TEST(count == 100);
}

BOOST_AUTO_TEST_CASE(a_hosts_handler_has_its_turn_beside_busy_coroutines) {
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> count = 0;
  asio::io_context io;
  System system(io.get_executor());
  for (int i = 0; i < 100; ++i) system.spawn("busy", busy_coroutine, &stop, &count);
  Repeater repeater(io.get_executor(), 50, stop);
  repeater.begin();
  io.run();
  BOOST_TEST(count <= 51 * slice_messages);
}

BOOST_AUTO_TEST_CASE(a_hosts_handler_has_its_turn_on_two_threads_and_in_a_pool) {
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> count = 0;
  const auto load = [&](const System& system) {
    for (int i = 0; i < 100; ++i) system.spawn<Busy>("busy", stop, count).send(Result{});
  };
  // While the handler waits in the queue, each thread ends its slice and may take one more that was
  // posted before.
  constexpr std::uint64_t most = 51 * 4 * slice_messages;
  {
    asio::io_context io(2);
    System system(io.get_executor(), with_pumps(2));
    load(system);
    Repeater repeater(io.get_executor(), 50, stop);
    repeater.begin();
    std::thread second([&io] { io.run(); });
    io.run();
    second.join();
    BOOST_TEST(count <= most);
  }
  stop = false;
  count = 0;
  asio::thread_pool pool(2);
  System system(pool.get_executor(), with_pumps(2));
  load(system);
  Repeater repeater(pool.get_executor(), 50, stop);
  repeater.begin();
  pool.wait();
  BOOST_TEST(count <= most);
}

BOOST_AUTO_TEST_CASE(systems_on_several_contexts_send_to_each_other_and_one_may_end) {
  std::atomic<int> count = 0;
  std::atomic<int> destroyed = 0;
  asio::io_context here;
  System near(here.get_executor());
  std::optional<asio::io_context> there(std::in_place);
  System far(there->get_executor());
  System beside(there->get_executor());
  // A ring of three systems on two contexts.
  const auto receiver = far.spawn("receiver", receives_for_ever, &count, &destroyed);
  const auto middle = near.spawn<Passer>("middle", count, receiver);
  const auto first = beside.spawn<Passer>("first", count, middle);
  auto work = asio::make_work_guard(here);
  std::thread thread([&here] { here.run(); });
  for (int i = 0; i < 1000; ++i) first.send(Result{2});
  there->run();
  work.reset();
  thread.join();
  there->restart();
  there->run();
  BOOST_TEST(count == 3000);
  there.reset();   // with both of its systems
  BOOST_TEST(destroyed == 1);
  BOOST_TEST(!receiver.alive());
  BOOST_TEST(!first.send(Result{1}).ok());
  middle.send(Result{1});
  here.restart();
  here.run();
  BOOST_TEST(count == 3001);
  BOOST_TEST(near.snapshot().actors.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_system_is_made_used_and_destroyed_inside_handlers_of_the_host) {
  std::atomic<int> count = 0;
  asio::io_context io;
  std::optional<System> system;
  asio::post(io, [&] {
    system.emplace(io.get_executor());
    system->spawn<Passer>("passer", count).send(Result{9});
    system->stop(1h, [&](const StopReport& report) {
      BOOST_TEST(report.stragglers.empty());
      system.reset();
    });
  });
  io.run();
  BOOST_TEST(!system.has_value());
}

BOOST_AUTO_TEST_CASE(an_actor_runs_another_context_while_it_handles_a_message) {
  class Nesting final : public HandlerActor<Nesting, std::variant<Cancel>> {
   public:
    Nesting(Host& inner, std::uint64_t& same) : inner_(inner), same_(same) {}
    void on(Cancel cancel) {
      const std::uint64_t id = envelope().id;
      inner_.run_ready();
      if (envelope().id == id && cancel.number == 7) ++same_;
    }

   private:
    Host& inner_;
    std::uint64_t& same_;
  };
  std::vector<std::string> log;
  std::uint64_t same = 0;
  Host inner;
  Host outer;
  const auto recorder = inner.system.spawn<Recorder>("recorder", log);
  const auto nesting = outer.system.spawn<Nesting>("nesting", inner, same);
  for (int i = 0; i < 3; ++i) {
    recorder.send(Cancel{i});   // urgent, as the outer one: both lie in lists of their activations
    nesting.send(Cancel{7});
  }
  outer.run_ready();
  BOOST_TEST(same == 3U);
  BOOST_TEST(log.size() == 3U);
}

BOOST_AUTO_TEST_CASE(an_actor_makes_and_destroys_a_system_of_its_own) {
  std::atomic<int> count = 0;
  asio::io_context io;
  class Owner final : public HandlerActor<Owner, Plain> {
   public:
    Owner(asio::io_context& io, std::atomic<int>& count) : io_(io), count_(count) {}
    void on(Result result) {
      if (result.number == 0) return inner_.reset();
      inner_.emplace(io_.get_executor());
      inner_->spawn<Passer>("inner", count_).send(Result{1});
    }

   private:
    asio::io_context& io_;
    std::atomic<int>& count_;
    std::optional<System> inner_;
  };
  System system(io.get_executor());
  const auto owner = system.spawn<Owner>("owner", io, count);
  owner.send(Result{1});
  io.run();
  BOOST_TEST(count == 2);
  owner.send(Result{0});
  io.restart();
  io.run();
  BOOST_TEST(system.snapshot().actors.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_context_is_stopped_and_restarted_while_actors_live) {
  std::atomic<int> count = 0;
  std::atomic<int> destroyed = 0;
  asio::io_context io;
  System system(io.get_executor());
  const auto receiver = system.spawn("receiver", receives_for_ever, &count, &destroyed);
  for (int round = 1; round <= 50; ++round) {
    system.spawn("sleeper", sleeps_once, &count);
    asio::post(io, [&io] { io.stop(); });
    io.restart();   // the round before has run out of work
    io.run();
    BOOST_TEST_REQUIRE(count < 2 * round);
    receiver.send(Result{});   // a stopped context keeps what comes
    io.restart();
    io.run();
    BOOST_TEST_REQUIRE(count == 2 * round);
  }
  BOOST_TEST(destroyed == 0);
  BOOST_TEST(system.snapshot().counters.failed == 0U);
}

BOOST_AUTO_TEST_CASE(systems_and_their_contexts_come_and_go_in_either_order) {
  std::atomic<int> count = 0;
  std::atomic<int> destroyed = 0;
  for (int round = 0; round < 60; ++round) {
    auto pool = std::make_unique<asio::thread_pool>(2);
    auto system = std::make_unique<System>(pool->get_executor(), with_pumps(2));
    const auto receiver = system->spawn("receiver", receives_for_ever, &count, &destroyed);
    system->spawn("sleeper", sleeps_once, &count);
    system->spawn<Passer>("passer", count, receiver).send(Result{5});
    if (round % 2 == 0) {
      system.reset();
      pool.reset();
    } else {
      pool.reset();
      BOOST_TEST(system->finished());
      system.reset();
    }
    BOOST_TEST_REQUIRE(!receiver.alive());
  }
  BOOST_TEST(destroyed <= 60);
}

BOOST_AUTO_TEST_SUITE_END()
