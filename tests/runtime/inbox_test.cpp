// inbox_test.cpp: the mailbox alone, with threads that push while one takes.
#include "runtime/detail/inbox.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using duet::runtime::errc;
using duet::runtime::Lane;
using duet::runtime::MessageClass;
using duet::runtime::detail::Inbox;
using duet::runtime::detail::MessageHeader;
using duet::runtime::detail::Node;
using duet::runtime::detail::NodeList;
using duet::runtime::detail::NodeOps;

constexpr std::uint32_t producers = 2;

struct Numbered : MessageHeader {
  std::uint32_t producer = 0;
  std::uint32_t number = 0;
  bool bounded = false;
};

void drop(Node& node, errc) noexcept {
  duet::runtime::detail::destroy(static_cast<Numbered*>(&node));
}

NodeOps numbered_ops(Lane lane) {
  NodeOps ops{&drop, nullptr, nullptr, "numbered", NodeOps::Kind::message, MessageClass::bounded,
              lane};
  ops.size_class = duet::runtime::detail::Pool::class_of(sizeof(Numbered));
  return ops;
}
const NodeOps normal_ops = numbered_ops(Lane::normal);

Numbered& numbered(std::uint32_t producer, std::uint32_t number, bool bounded) {
  auto* const node = duet::runtime::detail::create<Numbered>();
  node->ops = &normal_ops;
  node->producer = producer;
  node->number = number;
  node->bounded = bounded;
  return *node;
}

/// The threads of a test that push. Whoever wakes the inbox says so in `active`.
struct Producers {
  explicit Producers(Inbox& inbox_value) : inbox(inbox_value) {}

  /// `push(producer)` runs on a thread for each.
  template <typename F>
  void start(F push) {
    for (std::uint32_t i = 0; i < producers; ++i) threads.emplace_back([push, i] { push(i); });
  }
  /// Pushes until there is room; false: the inbox is dead, and the node was freed.
  bool push(Numbered& node) {
    for (;;) {
      // As a sender does: one of the simple ways first.
      Inbox::Push result = node.number % 4 < 2 ? inbox.try_push(node, node.bounded)
                                               : inbox.try_push_branchless(node, node.bounded);
      if (result == Inbox::Push::contended) result = inbox.push(node, Lane::normal, node.bounded);
      if (result == Inbox::Push::woke) active.store(true, std::memory_order_release);
      if (result == Inbox::Push::dead) drop(node, errc::receiver_gone);
      if (result != Inbox::Push::full) return result != Inbox::Push::dead;
      refused.fetch_add(1);
      std::this_thread::yield();
    }
  }
  void join() {
    for (std::thread& thread : threads) thread.join();
  }

  Inbox& inbox;
  std::vector<std::thread> threads;
  std::atomic<bool> active = true;   // an open inbox is
  std::atomic<std::uint64_t> refused = 0;
};

