// link_test.cpp: actors that end together, watchers that stop watching, and ends by force.
#include "runtime/link.hpp"

#include "tests/runtime/actor_fixture.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <stdexcept>

using namespace duet::test;
using duet::runtime::Behaviour;
using duet::runtime::Down;
using duet::runtime::ExitKind;
using duet::runtime::LinkedActorEnded;
using duet::runtime::Ref;
using duet::runtime::Self;
using duet::runtime::Stop;
using Strings = std::vector<std::string>;

namespace {

/// Orders to a Node, so that a test says what it does on its strand.
struct Act {
  explicit Act(std::function<void()> what = {}) noexcept : action(std::move(what)) {}
  std::function<void()> action;
};

}   // namespace

template <>
inline constexpr duet::runtime::MessageClass duet::runtime::message_class<Act> =
    duet::runtime::MessageClass::guaranteed;

namespace {

using NodeLanguage = std::variant<Act, Work, Result, Down, Stop>;
using NodeRef = Ref<NodeLanguage>;

/// Work fails, Result and Stop finish, a Down is written down.
class Node final : public duet::runtime::HandlerActor<Node, NodeLanguage> {
 public:
  Node(Strings& log, std::string name) : log_(log), name_(std::move(name)) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() override {
    if (exit_reason().kind() != ExitKind::running) {
      log_.push_back(name_ + " " + to_string(exit_reason().kind()) + ": " + exit_reason().text());
    }
  }
  void on(Act act) {
    current = this;
    act.action();
    current = nullptr;
  }
  void on(Work) { throw std::runtime_error("broken"); }
  void on(Result) { finish(); }
  void on(Down down) { log_.push_back(name_ + " hears: " + down.reason.text()); }
  void on(Stop) { finish(); }

  using HandlerActor::demonitor;
  using HandlerActor::link;
  using HandlerActor::link_told;
  using HandlerActor::monitor;
  using HandlerActor::spawn_linked;
  using HandlerActor::spawn_monitored;
  using HandlerActor::unlink;

  static inline thread_local Node* current = nullptr;

 private:
  Strings& log_;
  const std::string name_;
};

struct Fixture : Host {
  NodeRef node(const char* name) { return system.spawn<Node>(name, log, std::string(name)); }
  /// Runs `action(Node&)` on the strand of `node`.
  template <typename F>
  void on(const NodeRef& node, F action) {
    node.send(Act([action] { action(*Node::current); }));
    run_ready();
  }
  void link(const NodeRef& from, const NodeRef& to) {
    on(from, [to](Node& self) { self.link(to); });
  }
  void fail(const NodeRef& node) {
    BOOST_TEST(node.send(Work{}).ok());
    run_ready();
  }
  Strings log;
};

void check(const Strings& got, const Strings& expected) {
  BOOST_TEST(got == expected, boost::test_tools::per_element());
}

struct Said {
  explicit Said(Strings& to, const char* value) noexcept : log(to), text(value) {}
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;
  ~Said() { log.emplace_back(text); }
  Strings& log;
  const char* text;
};

/// Has Stop in its language and never looks at it: it waits for an hour's timer of Asio.
Behaviour waiter(Self<std::variant<Stop>> self, Strings* log) {
  const Said said(*log, "unwound");
  boost::asio::steady_timer timer(self.executor(), std::chrono::hours(1));
  co_await timer.async_wait(duet::runtime::use_async);
}

Behaviour linked_behaviour(Self<std::variant<Result, Stop>> self, NodeRef other, Strings* log) {
  const Said said(*log, "unwound");
  self.link(other);
  for (;;) co_await self.receive();
}

}   // namespace

BOOST_FIXTURE_TEST_SUITE(links, Fixture)

BOOST_AUTO_TEST_CASE(a_failure_ends_the_linked_actor_with_the_reason_whoever_linked) {
  const auto a = node("a");
  const auto b = node("b");
  link(a, b);
  fail(a);
  check(log, {"a failed: broken", "b killed: linked to a, which failed: broken"});
  log.clear();
  const auto c = node("c");
  const auto d = node("d");
  link(c, d);
  fail(d);
  check(log, {"d failed: broken", "c killed: linked to d, which failed: broken"});
  BOOST_TEST(living() == 0U);
  BOOST_TEST(counters().failed == 2U);   // who is killed has not failed
}

