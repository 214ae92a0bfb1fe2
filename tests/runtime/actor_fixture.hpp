// actor_fixture.hpp: messages, a clock that the test moves, and a host for tests of actors.
#pragma once

#include "runtime/clock.hpp"
#include "runtime/handler_actor.hpp"
#include "runtime/self.hpp"
#include "runtime/system.hpp"
#include "runtime/timer_heap.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace duet::test {

/// Bounded and normal.
struct Work {
  int number = 0;
};
/// Guaranteed and urgent.
struct Cancel {
  int number = 0;
};
/// Guaranteed and normal.
struct Result {
  int number = 0;
};
/// Only the newest matters.
struct Gauge {
  int number = 0;
};
/// Bounded; asks for a number.
struct Question {
  explicit Question(int value = 0) noexcept : number(value) {}
  runtime::Reply<int> reply;
  int number;
};

}   // namespace duet::test

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<test::Work> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<test::Cancel> = MessageClass::guaranteed;
template <>
inline constexpr Lane message_lane<test::Cancel> = Lane::urgent;
template <>
inline constexpr MessageClass message_class<test::Result> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<test::Gauge> = MessageClass::latest;
template <>
inline constexpr MessageClass message_class<test::Question> = MessageClass::bounded;
}   // namespace duet::runtime

namespace duet::test {

using namespace std::chrono_literals;   // NOLINT(google-build-using-namespace): 5s reads well

using Language = std::variant<Work, Cancel, Result, Gauge, Question, runtime::Stop>;

/// Writes down what comes, as "work 1", "cancel 2", ...; ends on Stop.
class Recorder final : public runtime::HandlerActor<Recorder, Language> {
 public:
  explicit Recorder(std::vector<std::string>& log) : log_(log) {}
  void on(Work work) { add("work", work.number); }
  void on(Cancel cancel) { add("cancel", cancel.number); }
  void on(Result result) { add("result", result.number); }
  void on(Gauge gauge) { add("gauge", gauge.number); }
  void on(Question question) {
    add("question", question.number);
    question.reply(2 * question.number);
  }
  void on(runtime::Stop) {
    log_.emplace_back("stop");
    finish();
  }

 private:
  void add(const char* what, int number) {
    log_.push_back(std::string(what) + " " + std::to_string(number));
  }
  std::vector<std::string>& log_;
};

/// Moved by the test alone; timers expire on the thread that advances it.
class ManualClock final : public runtime::Clock {
 public:
  [[nodiscard]] runtime::TimePoint now() const noexcept override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  [[nodiscard]] runtime::WallTime wall_now() const noexcept override { return {}; }
  void arm(runtime::Timer& timer, runtime::TimePoint due) override {
    const std::lock_guard lock(mutex_);
    heap_.arm(timer, due);
  }
  bool cancel(runtime::Timer& timer) noexcept override {
    const std::lock_guard lock(mutex_);
    return heap_.remove(timer);
  }
  void advance(runtime::Duration duration) {
    std::unique_lock lock(mutex_);
    now_ += duration;
    while (runtime::Timer* const timer = heap_.pop_due(now_)) {
      lock.unlock();
      timer->expired();
      lock.lock();
    }
  }
  [[nodiscard]] std::size_t armed() const {
    const std::lock_guard lock(mutex_);
    return heap_.size();
  }

 private:
  mutable std::mutex mutex_;
  runtime::TimerHeap heap_;
  runtime::TimePoint now_{std::chrono::hours(1)};
};

/// A system on an io_context of one thread, with a clock that the test moves.
struct Host {
  explicit Host(runtime::SystemOptions options = {}) : system(io.get_executor(), with(options)) {}

  /// Runs what is ready until nothing is; waits for nothing.
  void run_ready() {
    io.restart();
    while (io.poll() > 0) {
    }
  }
  void advance(runtime::Duration duration) {
    run_ready();
    clock.advance(duration);
    run_ready();
  }
  [[nodiscard]] runtime::SystemCounters counters() const { return system.snapshot().counters; }
  [[nodiscard]] std::size_t living() const { return system.snapshot().actors.size(); }

  runtime::SystemOptions& with(runtime::SystemOptions& options) {
    options.clock = &clock;
    options.stamp_activations = 1;
    return options;
  }

  ManualClock clock;
  boost::asio::io_context io;
  runtime::System system;
};

}   // namespace duet::test
