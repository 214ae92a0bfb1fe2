// duet_bench_actors_host.hpp: the messages of the actor benchmarks, and the host that runs them.
#pragma once

#include "runtime/handler_actor.hpp"
#include "runtime/self.hpp"
#include "runtime/system.hpp"
#include "tools/duet_bench_actors_load.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

namespace duet::tools::bench {

// Payloads of 16 bytes. What begins work is bounded, what answers it is guaranteed.

/// Begins a run of `units`.
struct Start {
  std::uint64_t units = 0;
};
struct Ping {
  std::uint64_t from = 0;
  std::uint64_t number = 0;
};
struct Pong {
  std::uint64_t from = 0;
  std::uint64_t number = 0;
};
struct Add {
  std::uint64_t amount = 0;
  std::uint64_t number = 0;
};
struct GetTotal {
  std::uint64_t from = 0;
  std::uint64_t number = 0;
};
struct Total {
  std::uint64_t total = 0;
  std::uint64_t number = 0;
};
struct Token {
  std::uint64_t left = 0;
  std::uint64_t number = 0;
};
struct Task {
  std::uint64_t from = 0;
  std::uint64_t number = 0;
};
struct TaskDone {
  std::uint64_t from = 0;
  std::uint64_t number = 0;
};
struct Answer {
  std::uint64_t from = 0;
  std::uint64_t number = 0;
};
struct Question {
  Question(std::uint64_t from_value, std::uint64_t number_value) noexcept
      : from(from_value), number(number_value) {}
  runtime::Reply<Answer> reply;
  std::uint64_t from;
  std::uint64_t number;
};

using PongerLanguage = std::variant<Ping>;
using PingerLanguage = std::variant<Start, Pong>;
using CounterLanguage = std::variant<Add, GetTotal>;
using ProducerLanguage = std::variant<Start, Total>;
/// The next actor of the ring, of the same language.
struct Meet {
  runtime::Address next;
};
using RingLanguage = std::variant<Meet, Start, Token>;
using WorkerLanguage = std::variant<Task>;
using ParentLanguage = std::variant<Start, TaskDone>;
using BigLanguage = std::variant<Start, Ping, Pong>;
using AskerLanguage = std::variant<Start>;
using ServerLanguage = std::variant<Question>;

static_assert(sizeof(Ping) == 16 && sizeof(Token) == 16 && sizeof(Task) == 16);

}   // namespace duet::tools::bench

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<tools::bench::Start> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<tools::bench::Ping> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::bench::Pong> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<tools::bench::Add> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::bench::GetTotal> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::bench::Total> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<tools::bench::Meet> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<tools::bench::Token> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::bench::Task> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::bench::TaskDone> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<tools::bench::Question> = MessageClass::bounded;
}   // namespace duet::runtime

namespace duet::tools::bench {

/// A bounded message that the workload's windows leave room for. A refusal would make the figures
/// a lie, so it ends the program.
inline void must(const runtime::SendStatus& status) noexcept {
  DUET_ASSERT(status.ok());
}

/// An io_context with threads of its own, as a host would have it, and a system on it with its
/// defaults.
class Host {
 public:
  explicit Host(std::uint32_t threads)
      : loop(static_cast<int>(threads)), system(loop.get_executor(), options(threads)) {
    for (std::uint32_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { loop.run(); });
    }
  }
  ~Host() {
    loop.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

 private:
  [[nodiscard]] static runtime::SystemOptions options(std::uint32_t threads) {
    runtime::SystemOptions chosen;
    chosen.pumps = threads;
    return chosen;
  }

 public:
  boost::asio::io_context loop;
  Finish finish;
  runtime::System system;

 private:
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(loop);
  std::vector<std::thread> threads_;
};

template <typename M>
using Refs = std::vector<runtime::Ref<M>>;

/// What drives a workload: actors that are told to start.
template <typename M>
class Started final : public Running {
 public:
  /// `first` gets what a run begins with; `share` of the run's units each.
  Started(std::unique_ptr<Host> host, Refs<M> first)
      : host_(std::move(host)), first_(std::move(first)) {}
  void run(std::uint64_t units) override {
    host_->finish.expect(static_cast<std::uint32_t>(first_.size()));
    for (const runtime::Ref<M>& actor : first_) must(actor.send(Start{units / first_.size()}));
    host_->finish.await();
  }

 private:
  std::unique_ptr<Host> host_;
  Refs<M> first_;
};

template <typename M>
[[nodiscard]] std::unique_ptr<Running> started(std::unique_ptr<Host> host, Refs<M> first) {
  return std::make_unique<Started<M>>(std::move(host), std::move(first));
}

/// The actors of the all-to-all workload know each other before they begin.
using Everybody = std::shared_ptr<Refs<BigLanguage>>;

}   // namespace duet::tools::bench
