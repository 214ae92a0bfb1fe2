// ref_test.cpp: references outlive what they refer to, and watchers hear of an end once.
#include "tests/runtime/actor_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

using namespace duet::test;
using duet::runtime::Down;
using duet::runtime::errc;
using duet::runtime::ExitKind;
using duet::runtime::Ref;
using duet::runtime::Self;
using Strings = std::vector<std::string>;

namespace {

using WatcherLanguage = std::variant<Down>;

class Watcher final : public duet::runtime::HandlerActor<Watcher, WatcherLanguage> {
 public:
  Watcher(Ref<Language> watched, Strings& log) : watched_(watched), log_(log) {}
  void started() { monitor(watched_); }
  void on(Down down) {
    const bool right = down.actor == watched_.address();
    log_.push_back((right ? "" : "wrong ") + std::string(to_string(down.reason.kind())) + " " +
                   down.reason.text());
  }

 private:
  Ref<Language> watched_;
  Strings& log_;
};

class Thrower final : public duet::runtime::HandlerActor<Thrower, Language> {
 public:
  void on(Work) { throw std::runtime_error("the work was bad"); }
  void on(Cancel) {}
  void on(Result) {}
  void on(Gauge) {}
  void on(Question) {}
  void on(duet::runtime::Stop) { finish(); }
};

duet::runtime::Behaviour throwing_behaviour(Self<std::variant<Work>> self) {
  co_await self.receive();
  throw std::runtime_error("the behaviour was bad");
}

}   // namespace

BOOST_AUTO_TEST_SUITE(refs)

BOOST_AUTO_TEST_CASE(sending_to_the_dead_and_to_nobody_says_receiver_gone) {
  Strings log;
  Host host;
  const auto recorder = host.system.spawn<Recorder>("recorder", log);
  recorder.send(duet::runtime::Stop{});
  host.run_ready();
  BOOST_TEST(!recorder.alive());
  BOOST_TEST((recorder.send(Result{1}) == errc::receiver_gone));
  BOOST_TEST((recorder.send(Work{1}) == errc::receiver_gone));
  BOOST_TEST((recorder.send(Gauge{1}) == errc::receiver_gone));
  BOOST_TEST((Ref<Language>{}.send(Result{1}) == errc::receiver_gone));
  BOOST_TEST(host.counters().receiver_gone == 3U);
}

// no old message reaches a new generation.
BOOST_AUTO_TEST_CASE(a_later_life_in_the_same_place_gets_nothing_that_was_meant_for_the_former) {
  Strings former;
  Strings later;
  Host host;
  const auto old = host.system.spawn<Recorder>("former", former);
  old.send(duet::runtime::Stop{});
  host.run_ready();
  const auto reborn = host.system.spawn<Recorder>("later", later);
  BOOST_TEST((reborn.address().slot() == old.address().slot()));
  BOOST_TEST((old.send(Result{1}) == errc::receiver_gone));
  reborn.send(Result{2});
  host.run_ready();
  BOOST_TEST(later == (Strings{"result 2"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_reference_may_be_used_after_its_system_and_context_are_gone) {
  Strings log;
  Ref<Language> recorder;
  {
    Host host;
    recorder = host.system.spawn<Recorder>("recorder", log);
    recorder.send(Result{1});
  }
  BOOST_TEST(!recorder.alive());
  BOOST_TEST((recorder.send(Result{2}) == errc::receiver_gone));
  BOOST_TEST(log.empty());
}

BOOST_AUTO_TEST_CASE(actors_that_are_born_and_die_while_threads_send_get_their_own_messages_only) {
  struct Shared {
    std::atomic<std::uint64_t> wrong = 0;
    std::atomic<std::uint64_t> received = 0;
  };
  struct Numbered final : duet::runtime::HandlerActor<Numbered, std::variant<Work, Result, Gauge>> {
    Numbered(int number, Shared& shared) : number_(number), shared_(shared) {}
    void on(Work work) { check(work.number); }
    void on(Gauge gauge) { check(gauge.number); }
    void on(Result result) {
      check(result.number);
      finish();
    }
    void check(int number) {
      ++shared_.received;
      if (number != number_) ++shared_.wrong;
    }
    const int number_;
    Shared& shared_;
  };
  using RefType = Ref<std::variant<Work, Result, Gauge>>;
  Shared shared;
  boost::asio::io_context io(2);
  duet::runtime::SystemOptions options;
  options.pumps = 2;
  options.bounded_max = 4;
  duet::runtime::System system(io.get_executor(), options);
  auto work = boost::asio::make_work_guard(io);
  std::thread pump([&io] { io.run(); });
  std::vector<std::thread> senders;
  for (int t = 0; t < 2; ++t) {
    senders.emplace_back([&, t] {
      RefType last;
      for (int i = 0; i < 3000; ++i) {
        const int number = 2 * i + t;
        const auto actor = system.spawn<Numbered>("numbered", number, shared);
        static_cast<void>(actor.send(Work{number}));
        actor.send(Gauge{number});
        actor.send(Result{number});                    // ends it
        static_cast<void>(actor.send(Work{number}));   // dead by now, or queued and dropped
        static_cast<void>(last.send(Work{number - 2}));
        last.send(Gauge{number - 2});
        last = actor;
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  work.reset();
  pump.join();
  BOOST_TEST(shared.wrong == 0U);
  BOOST_TEST(shared.received >= 2U * 3000U);
  BOOST_TEST(system.snapshot().actors.empty());
}

BOOST_AUTO_TEST_CASE(a_watcher_hears_once_how_an_actor_ended) {
  Strings log;
  Strings heard;
  std::vector<std::string> failures;
  duet::runtime::SystemOptions options;
  options.on_failure = [&failures](const duet::runtime::ActorFailure& failure) {
    failures.push_back(failure.name + ": " + failure.reason.text());
  };
  Host host(options);
  const auto stopped = host.system.spawn<Recorder>("stopped", log);
  const auto thrower = host.system.spawn<Thrower>("thrower");
  host.system.spawn<Watcher>("watcher", stopped, heard);
  host.system.spawn<Watcher>("watcher", thrower, heard);
  host.run_ready();
  BOOST_TEST(heard.empty());
  stopped.send(duet::runtime::Stop{});
  host.run_ready();
  BOOST_TEST(thrower.send(Work{}).ok());
  host.run_ready();
  host.system.spawn<Watcher>("late", thrower, heard);
  host.run_ready();
  BOOST_TEST(heard == (Strings{"finished finished", "failed the work was bad", "gone gone"}),
             boost::test_tools::per_element());
  BOOST_TEST(failures == (Strings{"thrower: the work was bad"}), boost::test_tools::per_element());
  BOOST_TEST(host.counters().failed == 1U);
}

BOOST_AUTO_TEST_CASE(an_exception_ends_its_behaviour_and_no_other) {
  std::vector<std::string> failures;
  duet::runtime::SystemOptions options;
  options.on_failure = [&failures](const duet::runtime::ActorFailure& failure) {
    failures.push_back(failure.name + ": " + failure.reason.text());
  };
  Strings log;
  Host host(options);
  const auto bad = host.system.spawn("bad", throwing_behaviour);
  const auto good = host.system.spawn<Recorder>("good", log);
  BOOST_TEST(bad.send(Work{}).ok());
  good.send(Result{1});
  host.run_ready();
  BOOST_TEST(!bad.alive());
  BOOST_TEST(good.alive());
  BOOST_TEST(log.size() == 1U);
  BOOST_TEST(failures == (Strings{"bad: the behaviour was bad"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