BOOST_AUTO_TEST_CASE(an_end_that_is_no_failure_only_dissolves_the_link) {
  const auto a = node("a");
  const auto b = node("b");
  const auto c = node("c");
  link(a, b);
  link(a, c);
  b.send(Result{});
  system.stop(c);
  run_ready();
  BOOST_TEST(a.alive());
  BOOST_TEST(!b.alive());
  BOOST_TEST(!c.alive());
  const auto d = node("d");   // perhaps in the place of one of them
  fail(a);
  BOOST_TEST(d.alive());
}

BOOST_AUTO_TEST_CASE(a_chain_of_links_ends_with_the_first_reason) {
  const auto a = node("a");
  const auto b = node("b");
  const auto c = node("c");
  link(a, b);
  link(b, c);
  fail(a);
  check(log, {"a failed: broken", "b killed: linked to a, which failed: broken",
              "c killed: linked to a, which failed: broken"});
}

BOOST_AUTO_TEST_CASE(a_ring_of_links_ends_once) {
  std::vector<NodeRef> ring;
  for (int i = 0; i < 50; ++i) ring.push_back(node("ring"));
  for (int i = 0; i < 50; ++i) link(ring[i], ring[(i + 1) % 50]);
  fail(ring[7]);
  BOOST_TEST(living() == 0U);
  BOOST_TEST(log.size() == 50U);
}

BOOST_AUTO_TEST_CASE(linking_to_one_who_has_ended_ends_us) {
  const auto a = node("a");
  const auto b = node("b");
  b.send(Result{});
  run_ready();
  log.clear();
  link(a, b);
  check(log, {"a killed: linked to an actor that had ended"});
}

BOOST_AUTO_TEST_CASE(who_is_told_is_not_ended_and_its_own_failure_still_ends_the_other) {
  const auto a = node("a");
  const auto b = node("b");
  const auto c = node("c");
  on(a, [b, c](Node& self) {
    self.link_told(b);
    self.link_told(c);
  });
  fail(b);
  check(log, {"b failed: broken", "a hears: broken"});
  BOOST_TEST(a.alive());
  log.clear();
  fail(a);
  check(log, {"a failed: broken", "c killed: linked to a, which failed: broken"});
}

