// inspection_test.cpp: what is counted by type, and who holds a thread for too long.
#include "runtime/real_stall_watch.hpp"
#include "runtime/stall_watch.hpp"
#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>

using namespace duet::test;
namespace runtime = duet::runtime;

namespace {

/// The row of `name`; all zero if there was no such message.
runtime::TypeSnapshot row(const runtime::System& system, std::string_view name) {
  for (const runtime::TypeSnapshot& type : system.snapshot().types) {
    if (type.name == name) return type;
  }
  return {};
}

/// What two threads tell each other.
struct Door {
  std::latch entered{1};
  std::latch open{1};
};

using DoorLanguage = std::variant<Result, Work>;

/// Holds its thread at each Result until the door opens.
class Blocker final : public runtime::HandlerActor<Blocker, DoorLanguage> {
 public:
  explicit Blocker(std::shared_ptr<Door> door) : door_(std::move(door)) {}
  void on(Result) {
    door_->entered.count_down();
    door_->open.wait();
  }
  void on(Work) {}

 private:
  std::shared_ptr<Door> door_;
};

runtime::Behaviour blocking_behaviour(runtime::Self<DoorLanguage> self,
                                      std::shared_ptr<Door> door) {
  for (;;) {
    const DoorLanguage message = co_await self.receive();
    if (!std::holds_alternative<Result>(message)) continue;
    door->entered.count_down();
    door->open.wait();
  }
}

/// A host whose loop runs on a thread of its own.
struct ThreadedHost : Host {
  ThreadedHost() : thread([this] { io.run(); }) {}
  ~ThreadedHost() {
    work.reset();
    io.stop();
    thread.join();
  }
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  std::thread thread;
};

void check_stall(ThreadedHost& host, const runtime::Ref<DoorLanguage>& actor, Door& door,
                 const char* name) {
  runtime::StallWatch watch(host.system, 100ms);
  BOOST_TEST(watch.look().empty());
  actor.send(Result{});
  door.entered.wait();
  BOOST_TEST(watch.look().empty());   // seen for the first time
  host.clock.advance(99ms);
  BOOST_TEST(watch.look().empty());
  host.clock.advance(1ms);
  const auto stalls = watch.look();
  BOOST_REQUIRE(stalls.size() == 1U);
  BOOST_TEST(stalls.front().actor.name == name);
  BOOST_TEST(stalls.front().actor.message == "Result");
  BOOST_TEST(static_cast<int>(stalls.front().actor.state) ==
             static_cast<int>(runtime::ActorState::running));
  BOOST_TEST((stalls.front().held == 100ms));
  host.clock.advance(10s);
  BOOST_TEST(watch.look().empty());   // told once
  BOOST_TEST(watch.count() == 1U);
  door.open.count_down();
}

using Plain = std::variant<Result>;

/// Says what it has counted; throws once it has counted to three.
class Counter final : public runtime::HandlerActor<Counter, Plain> {
 public:
  void on(Result) { ++count_; }
  [[nodiscard]] runtime::Properties snapshot() const {
    if (count_ == 3) throw std::runtime_error("three");
    return {{"count", count_}, {"even", count_ % 2 == 0}};
  }

