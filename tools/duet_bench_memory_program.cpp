// duet_bench_memory_program.cpp: the program duet-bench-memory: counts malloc and measures what
// idle actors occupy. duet-bench starts it, because a counting malloc would slow its own figures
// down.
#include "tools/duet_bench_actors_host.hpp"
#include "tools/duet_bench_actors_idle.hpp"

#include <unistd.h>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

namespace {
std::atomic<std::uint64_t> allocations = 0;
void count() noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
}
}   // namespace

// glibc's own entry points, so that malloc itself is counted; operator new calls it.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) {
  count();
  return __libc_calloc(items, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count();
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
}

namespace duet::tools {
namespace {

using namespace bench;   // NOLINT(google-build-using-namespace): the messages
using runtime::Behaviour;
using runtime::HandlerActor;
using runtime::Self;

// Timers.

using SleeperLanguage = std::variant<Start>;
struct Due {};

}   // namespace
}   // namespace duet::tools

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<tools::Due> = MessageClass::guaranteed;
}   // namespace duet::runtime

namespace duet::tools {
namespace {

using TickerLanguage = std::variant<Start, Due>;

class Ticker final : public HandlerActor<Ticker, TickerLanguage> {
 public:
  explicit Ticker(Finish& finish) : finish_(finish) {}
  void on(Start start) {
    left_ = start.units;
    arm();
  }
  void on(Due) {
    if (--left_ > 0) return arm();
    finish_.done();
  }

 private:
  void arm() { send_after(std::chrono::nanoseconds(1), Due{}); }
  Finish& finish_;
  std::uint64_t left_ = 0;
};

Behaviour sleeper(Self<SleeperLanguage> self, Finish* finish) {
  for (;;) {
    const SleeperLanguage message = co_await self.receive();
    for (std::uint64_t left = std::get<Start>(message).units; left > 0; --left) {
      co_await self.sleep(std::chrono::nanoseconds(1));
    }
    finish->done();
  }
}

std::unique_ptr<Running> timers(bool coroutine) {
  auto host = std::make_unique<Host>(1);
  if (coroutine) {
    Refs<SleeperLanguage> sleepers{host->system.spawn("sleeper", sleeper, &host->finish)};
    return started(std::move(host), std::move(sleepers));
  }
  Refs<TickerLanguage> tickers{host->system.spawn<Ticker>("ticker", host->finish)};
  return started(std::move(host), std::move(tickers));
}

/// Null: no such thing.
std::unique_ptr<Running> make(std::string_view kind, std::string_view what) {
  if (what == "timer") {
    if (kind != "coroutine" && kind != "handler") return nullptr;
    return timers(kind == "coroutine");
  }
  if (what != "message" && what != "ask") return nullptr;
  const Workload workload = what == "message" ? Workload::ping_pong_one : Workload::ask;
  if (kind == "coroutine") return run_coroutines(workload, 1);
  if (kind == "handler") return run_handlers(workload, 1);
  if (kind == "caf") return run_caf(workload, 1, true);
  return nullptr;
}

constexpr std::uint64_t counted_units = 10'000;

/// Of one unit, once it is warm.
double allocations_of(Running& running) {
  running.run(counted_units);
  const std::uint64_t before = allocations.load();
  running.run(counted_units);
  return static_cast<double>(allocations.load() - before) / static_cast<double>(counted_units);
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Bytes of one idle actor that has handled one message.
double idle_bytes(IdleActors& idle, std::uint64_t actors) {
  const std::uint64_t before = resident_bytes();
  idle.fill();
  return static_cast<double>(resident_bytes() - before) / static_cast<double>(actors);
}

int wrong_use() {
  std::cerr << "usage: duet-bench-memory idle coroutine|handler|caf ACTORS (1000..10000000)\n"
               "       duet-bench-memory allocations coroutine|handler|caf message|ask|timer\n"
               "prints one number: bytes an idle actor, or calls of malloc. Part of duet-bench "
               "actors.\n";
  return 2;
}

int run(std::string_view what, std::string_view kind, std::string_view argument) {
  if (what == "allocations") {
    const auto running = make(kind, argument);
    if (running == nullptr) return wrong_use();
    std::printf("%.6f\n", allocations_of(*running));
    return 0;
  }
  std::uint64_t actors = 0;
  const auto parsed = std::from_chars(argument.data(), argument.data() + argument.size(), actors);
  if (what != "idle" || parsed.ptr != argument.data() + argument.size()) return wrong_use();
  if (actors < 1000 || actors > 10'000'000) return wrong_use();
  std::unique_ptr<IdleActors> idle;
  if (kind == "coroutine") idle = idle_coroutines(actors);
  if (kind == "handler") idle = idle_handlers(actors);
  if (kind == "caf") idle = idle_caf(actors);
  if (idle == nullptr) return wrong_use();
  std::printf("%.1f\n", idle_bytes(*idle, actors));
  std::fflush(stdout);
  ::_exit(0);   // ending a million actors is not what is measured
}

}   // namespace
}   // namespace duet::tools

int main(int argc, char** argv) {
  if (argc != 4) return duet::tools::wrong_use();
  return duet::tools::run(argv[1], argv[2], argv[3]);
}