/// What the reader has seen of each producer.
struct Seen {
  void take(const Node& node) {
    const auto& message = static_cast<const Numbered&>(node);
    if (message.number != next[message.producer]++) ++out_of_order;
    ++count;
  }
  std::array<std::uint32_t, producers> next{};
  std::uint64_t out_of_order = 0;
  std::uint64_t count = 0;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(inbox)

BOOST_AUTO_TEST_CASE(what_threads_push_is_taken_once_and_in_order_however_it_is_taken) {
  constexpr std::uint32_t each = 30'000;
  constexpr std::uint32_t bound = 7;
  Inbox inbox;
  inbox.open(bound);
  Producers pushing(inbox);
  pushing.start([&](std::uint32_t producer) {
    for (std::uint32_t i = 0; i < each; ++i) pushing.push(numbered(producer, i, i % 3 != 0));
  });

  Seen seen;
  std::uint32_t over_bound = 0;
  std::uint32_t turn = 0;
  std::uint32_t others = 0;
  std::uint32_t uncounted = 0;
  NodeList later;
  const auto took = [&](Node& node) {
    seen.take(node);
    if (inbox.bounded() > bound) ++over_bound;
    if (static_cast<Numbered&>(node).bounded) {
      inbox.taken_bounded();
    } else if (inbox.others() < ++others) {
      ++uncounted;   // they are counted before they are linked
    }
  };
  while (seen.count < each * producers) {
    if (!pushing.active.exchange(false, std::memory_order_acquire)) {
      std::this_thread::yield();
      continue;
    }
    for (bool idle = false; !idle;) {
      ++turn;
      if (turn % 5 == 0) static_cast<void>(inbox.take_normal(later));
      while (Node* const node = later.pop()) {
        took(*node);
        duet::runtime::detail::free_node(*node);
      }
      for (std::uint32_t i = 0; i < turn % 4; ++i) {
        if (Node* const node = inbox.pop()) took(*node);
      }
      idle = inbox.try_idle() == Inbox::Idle::idle;
    }
  }
  pushing.join();
  BOOST_TEST(seen.count == each * producers);
  BOOST_TEST(seen.out_of_order == 0U);
  BOOST_TEST(over_bound == 0U);
  BOOST_TEST(uncounted == 0U);
  BOOST_TEST(inbox.others() == others);
  BOOST_TEST(inbox.pop() == nullptr);
}

// Each has at most one on its way, and there is room for one each.
BOOST_AUTO_TEST_CASE(nobody_is_refused_while_there_is_room_for_all) {
  constexpr std::uint32_t each = 100'000;
  Inbox inbox;
  inbox.open(producers);
  Producers pushing(inbox);
  std::array<std::atomic<std::uint32_t>, producers> taken{};
  pushing.start([&](std::uint32_t producer) {
    for (std::uint32_t i = 0; i < each; ++i) {
      while (taken[producer].load(std::memory_order_acquire) != i) std::this_thread::yield();
      pushing.push(numbered(producer, i, true));
    }
  });
  for (std::uint32_t count = 0; count < each * producers;) {
    if (Node* const node = inbox.pop()) {
      const std::uint32_t producer = static_cast<Numbered*>(node)->producer;
      inbox.taken_bounded();
      taken[producer].fetch_add(1, std::memory_order_release);
      ++count;
    } else {
      std::this_thread::yield();
    }
  }
  pushing.join();
  BOOST_TEST(pushing.refused.load() == 0U);
  BOOST_TEST((inbox.try_idle() == Inbox::Idle::idle));
}

BOOST_AUTO_TEST_CASE(the_end_of_a_life_takes_what_was_pushed_and_refuses_the_rest) {
  constexpr std::uint32_t lives = 300;
  constexpr std::uint32_t each = 40;
  std::uint64_t lost = 0;
  for (std::uint32_t life = 0; life < lives; ++life) {
    Inbox inbox;
    inbox.open(each * producers);
    Producers pushing(inbox);
    std::atomic<std::uint32_t> accepted = 0;
    pushing.start([&](std::uint32_t producer) {
      for (std::uint32_t i = 0; i < each; ++i) {
        if (!pushing.push(numbered(producer, i, i % 2 == 0))) return;
        accepted.fetch_add(1);
      }
    });
    std::uint32_t taken = 0;
    for (std::uint32_t i = 0; i < life % 30; ++i) taken += inbox.pop() != nullptr ? 1 : 0;
    NodeList urgent;
    NodeList normal;
    inbox.close(urgent, normal);
    while (Node* const node = normal.pop()) {
      ++taken;
      node->ops->drop(*node, errc::receiver_gone);
    }
    pushing.join();
    if (taken != accepted.load() || !urgent.empty()) ++lost;
    if (pushing.push(numbered(0, 0, false))) ++lost;
  }
  BOOST_TEST(lost == 0U);
}

// The counts in the words are 16 bits long.
BOOST_AUTO_TEST_CASE(the_bound_holds_after_the_counts_have_wrapped) {
  Inbox inbox;
  inbox.open(duet::runtime::limits::bounded_messages_max);
  std::uint32_t refused = 0;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    if (inbox.push(numbered(0, i, true), Lane::normal, true) != Inbox::Push::queued) ++refused;
    if (inbox.pop() != nullptr) inbox.taken_bounded();
  }
  BOOST_TEST(refused == 0U);
  std::uint32_t room = 0;
  for (;; ++room) {
    Numbered& node = numbered(0, room, true);
    if (inbox.push(node, Lane::normal, true) == Inbox::Push::queued) continue;
    drop(node, errc::overloaded);
    break;
  }
  BOOST_TEST(room == duet::runtime::limits::bounded_messages_max);
  NodeList urgent;
  NodeList normal;
  inbox.close(urgent, normal);
  while (Node* const node = normal.pop()) node->ops->drop(*node, errc::receiver_gone);
}

BOOST_AUTO_TEST_SUITE_END()
