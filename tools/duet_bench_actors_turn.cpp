// duet_bench_actors_turn.cpp: what a host notices of the actors on its loop, and loops of each
// other.
#include "tools/duet_bench_actors_turn.hpp"

#include "tools/duet_bench_actors_host.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>

namespace duet::tools {
namespace {

namespace asio = boost::asio;
using namespace bench;   // NOLINT(google-build-using-namespace): the messages, everywhere below
using runtime::Behaviour;
using runtime::HandlerActor;
using runtime::Ref;
using runtime::Self;

// The host's turn.

/// An actor that sends every message on to its partner. Never idle while messages are in flight.
using BusyLanguage = std::variant<Meet, Ping>;

class Busy final : public HandlerActor<Busy, BusyLanguage> {
 public:
  void on(Meet meet) { partner_ = Ref<BusyLanguage>(meet.next); }
  void on(Ping ping) { must(partner_.send(ping)); }

 private:
  Ref<BusyLanguage> partner_;
};

Behaviour busy(Self<BusyLanguage> self) {
  Ref<BusyLanguage> partner;
  for (;;) {
    const BusyLanguage message = co_await self.receive();
    if (const auto* const ping = std::get_if<Ping>(&message)) {
      must(partner.send(*ping));
    } else {
      partner = Ref<BusyLanguage>(std::get<Meet>(message).next);
    }
  }
}

constexpr std::uint32_t busy_pairs = 50;
constexpr std::uint64_t busy_in_flight = 64;
constexpr std::size_t turn_samples = 20'000;

/// Nanoseconds of this thread's CPU time.
std::int64_t cpu_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
std::int64_t time_now() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// A host's handler that comes again and again.
class Repost {
 public:
  Repost(asio::io_context& loop, std::int64_t (*now)()) : loop_(loop), now_(now) {
    intervals_.reserve(turn_samples);
  }
  void operator()() {
    const std::int64_t now = now_();
    if (last_ != 0) intervals_.push_back(now - last_);
    last_ = now;
    if (intervals_.size() == turn_samples) return loop_.stop();
    asio::post(loop_, [this] { (*this)(); });
  }
  /// Sorted, nanoseconds.
  [[nodiscard]] std::vector<std::int64_t> take() {
    std::sort(intervals_.begin(), intervals_.end());
    return std::move(intervals_);
  }

 private:
  asio::io_context& loop_;
  std::int64_t (*now_)();
  std::int64_t last_ = 0;
  std::vector<std::int64_t> intervals_;
};

std::vector<std::int64_t> host_turns(bool coroutine, std::int64_t (*now)()) {
  asio::io_context loop(1);
  runtime::System system(loop.get_executor());
  const auto spawn = [&system, coroutine] {
    return coroutine ? system.spawn("busy", busy) : system.spawn<Busy>("busy");
  };
  for (std::uint32_t i = 0; i < busy_pairs; ++i) {
    const Ref<BusyLanguage> one = spawn();
    const Ref<BusyLanguage> other = spawn();
    must(one.send(Meet{other.address()}));
    must(other.send(Meet{one.address()}));
    for (std::uint64_t j = 0; j < busy_in_flight; ++j) must(one.send(Ping{i, j}));
  }
  Repost repost(loop, now);
  asio::post(loop, [&repost] { repost(); });
  loop.run();
  return repost.take();
}

struct Quantile {
  const char* name;
  double part;
  double bar;
};
constexpr std::array<Quantile, 3> quantiles = {
    {{"p50", 0.5, 0}, {"p99", 0.99, 200}, {"max", 1, 0}}};

// Two loops.

class LoopPonger final : public HandlerActor<LoopPonger, PongerLanguage> {
 public:
  explicit LoopPonger(const Ref<PingerLanguage>& pinger) : pinger_(pinger) {}
  void on(Ping ping) { must(pinger_.send(Pong{ping.from, ping.number})); }

 private:
  const Ref<PingerLanguage> pinger_;
};

class LoopPinger final : public HandlerActor<LoopPinger, PingerLanguage> {
 public:
  LoopPinger(Host& other, Finish& finish) : other_(other), finish_(finish) {}
  void started() { ponger_ = other_.system.spawn<LoopPonger>("ponger", self()); }
  void on(Start start) {
    left_ = start.units / 2;
    must(ponger_.send(Ping{0, left_}));
  }
  void on(Pong pong) {
    if (--left_ == 0) return finish_.done();
    must(ponger_.send(Ping{pong.from, left_}));
  }