 private:
  std::int64_t count_ = 0;
};

runtime::Behaviour adds_up(runtime::Self<Plain> self) {
  std::int64_t sum = 0;
  const auto shown = self.describe([&] { return runtime::Properties{{"sum", sum}}; });
  {
    const auto inner = self.describe([] { return runtime::Properties{{"phase", "first"}}; });
    sum += std::get<Result>(co_await self.receive()).number;
  }
  for (;;) sum += std::get<Result>(co_await self.receive()).number;
}

/// "name=value ..." of what the actor says; "nothing", or "never" if it has not answered.
template <typename M>
std::string said(Host& host, const runtime::Ref<M>& actor) {
  host.run_ready();   // it says so before the messages that wait
  std::string text = "never";
  host.system.describe(actor.address().number(), [&](std::optional<runtime::Properties> said) {
    text = said ? "" : "nothing";
    if (!said) return;
    for (const runtime::Property& property : *said) {
      text += property.name + "=";
      std::visit(
          [&](const auto& value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
              text += value;
            } else {
              text += std::to_string(value);
            }
          },
          property.value);
      text += " ";
    }
  });
  host.run_ready();
  return text;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(inspection_of_actors)

BOOST_AUTO_TEST_CASE(an_actor_says_what_its_snapshot_gives_and_lives_on_if_that_throws) {
  Host host;
  const auto counter = host.system.spawn<Counter>("counter");
  BOOST_TEST(said(host, counter) == "count=0 even=1 ");
  for (int i = 0; i < 3; ++i) counter.send(Result{});
  BOOST_TEST(said(host, counter) == "nothing");
  counter.send(Result{});
  BOOST_TEST(said(host, counter) == "count=4 even=1 ");
}

BOOST_AUTO_TEST_CASE(a_behaviour_says_what_its_innermost_description_gives) {
  Host host;
  const auto adder = host.system.spawn("adder", adds_up);
  BOOST_TEST(said(host, adder) == "phase=first ");
  adder.send(Result{5});
  BOOST_TEST(said(host, adder) == "sum=5 ");
  adder.send(Result{7});
  BOOST_TEST(said(host, adder) == "sum=12 ");
}

BOOST_AUTO_TEST_CASE(who_says_nothing_has_ended_or_never_lived_is_answered_for_at_once) {
  Host host;
  std::vector<std::string> log;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  BOOST_TEST(said(host, recorder) == "nothing");
  host.system.stop(recorder);
  host.run_ready();
  BOOST_TEST(said(host, recorder) == "nothing");
  BOOST_TEST(said(host, runtime::Ref<Language>()) == "nothing");
}

BOOST_AUTO_TEST_CASE(an_actor_that_ends_before_it_comes_to_it_answers_once) {
  std::vector<std::string> answers;
  {
    Host host;
    const auto counter = host.system.spawn<Counter>("counter");
    host.system.describe(counter.address().number(), [&](std::optional<runtime::Properties> said) {
      answers.emplace_back(said ? "said" : "nothing");
    });
  }
  BOOST_TEST(answers == std::vector<std::string>{"nothing"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(messages_are_counted_by_type_whoever_handles_them) {
  Host host;
  std::vector<std::string> log;
  const auto first = host.system.spawn<Recorder>("first", log);
  const auto second = host.system.spawn<Recorder>("second", log);
  for (int i = 0; i < 3; ++i) first.send(Result{i});
  second.send(Result{7});
  second.send(Cancel{1});
  host.run_ready();
  BOOST_TEST(row(host.system, "Result").handled == 4U);
  BOOST_TEST(row(host.system, "Cancel").handled == 1U);
  BOOST_TEST(row(host.system, "Gauge").handled == 0U);
}

BOOST_AUTO_TEST_CASE(a_message_that_nobody_handled_is_counted_by_type_and_reason) {
  Host host;
  std::vector<std::string> log;
  runtime::ActorOptions narrow("narrow");
  narrow.bounded_max = 1;
  const auto actor = host.system.spawn<Recorder>(narrow, log);
  BOOST_TEST(actor.send(Work{1}).ok());
  BOOST_TEST(!actor.send(Work{2}).ok());
  actor.send(Gauge{1});
  actor.send(Gauge{2});
  actor.send(Result{1}, host.clock.now() - 1s);
  host.run_ready();
  host.system.stop(actor);
  host.run_ready();
  actor.send(Cancel{1});
  BOOST_TEST(row(host.system, "Work").handled == 1U);
  BOOST_TEST(row(host.system, "Work").refused == 1U);
  BOOST_TEST(row(host.system, "Gauge").handled == 1U);
  BOOST_TEST(row(host.system, "Gauge").superseded == 1U);
  BOOST_TEST(row(host.system, "Result").handled == 0U);
  BOOST_TEST(row(host.system, "Result").expired == 1U);
  BOOST_TEST(row(host.system, "Cancel").receiver_gone == 1U);
}

BOOST_AUTO_TEST_CASE(the_types_of_a_system_begin_at_nothing_and_are_not_its_neighbours) {
  std::vector<std::string> log;
  {
    Host before;
    before.system.spawn<Recorder>("a", log).send(Result{1});
    before.run_ready();
    BOOST_TEST(row(before.system, "Result").handled == 1U);
    Host beside;
    BOOST_TEST(row(beside.system, "Result").handled == 0U);
  }
  Host after;
  BOOST_TEST(after.system.snapshot().types.empty());
}

BOOST_AUTO_TEST_CASE(the_sums_by_type_are_the_sums_of_the_system_also_with_two_threads) {
  boost::asio::io_context io;
  runtime::SystemOptions options;
  options.pumps = 2;
  runtime::System system(io.get_executor(), options);
  std::vector<std::vector<std::string>> logs(8);
  std::vector<runtime::Ref<Language>> actors;
  for (auto& log : logs) actors.push_back(system.spawn<Recorder>("one", log));
  for (int i = 0; i < 1000; ++i) actors[static_cast<std::size_t>(i) % 8].send(Result{i});
  std::thread other([&] { io.run(); });
  io.run();
  other.join();
  BOOST_TEST(row(system, "Result").handled == 1000U);
  BOOST_TEST(system.snapshot().counters.delivered == 1000U);
}

BOOST_AUTO_TEST_CASE(a_handler_over_its_budget_is_named_once) {
  ThreadedHost host;
  const auto door = std::make_shared<Door>();
  check_stall(host, host.system.spawn<Blocker>("blocker", door), *door, "blocker");
}

BOOST_AUTO_TEST_CASE(a_behaviour_over_its_budget_is_named_with_its_last_await) {
  ThreadedHost host;
  const auto door = std::make_shared<Door>();
  check_stall(host, host.system.spawn("sleeper", blocking_behaviour, door), *door, "sleeper");
}

BOOST_AUTO_TEST_CASE(an_actor_that_is_busy_with_many_messages_is_not_stalled) {
  ThreadedHost host;
  const auto first = std::make_shared<Door>();
  const auto actor = host.system.spawn<Blocker>("blocker", first);
  runtime::StallWatch watch(host.system, 100ms);
  static_cast<void>(actor.send(Work{}));   // in the same activation, so that only the count differs
  actor.send(Result{});
  first->entered.wait();
  BOOST_TEST(watch.look().empty());
  first->open.count_down();
  std::promise<void> seen;
  boost::asio::post(host.io, [&] { seen.set_value(); });   // the loop goes on
  seen.get_future().wait();
  host.clock.advance(1s);
  BOOST_TEST(watch.look().empty());
}

BOOST_AUTO_TEST_CASE(a_watch_outlives_its_system_and_finds_nothing) {
  std::optional<runtime::StallWatch> watch;
  {
    Host host;
    watch.emplace(host.system, 100ms);
    BOOST_TEST(watch->look().empty());
  }
  BOOST_TEST(watch->look().empty());
}

BOOST_AUTO_TEST_CASE(the_watch_on_a_thread_tells_while_the_loop_is_held) {
  boost::asio::io_context io;
  runtime::System system(io.get_executor());
  const auto door = std::make_shared<Door>();
  std::promise<std::string> told;
  runtime::StallWatchOptions options;
  options.budget = options.period = 1ms;
  options.on_stall = [&](const runtime::Stall& stall) { told.set_value(stall.actor.name); };
  const runtime::RealStallWatch watch(system, options);
  system.spawn<Blocker>("blocker", door).send(Result{});
  std::thread loop([&] { io.run(); });
  BOOST_TEST(told.get_future().get() == "blocker");
  door->open.count_down();
  loop.join();
}

BOOST_AUTO_TEST_SUITE_END()
