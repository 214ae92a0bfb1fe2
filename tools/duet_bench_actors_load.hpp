// duet_bench_actors_load.hpp: the workloads of duet-bench actors, the same for every library.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace duet::tools {

enum class Workload : std::uint8_t {
  ping_pong_one,     ///< one pair; one message in flight
  ping_pong_two,     ///< two pairs at the same time; two messages in flight
  counting,          ///< one producer, one counter; windows of 512 messages
  ring,              ///< 1000 actors, one message in flight
  fork_create,       ///< batches of 1000 actors that handle one message, answer and end
  fork_throughput,   ///< one sender, 60 receivers; rounds of 200 messages each
  big,               ///< 120 actors, each pings a random other and awaits its pong
  ask                ///< one asker, one server; a request and its reply, with a timeout
};

struct LoadSize {
  Workload workload;
  const char* name;
  const char* unit;         ///< of what one unit is
  std::uint64_t units;      ///< of one run of ours
  std::uint64_t slowdown;   ///< the peer makes fewer: a divisor
};

inline constexpr std::array<LoadSize, 8> loads = {{
    {Workload::ping_pong_one, "ping_pong_one", "ns/message", 2'000'000, 8},
    {Workload::ping_pong_two, "ping_pong_two", "ns/message", 2'000'000, 8},
    {Workload::counting, "counting", "ns/message", 2'048'000, 8},
    {Workload::ring, "ring", "ns/message", 2'000'000, 8},
    {Workload::fork_create, "fork_create", "ns/actor", 200'000, 10},
    {Workload::fork_throughput, "fork_throughput", "ns/message", 2'400'000, 8},
    {Workload::big, "big", "ns/message", 2'400'000, 8},
    {Workload::ask, "ask", "ns/ask", 400'000, 8},
}};

inline constexpr std::uint64_t counting_window = 512;
inline constexpr std::uint32_t ring_actors = 1000;
inline constexpr std::uint64_t create_batch = 1000;
inline constexpr std::uint32_t throughput_receivers = 60;
inline constexpr std::uint64_t throughput_round = 200;
inline constexpr std::uint32_t big_actors = 120;
inline constexpr std::int64_t ask_timeout_s = 10;

/// The next of a sequence that is the same for every library (xorshift64).
[[nodiscard]] inline std::uint64_t next_random(std::uint64_t& state) noexcept {
  state ^= state << 13U;
  state ^= state >> 7U;
  state ^= state << 17U;
  return state;
}

/// Where the actors of a run say that they are done; the measuring thread sleeps meanwhile.
class Finish {
 public:
  void expect(std::uint32_t actors) noexcept { left_.store(actors, std::memory_order_release); }
  void done() noexcept {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
  }
  void await() const noexcept {
    for (std::uint32_t left = left_.load(std::memory_order_acquire); left != 0;
         left = left_.load(std::memory_order_acquire)) {
      left_.wait(left);
    }
  }

 private:
  std::atomic<std::uint32_t> left_ = 0;
};

/// Actors of one workload in a system of their own, with threads of their own.
class Running {
 public:
  Running() = default;
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  virtual ~Running() = default;
  /// Sends what begins the work and returns when it is done. May be called again.
  virtual void run(std::uint64_t units) = 0;
};

[[nodiscard]] std::unique_ptr<Running> run_handlers(Workload workload, std::uint32_t threads);
[[nodiscard]] std::unique_ptr<Running> run_coroutines(Workload workload, std::uint32_t threads);
/// Null if this program was built without CAF. `with_timeout` is for Workload::ask alone.
[[nodiscard]] std::unique_ptr<Running> run_caf(Workload workload, std::uint32_t threads,
                                               bool with_timeout);
/// Version of the CAF that this program was built with; null if without.
[[nodiscard]] const char* caf_version() noexcept;

}   // namespace duet::tools
