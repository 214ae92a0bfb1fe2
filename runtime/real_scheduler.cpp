// real_scheduler.cpp: pumps over an Asio executor.
#include "runtime/real_scheduler.hpp"

#include "runtime/assert.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/detail/thread_state.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/defer.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace duet::runtime {
namespace {

namespace asio = boost::asio;

/// Posts through the concrete executor where it is a usual one: cheaper, and with our allocator, so
/// that waking the host from a foreign thread allocates nothing when warm.
template <typename Handler>
void post_handler(const asio::any_io_executor& executor, Handler handler, bool goes_on) {
  auto bound = asio::bind_allocator(detail::PoolAllocator<void>{}, std::move(handler));
  const auto submit = [&](const auto& to) {
    if (goes_on) {
      asio::defer(to, std::move(bound));   // the thread goes on with it; no other one is woken
    } else {
      asio::post(to, std::move(bound));
    }
  };
  if (const auto* io = executor.target<asio::io_context::executor_type>()) {
    submit(*io);
  } else if (const auto* pool = executor.target<asio::thread_pool::executor_type>()) {
    submit(*pool);
  } else {
    submit(executor);
  }
}

}   // namespace

struct RealScheduler::State : std::enable_shared_from_this<State> {
  struct alignas(64) Pump {
    RunnableQueue ready;   // of the thread that runs the pump
    std::uint32_t activations = 0;
    Pump* next_idle = nullptr;
  };

  State(asio::any_io_executor executor_value, RealSchedulerOptions options_value)
      : executor(std::move(executor_value)), options(options_value), pumps(options.pumps_max) {
    for (Pump& pump : pumps) {
      pump.next_idle = idle;
      idle = &pump;
    }
    hungry.store(options.pumps_max, std::memory_order_relaxed);
  }

  const asio::any_io_executor executor;
  const RealSchedulerOptions options;
  std::vector<Pump> pumps;
  std::atomic<std::uint32_t> hungry = 0;         // idle pumps
  std::atomic<std::uint64_t> shared_count = 0;   // size of `shared`, to look without the lock

  std::mutex mutex;   // guards what follows
  RunnableQueue shared;
  Pump* idle = nullptr;
  std::uint32_t running = 0;   // pumps inside a slice
  bool closed = false;
  std::condition_variable slice_ended;

  std::atomic<std::uint64_t> work = 0;
  std::optional<asio::any_io_executor> tracked;   // holds the host's run() while work > 0

  static inline constinit thread_local State* here = nullptr;
  static inline constinit thread_local Pump* here_pump = nullptr;

  void post_pump(Pump& pump, bool goes_on = false) {
    const auto slice_of = [state = shared_from_this(), &pump] { state->slice(pump); };
    post_handler(executor, slice_of, goes_on);
  }

  /// With the lock.
  [[nodiscard]] Pump* wake_one() noexcept {
    Pump* const pump = idle;
    if (pump == nullptr) return nullptr;
    idle = pump->next_idle;
    hungry.fetch_sub(1, std::memory_order_relaxed);
    return pump;
  }

  /// With the lock.
  void take_share(Pump& pump) noexcept {
    std::uint64_t share = (shared.size() + options.pumps_max - 1) / options.pumps_max;
    for (; share > 0; --share) pump.ready.push(*shared.pop());
    shared_count.store(shared.size(), std::memory_order_relaxed);
  }

  void post_shared(RunnableQueue& runnables) noexcept {
    Pump* woken = nullptr;
    {
      const std::lock_guard lock(mutex);
      DUET_ASSERT(!closed);
      while (Runnable* runnable = runnables.pop()) shared.push(*runnable);
      shared_count.store(shared.size(), std::memory_order_relaxed);
      woken = wake_one();
    }
    if (woken != nullptr) post_pump(*woken);
  }