 private:
  Host& other_;
  Finish& finish_;
  Ref<PongerLanguage> ponger_;
  std::uint64_t left_ = 0;
};

Behaviour loop_ponger(Self<PongerLanguage> self, Ref<PingerLanguage> pinger) {
  for (;;) {
    const PongerLanguage message = co_await self.receive();
    const Ping& ping = std::get<Ping>(message);
    must(pinger.send(Pong{ping.from, ping.number}));
  }
}

Behaviour loop_pinger(Self<PingerLanguage> self, Host* other, Finish* finish) {
  const Ref<PongerLanguage> partner = other->system.spawn("ponger", loop_ponger, self.ref());
  std::uint64_t left = 0;
  for (;;) {
    const PingerLanguage message = co_await self.receive();
    if (const auto* const start = std::get_if<Start>(&message)) {
      left = start->units / 2;
      must(partner.send(Ping{0, left}));
    } else if (--left == 0) {
      finish->done();
    } else {
      must(partner.send(Ping{0, left}));
    }
  }
}

/// A handler that is posted from one loop to the other and back.
class BarePosts {
 public:
  BarePosts(Host& one, Host& other) : loops_{&one.loop, &other.loop} {}
  void run(std::uint64_t units) {
    left_ = units;
    finish_.expect(1);
    post();
    finish_.await();
  }

 private:
  void post() {
    asio::post(*loops_[left_ % 2], [this] {
      if (--left_ == 0) return finish_.done();
      post();
    });
  }
  std::array<asio::io_context*, 2> loops_;
  std::uint64_t left_ = 0;
  Finish finish_;
};

constexpr std::uint64_t loops_messages = 20'000;

template <typename F>
double ns_a_message(F run) {
  run(loops_messages / 10);
  const std::int64_t before = time_now();
  run(loops_messages);
  return static_cast<double>(time_now() - before) / static_cast<double>(loops_messages);
}

}   // namespace

std::vector<BenchResult> run_host_turn_bench(std::uint32_t runs) {
  std::array<std::array<BenchResult, quantiles.size()>, 4> results;
  for (std::uint32_t run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto sorted = host_turns(i % 2 == 0, i < 2 ? time_now : cpu_now);
      for (std::size_t q = 0; q < quantiles.size(); ++q) {
        const auto at =
            static_cast<std::size_t>(quantiles[q].part * static_cast<double>(sorted.size() - 1));
        results[i][q].runs.push_back(static_cast<double>(sorted[at]) / 1000);
      }
    }
  }
  std::vector<BenchResult> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::size_t q = 0; q < quantiles.size(); ++q) {
      BenchResult& result = results[i][q];
      result.name = std::string(i < 2 ? "host_turn_" : "host_turn_cpu_") +
                    (i % 2 == 0 ? "coroutine_1_" : "handler_1_") + quantiles[q].name;
      result.unit = "us";
      result.lower_is_better = true;
      result.bar = i < 2 ? quantiles[q].bar : 0;
      all.push_back(std::move(result));
    }
  }
  return all;
}

std::vector<BenchResult> run_loops_bench(std::uint32_t runs) {
  std::array<BenchResult, 3> results;
  for (std::uint32_t run = 0; run < runs; ++run) {
    Host one(1);
    Host other(1);
    const auto with_handlers = one.system.spawn<LoopPinger>("pinger", other, one.finish);
    const auto with_coroutines = one.system.spawn("pinger", loop_pinger, &other, &one.finish);
    const auto actors = [&one](const Ref<PingerLanguage>& pinger, std::uint64_t units) {
      one.finish.expect(1);
      must(pinger.send(Start{units}));
      one.finish.await();
    };
    results[0].runs.push_back(
        ns_a_message([&](std::uint64_t units) { actors(with_coroutines, units); }));
    results[1].runs.push_back(
        ns_a_message([&](std::uint64_t units) { actors(with_handlers, units); }));
    BarePosts bare(one, other);
    results[2].runs.push_back(ns_a_message([&](std::uint64_t units) { bare.run(units); }));
  }
  const std::array<const char*, 3> names = {"ping_pong_across_loops_coroutine_2",
                                            "ping_pong_across_loops_handler_2",
                                            "bare_post_across_loops_2"};
  std::vector<BenchResult> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].name = names[i];
    results[i].unit = "ns/message";
    results[i].lower_is_better = true;
    if (i < 2) results[i].peer = results[2].median();
    all.push_back(results[i]);
  }
  return all;
}

}   // namespace duet::tools