BOOST_AUTO_TEST_CASE(an_unlinked_actor_survives_whoever_unlinks) {
  const auto a = node("a");
  const auto b = node("b");
  link(a, b);
  on(b, [a](Node& self) { self.unlink(a); });
  fail(a);
  BOOST_TEST(b.alive());
  const auto c = node("c");
  link(c, b);
  on(c, [b](Node& self) { self.unlink(b); });
  fail(c);
  BOOST_TEST(b.alive());
  BOOST_TEST(b.address().slot()->monitors().size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_behaviour_with_stop_in_its_language_is_unwound_by_a_link) {
  const auto a = node("a");
  const auto b = system.spawn("b", linked_behaviour, a, &log);
  run_ready();
  fail(a);
  BOOST_TEST(!b.alive());
  check(log, {"a failed: broken", "unwound"});
}

BOOST_AUTO_TEST_CASE(a_child_that_is_spawned_linked_takes_its_parent_along_and_back) {
  const auto a = node("a");
  NodeRef child;
  on(a, [&](Node& self) { child = self.spawn_linked<Node>("child", log, std::string("child")); });
  fail(child);
  check(log, {"child failed: broken", "a killed: linked to child, which failed: broken"});
  log.clear();
  const auto b = node("b");
  on(b, [&](Node& self) { child = self.spawn_linked<Node>("child", log, std::string("child")); });
  fail(b);
  check(log, {"b failed: broken", "child killed: linked to b, which failed: broken"});
}

BOOST_AUTO_TEST_CASE(a_child_that_fails_before_anything_else_is_heard_of_if_spawned_monitored) {
  const auto a = node("a");
  on(a, [&](Node& self) {
    const auto child = self.spawn_monitored<Node>("child", log, std::string("child"));
    BOOST_TEST(child.send(Work{}).ok());
  });
  check(log, {"child failed: broken", "a hears: broken"});   // and not: gone
}

BOOST_AUTO_TEST_CASE(who_has_taken_its_monitor_back_hears_nothing) {
  const auto a = node("a");
  const auto b = node("b");
  on(a, [b](Node& self) {
    self.monitor(b);
    self.monitor(b);
    self.demonitor(b);
  });
  fail(b);
  check(log, {"b failed: broken"});
  on(a, [b](Node& self) { self.demonitor(b); });   // of the dead: nothing happens
  BOOST_TEST(a.alive());
}

BOOST_AUTO_TEST_CASE(watchers_that_ended_do_not_pile_up_at_one_who_lives_long) {
  const auto service = node("service");
  for (int i = 0; i < 10000; ++i) {
    const auto session = node("session");
    session.send(Act([service] {
      Node::current->monitor(service);
      Node::current->link(service);
    }));
    session.send(Result{});
    run_ready();
  }
  BOOST_TEST(service.address().slot()->monitors().size() <= 40U);
  log.clear();
  fail(service);
  check(log, {"service failed: broken"});
}

BOOST_AUTO_TEST_CASE(many_living_watchers_all_hear) {
  const auto service = node("service");
  for (int i = 0; i < 1000; ++i)
    on(node("watcher"), [service](Node& self) { self.monitor(service); });
  BOOST_TEST(service.address().slot()->monitors().size() == 1000U);
  fail(service);
  BOOST_TEST(log.size() == 1001U);
}

// what an actor awaits is cancelled with it.
BOOST_AUTO_TEST_CASE(a_killed_behaviour_unwinds_and_its_operations_are_cancelled) {
  const auto watcher = node("watcher");
  const auto stubborn = system.spawn("stubborn", waiter, &log);
  watcher.send(Act([stubborn] { Node::current->monitor(stubborn); }));
  run_ready();
  system.stop(stubborn);   // a message that it never looks at
  run_ready();
  BOOST_TEST(stubborn.alive());
  BOOST_TEST(system.kill(stubborn, "it is in the way"));
  io.restart();
  io.run();   // it would take an hour if the timer were not cancelled
  BOOST_TEST(!stubborn.alive());
  check(log, {"unwound", "watcher hears: it is in the way"});
  BOOST_TEST(!system.kill(stubborn, "again"));
  BOOST_TEST(counters().failed == 0U);
}

BOOST_AUTO_TEST_CASE(pairs_that_fail_at_once_on_two_threads_end_without_a_trace) {
  using PeerLanguage = std::variant<Work, Result>;
  struct Peer final : duet::runtime::HandlerActor<Peer, PeerLanguage> {
    Peer(Ref<PeerLanguage> other, std::atomic<int>& ended) : other_(other), ended_(ended) {}
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() override { ++ended_; }
    void started() {
      if (!other_.empty()) link(other_);
    }
    void on(Work) { throw std::runtime_error("broken"); }
    void on(Result) {}
    const Ref<PeerLanguage> other_;
    std::atomic<int>& ended_;
  };
  std::atomic<int> ended = 0;
  boost::asio::thread_pool pool(2);
  duet::runtime::SystemOptions options;
  options.pumps = 2;
  duet::runtime::System threaded(pool.get_executor(), options);
  for (int i = 0; i < 500; ++i) {
    const auto first = threaded.spawn<Peer>("first", Ref<PeerLanguage>(), ended);
    const auto second = threaded.spawn<Peer>("second", first, ended);
    static_cast<void>(first.send(Work{}));
    static_cast<void>(second.send(Work{}));
    const auto third = threaded.spawn<Peer>("third", second, ended);
    third.send(Result{});
  }
  pool.wait();
  BOOST_TEST(ended == 1500);
  BOOST_TEST(threaded.snapshot().actors.empty());
}

BOOST_AUTO_TEST_SUITE_END()