  /// Gives half of what this pump has to be done away.
  void donate(Pump& pump) noexcept {
    Pump* woken = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (closed || shared.size() >= options.pumps_max) return;
      for (std::uint64_t half = pump.ready.size() / 2; half > 0; --half) {
        shared.push(*pump.ready.pop());
      }
      shared_count.store(shared.size(), std::memory_order_relaxed);
      woken = wake_one();
    }
    if (woken != nullptr) post_pump(*woken);
  }

  /// False: there is nothing to do and the pump is idle.
  [[nodiscard]] bool refill(Pump& pump) noexcept {
    const std::lock_guard lock(mutex);
    if (!closed && shared.size() > 0) {
      take_share(pump);
      return true;
    }
    pump.next_idle = idle;
    idle = &pump;
    hungry.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  [[nodiscard]] bool begin_slice() noexcept {
    const std::lock_guard lock(mutex);
    if (closed) return false;
    ++running;
    return true;
  }

  void end_slice() noexcept {
    const std::lock_guard lock(mutex);
    if (--running == 0 && closed) slice_ended.notify_all();
  }

  void slice(Pump& pump) noexcept {
    if (!begin_slice()) return;
    State* const outer = std::exchange(here, this);
    Pump* const outer_pump = std::exchange(here_pump, &pump);
    detail::thread_state().stamps_left = 0;
    const bool more = run_ready(pump);
    here = outer;
    here_pump = outer_pump;
    if (more) post_pump(pump, true);
    end_slice();
  }

  /// True when the slice is over though more may be ready.
  [[nodiscard]] bool run_ready(Pump& pump) noexcept {
    using Nanoseconds = std::chrono::nanoseconds;
    const auto end = std::chrono::steady_clock::now() + Nanoseconds(limits::slice_ns_max);
    auto looked = end - Nanoseconds(limits::slice_ns_max);
    std::uint32_t look_in = look_max;
    for (std::uint32_t i = 0; i < options.slice_max; ++i) {
      Runnable* next = pump.ready.pop();
      if (next == nullptr) {
        if (!refill(pump)) return false;
        next = pump.ready.pop();
      } else if (++pump.activations % limits::shared_look_activations == 0 &&
                 shared_count.load(std::memory_order_relaxed) > 0) {
        const std::lock_guard lock(mutex);
        take_share(pump);
      }
      next->run();
      // Not while it runs: who makes many ready is faster alone, and they come in one batch.
      if (pump.ready.size() > 1 && hungry.load(std::memory_order_relaxed) > 0) donate(pump);
      if (--look_in == 0) {
        const auto now = std::chrono::steady_clock::now();
        if (now >= end) return true;
        // Heavy runnables: look at the clock after each of them.
        look_in = now - looked > Nanoseconds(limits::slice_ns_max / 8) ? 1 : look_max;
        looked = now;
      }
    }
    return true;
  }

  static constexpr std::uint32_t look_max = 16;   // runnables between two looks at the clock
};

RealScheduler::RealScheduler(asio::any_io_executor executor, RealSchedulerOptions options)
    : state_(std::make_shared<State>(std::move(executor), options)) {
  DUET_ASSERT(options.pumps_max > 0 && options.slice_max > 0, options.pumps_max, options.slice_max);
}

RealScheduler::~RealScheduler() {
  {
    const std::lock_guard lock(state_->mutex);
    DUET_ASSERT(state_->closed || (state_->shared.empty() && state_->work.load() == 0),
                state_->shared.size(), state_->work.load());
  }
  close();
}

void RealScheduler::post(Runnable& runnable) noexcept {
  State& state = *state_;
  if (State::here == &state) {
    State::here_pump->ready.push(runnable);
    return;
  }
  RunnableQueue one;
  one.push(runnable);
  state.post_shared(one);
}

void RealScheduler::post_all(RunnableQueue& runnables) noexcept {
  if (State::here == state_.get()) {
    while (Runnable* runnable = runnables.pop()) post(*runnable);
  } else if (!runnables.empty()) {
    state_->post_shared(runnables);
  }
}

void RealScheduler::close() noexcept {
  DUET_ASSERT(State::here != state_.get());
  std::unique_lock lock(state_->mutex);
  state_->closed = true;
  state_->slice_ended.wait(lock, [this] { return state_->running == 0; });
  while (state_->shared.pop() != nullptr) {
  }
  for (State::Pump& pump : state_->pumps) {
    while (pump.ready.pop() != nullptr) {
    }
  }
  state_->tracked.reset();
}

void RealScheduler::work_started() noexcept {
  if (state_->work.fetch_add(1, std::memory_order_relaxed) != 0) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->work.load(std::memory_order_relaxed) == 0 || state_->tracked || state_->closed)
    return;
  state_->tracked = asio::prefer(state_->executor, asio::execution::outstanding_work.tracked);
}

void RealScheduler::work_finished() noexcept {
  const std::uint64_t before = state_->work.fetch_sub(1, std::memory_order_acq_rel);
  DUET_ASSERT(before > 0);
  if (before != 1) return;
  std::optional<asio::any_io_executor> released;   // destroyed after the lock: it may wake the host
  const std::lock_guard lock(state_->mutex);
  if (state_->work.load(std::memory_order_relaxed) == 0) released.swap(state_->tracked);
}

}   // namespace duet::runtime
