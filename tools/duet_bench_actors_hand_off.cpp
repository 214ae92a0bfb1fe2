// duet_bench_actors_hand_off.cpp: hand-offs from a completion thread, one at a time.
#include "tools/duet_bench_actors_hand_off.hpp"

#include "runtime/handler_actor.hpp"
#include "runtime/real_completion_source.hpp"
#include "runtime/system.hpp"
#include "tools/duet_bench_process.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <variant>

namespace duet::tools {

using Clock = std::chrono::steady_clock;

struct HandedOff {
  Clock::time_point ended;
};

}   // namespace duet::tools

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<tools::HandedOff> = MessageClass::guaranteed;
}   // namespace duet::runtime

namespace duet::tools {
namespace {

namespace asio = boost::asio;
using Language = std::variant<HandedOff>;

enum class Way : std::uint8_t { on_its_thread, through_the_loop, bare_post };
constexpr std::size_t ways = 3;

/// Where a hand-off arrives; one at a time.
class Arrivals {
 public:
  void note(Clock::time_point ended) noexcept {
    nanoseconds_ = std::chrono::nanoseconds(Clock::now() - ended).count();
    count_.fetch_add(1, std::memory_order_release);
    count_.notify_one();
  }
  /// Nanoseconds of the hand-off after the first `before`.
  [[nodiscard]] std::int64_t await(std::uint64_t before) const noexcept {
    while (count_.load(std::memory_order_acquire) == before) count_.wait(before);
    return nanoseconds_;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(); }

 private:
  std::int64_t nanoseconds_ = 0;
  std::atomic<std::uint64_t> count_ = 0;
};

class Receiver final : public runtime::HandlerActor<Receiver, Language> {
 public:
  explicit Receiver(Arrivals& arrivals) : arrivals_(arrivals) {}
  void on(HandedOff message) { arrivals_.note(message.ended); }

 private:
  Arrivals& arrivals_;
};

/// A blocking call without anything to block on.
class Call final : public runtime::BlockingCall {
 public:
  Call(asio::io_context& loop, Arrivals& arrivals) : loop_(loop), arrivals_(arrivals) {}
  void run() noexcept override {}
  void finish(bool /*ran*/) noexcept override {
    const Clock::time_point ended = Clock::now();
    if (way == Way::on_its_thread) {
      inline_actor.send_and_run(HandedOff{ended});
    } else if (way == Way::through_the_loop) {
      loop_actor.send(HandedOff{ended});
    } else {
      asio::post(loop_, [this, ended] { arrivals_.note(ended); });
    }
  }

  Way way = Way::bare_post;
  runtime::Ref<Language> inline_actor;
  runtime::Ref<Language> loop_actor;

 private:
  asio::io_context& loop_;
  Arrivals& arrivals_;
};

/// The loop and the lane have a processor each: left to itself, the kernel puts both threads on one
/// of them now and then, for one of the ways and not for the others.
class HandOff {
 public:
  HandOff() : system_(loop_.get_executor()), call_(loop_, arrivals_) {
    run_on(Processors::last);   // what is started now stays there
    lane_ = source_.open_lane("bench-lane", 1);
    runtime::ActorOptions options("inline");
    options.run_on_completion_thread = true;
    call_.inline_actor = system_.spawn<Receiver>(options, arrivals_);
    call_.loop_actor = system_.spawn<Receiver>(runtime::ActorOptions("loop"), arrivals_);
    run_on(Processors::first);
    thread_ = std::thread([this] { loop_.run(); });
    run_on(Processors::all);
  }
  ~HandOff() {
    lane_.reset();
    work_.reset();
    loop_.stop();
    thread_.join();
  }
  HandOff(const HandOff&) = delete;
  HandOff& operator=(const HandOff&) = delete;

  [[nodiscard]] std::int64_t sample(Way way) {
    const std::uint64_t before = arrivals_.count();
    call_.way = way;
    // The lane is idle or about to be: a call waits at most for the end of the one before.
    while (!lane_->push(call_)) std::this_thread::yield();
    return arrivals_.await(before);
  }

 private:
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(loop_);
  runtime::System system_;
  runtime::RealCompletionSource source_;
  Arrivals arrivals_;
  Call call_;
  std::unique_ptr<runtime::CompletionLane> lane_;
  std::thread thread_;
};

/// A call that comes back until it has been made often enough.
class Turn final : public runtime::BlockingCall {
 public:
  Turn(asio::io_context& loop, std::uint32_t turns) : loop_(loop), left_(turns) {}
  void run() noexcept override {}
  void finish(bool ran) noexcept override {
    if (ran) asio::post(loop_, [this] { start(); });
  }
  void start() {
    if (left_-- > 0 && lane->push(*this)) return;
    loop_.stop();
  }

  std::unique_ptr<runtime::CompletionLane> lane;

 private:
  asio::io_context& loop_;
  std::uint32_t left_;
};

double quantile(std::vector<std::int64_t>& samples, double part) {
  const auto at = static_cast<std::size_t>(part * static_cast<double>(samples.size() - 1));
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(at),
                   samples.end());
  return static_cast<double>(samples[at]) / 1000;
}

constexpr std::array<std::pair<const char*, double>, 3> quantiles = {
    {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}}};

}   // namespace

std::vector<BenchResult> run_hand_off_bench(std::uint32_t runs, std::uint32_t samples_a_run) {
  constexpr std::array<const char*, ways> names = {
      "completion_on_its_thread_handler_1", "completion_through_the_loop_handler_1", "bare_post_1"};
  std::array<std::array<BenchResult, quantiles.size()>, ways> results;
  HandOff hand_off;
  for (std::uint32_t i = 0; i < 1000; ++i) {   // warm: threads, freelists, pages
    static_cast<void>(hand_off.sample(static_cast<Way>(i % ways)));
  }
  for (std::uint32_t run = 0; run < runs; ++run) {
    std::array<std::vector<std::int64_t>, ways> samples;
    for (std::uint32_t i = 0; i < samples_a_run; ++i) {
      for (std::size_t way = 0; way < ways; ++way) {
        samples[way].push_back(hand_off.sample(static_cast<Way>(way)));
      }
    }
    for (std::size_t way = 0; way < ways; ++way) {
      for (std::size_t q = 0; q < quantiles.size(); ++q) {
        results[way][q].runs.push_back(quantile(samples[way], quantiles[q].second));
      }
    }
  }
  std::vector<BenchResult> all;
  for (std::size_t way = 0; way < ways; ++way) {
    for (std::size_t q = 0; q < quantiles.size(); ++q) {
      BenchResult result = std::move(results[way][q]);
      result.name = std::string(names[way]) + "_" + quantiles[q].first;
      result.unit = "us";
      result.lower_is_better = true;
      if (static_cast<Way>(way) == Way::on_its_thread && q == 0) result.bar = 0.5;
      if (static_cast<Way>(way) == Way::through_the_loop) {
        result.peer = results[static_cast<std::size_t>(Way::bare_post)][q].median();
        if (q == 0) result.bar = 1.3 * result.peer;
      }
      all.push_back(std::move(result));
    }
  }
  return all;
}

double hand_off_turn_cpu(std::uint32_t turns) {
  asio::io_context loop{1};
  const auto work = asio::make_work_guard(loop);
  runtime::RealCompletionSource source;
  Turn turn(loop, turns);
  turn.lane = source.open_lane("bench-lane", 1);
  asio::post(loop, [&turn] { turn.start(); });
  const auto cpu = [] {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
  };
  const double before = cpu();
  loop.run();
  const double cost = cpu() - before;
  turn.lane->close();
  return cost / turns;
}

}   // namespace duet::tools
