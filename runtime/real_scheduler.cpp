// real_scheduler.cpp: pumps over an Asio executor.
#include "runtime/real_scheduler.hpp"

#include "runtime/assert.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/detail/pump_load.hpp"
#include "runtime/detail/spread.hpp"
#include "runtime/detail/thread_state.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/defer.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
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
  using Clock = std::chrono::steady_clock;
  using Nanoseconds = std::chrono::nanoseconds;

  struct alignas(64) Pump {
    RunnableQueue ready;   // of the thread that runs the pump
    detail::PumpLoad load;
    std::uint32_t since_look = 0;   // runnables since it took from the shared list
    std::uint32_t waits = 0;        // slices in which it leaves that to whom it has woken
    Pump* next_idle = nullptr;
    bool leaving = false;             // idle as soon as others have taken what it had
    Clock::time_point leaves_until;   // else it takes that back
  };

  State(const RealScheduler& owner_value, asio::any_io_executor executor_value,
        RealSchedulerOptions options_value)
      : owner(owner_value),
        executor(std::move(executor_value)),
        options(options_value),
        pumps(options.pumps_max) {
    for (Pump& pump : pumps) {
      pump.next_idle = idle;
      idle = &pump;
    }
    hungry.store(options.pumps_max, std::memory_order_relaxed);
  }

  const RealScheduler& owner;   // lives while a slice runs
  const asio::any_io_executor executor;
  const RealSchedulerOptions options;
  std::vector<Pump> pumps;
  std::atomic<std::uint32_t> hungry = 0;         // idle pumps
  std::atomic<std::uint64_t> shared_count = 0;   // size of `shared`, to look without the lock

  std::mutex mutex;   // guards what follows
  RunnableQueue shared;
  detail::Spread spread;
  Pump* idle = nullptr;
  std::uint32_t leaving = 0;   // pumps
  std::uint32_t running = 0;   // pumps inside a slice
  bool closed = false;
  std::condition_variable slice_ended;

  // Started and not finished, but for what slices have not settled yet, so it may be below zero;
  // and with what has finished in inline runs that are not posted yet.
  std::atomic<std::int64_t> work = 0;
  std::optional<asio::any_io_executor> tracked;   // holds the host's run() while work > 0

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

  /// With the lock: pumps that run what they have.
  [[nodiscard]] std::uint32_t busy() const noexcept {
    return options.pumps_max - hungry.load(std::memory_order_relaxed) - leaving;
  }

  /// With the lock, by one of those.
  void take_share(Pump& pump) noexcept {
    const std::uint64_t takers = busy();
    std::uint64_t share = (shared.size() + takers - 1) / takers;
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

  /// With the lock.
  void share(Pump& pump, std::uint64_t count) noexcept {
    for (; count > 0; --count) shared.push(*pump.ready.pop());
    shared_count.store(shared.size(), std::memory_order_relaxed);
    pump.waits = 2;
  }
  void rest(Pump& pump) noexcept {
    pump.next_idle = idle;
    idle = &pump;
    hungry.fetch_add(1, std::memory_order_relaxed);
  }

  /// Gives half of what this pump has to be done away.
  void donate(Pump& pump) noexcept {
    Pump* woken = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (closed || shared.size() >= options.pumps_max) return;
      share(pump, pump.ready.size() / 2);
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
    rest(pump);
    return false;
  }

  [[nodiscard]] bool begin_slice() noexcept {
    const std::lock_guard lock(mutex);
    if (closed) return false;
    ++running;
    return true;
  }

  void end_slice(std::int64_t work_change) noexcept {
    std::optional<asio::any_io_executor>
        released;   // destroyed after the lock: it may wake the host
    const std::lock_guard lock(mutex);
    track(work_change, released);
    if (--running > 0) return;
    DUET_ASSERT(work.load(std::memory_order_relaxed) >= 0, work.load());
    if (closed) slice_ended.notify_all();
  }

  /// A slice of a pump holds the host's run() itself and settles at its end what has changed in it:
  /// so most work costs no lock. An actor that runs on a completion thread holds nothing, so what
  /// starts there counts at once; what ends there is settled when what it made ready is posted.
  void work_changed(std::int64_t by) noexcept {
    detail::ThreadState& here = detail::thread_state();
    if (here.slice_of == &owner && (by < 0 || here.holds_run)) {
      here.work_change += by;
      return;
    }
    const std::int64_t before = work.fetch_add(by, std::memory_order_acq_rel);
    if ((before > 0) != (before + by > 0)) settle(0);
  }

  void settle(std::int64_t change) noexcept {
    std::optional<asio::any_io_executor> released;
    const std::lock_guard lock(mutex);
    track(change, released);
  }

  /// With the lock: counts `change`; the host's run() is held if there is work.
  void track(std::int64_t change, std::optional<asio::any_io_executor>& released) noexcept {
    if (work.fetch_add(change, std::memory_order_acq_rel) + change <= 0) {
      released.swap(tracked);
    } else if (!tracked.has_value() && !closed) {
      tracked = asio::prefer(executor, asio::execution::outstanding_work.tracked);
    }
  }

  void slice(Pump& pump) noexcept {
    if (!begin_slice()) return;
    detail::ThreadState& here = detail::thread_state();
    const Scheduler* const outer = std::exchange(here.ready_of, &owner);
    const Scheduler* const outer_slice = std::exchange(here.slice_of, &owner);
    const std::int64_t outer_change = std::exchange(here.work_change, 0);
    const std::uint64_t outer_handled = std::exchange(here.handled, 0);
    const bool outer_holds = std::exchange(here.holds_run, true);
    RunnableQueue* const outer_ready = std::exchange(here.ready, &pump.ready);
    here.stamps_left = 0;
    auto now = Clock::now();
    if (pump.waits > 0) --pump.waits;
    const bool more = pump.leaving ? leave(pump, now) : run_ready(pump, now);
    here.ready_of = outer;
    here.slice_of = outer_slice;
    here.ready = outer_ready;
    here.holds_run = outer_holds;
    const std::uint64_t handled = std::exchange(here.handled, outer_handled);
    if (options.pumps_max > 1) spread_out(pump, more, {now, handled});
    if (more) post_pump(pump, true);
    end_slice(std::exchange(here.work_change, outer_change));
  }

  struct Ended {
    TimePoint at;
    std::uint64_t handled;
  };

  void spread_out(Pump& pump, bool more, const Ended& slice) noexcept {
    if (more && pump.leaving) return;
    Pump* woken = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (closed) return;
      const bool light = more && pump.load.light();   // an idle pump may run elsewhere by now
      const detail::Spread::Order order =
          spread.slice_ended({slice.at, slice.handled, &pump, more, light,
                              light && pump.ready.size() > 1 && leaving == 0, busy(),
                              hungry.load(std::memory_order_relaxed)});
      if (order == detail::Spread::Order::stay) return;
      DUET_ASSERT(more);
      if (order == detail::Spread::Order::widen) {
        share(pump, pump.ready.size() / 2);
        woken = wake_one();
      } else {
        share(pump, pump.ready.size());
        pump.leaving = true;
        pump.leaves_until = slice.at + limits::spread_window;
        ++leaving;
      }
    }
    if (woken != nullptr) post_pump(*woken);
  }

  /// False: others have taken all, and the pump is idle. They look every few activations; but one
  /// of those may last.
  [[nodiscard]] bool leave(Pump& pump, Clock::time_point now) noexcept {
    if (shared_count.load(std::memory_order_relaxed) > 0 && now < pump.leaves_until) return true;
    const std::lock_guard lock(mutex);
    pump.leaving = false;
    --leaving;
    if (!shared.empty()) return true;
    rest(pump);
    return false;
  }

  /// True when the slice is over though more may be ready. `now` is that of the last look.
  [[nodiscard]] bool run_ready(Pump& pump, Clock::time_point& now) noexcept {
    auto looked = now;
    const auto end = looked + Nanoseconds(limits::slice_ns_max);
    std::uint32_t left = options.slice_max;
    while (left > 0) {
      const std::uint32_t batch = std::min(left, pump.load.batch());
      const std::uint64_t size = pump.ready.size();
      const std::uint32_t ran = run_batch(pump, batch);
      left -= ran;
      now = Clock::now();
      detail::thread_state().wakes.look();
      if (ran > 0) {
        pump.load.measured(now - std::exchange(looked, now), ran, size, pump.ready.size());
      }
      if (ran < batch && !refill(pump)) return false;
      const bool over = now >= end;
      pump.since_look += over ? limits::shared_look_activations / 2 : ran;   // two slices at most
      if (pump.since_look >= limits::shared_look_activations) look_at_shared(pump);
      if (over) return true;
    }
    return true;
  }

  void look_at_shared(Pump& pump) noexcept {
    pump.since_look = 0;
    if (pump.waits > 0 || shared_count.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex);
    take_share(pump);
  }

  [[nodiscard]] std::uint32_t run_batch(Pump& pump, std::uint32_t batch) noexcept {
    for (std::uint32_t i = 0; i < batch; ++i) {
      Runnable* const next = pump.ready.pop();
      if (next == nullptr) return i;
      next->run();
      // Not while it runs: who makes many ready is faster alone, and they come in one batch.
      if (pump.ready.size() > pump.load.keep() && hungry.load(std::memory_order_relaxed) > 0)
        donate(pump);
    }
    return batch;
  }
};

RealScheduler::RealScheduler(asio::any_io_executor executor, RealSchedulerOptions options)
    : state_(std::make_shared<State>(*this, std::move(executor), options)) {
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
  detail::ThreadState& here = detail::thread_state();
  if (here.ready_of == this) return here.ready->push(runnable);
  RunnableQueue one;
  one.push(runnable);
  state_->post_shared(one);
}

void RealScheduler::post_all(RunnableQueue& runnables) noexcept {
  if (detail::thread_state().ready_of == this) {
    while (Runnable* runnable = runnables.pop()) post(*runnable);
    return;
  }
  if (!runnables.empty()) state_->post_shared(runnables);
  detail::ThreadState& here = detail::thread_state();
  if (here.slice_of != nullptr) return;   // another scheduler's, which settles it
  const std::int64_t ended = std::exchange(here.work_change, 0);   // while they were collected
  if (ended != 0) state_->settle(ended);
}

void RealScheduler::close() noexcept {
  DUET_ASSERT(detail::thread_state().ready_of != this);
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
  state_->work_changed(1);
}

void RealScheduler::work_finished() noexcept {
  state_->work_changed(-1);
}

}   // namespace duet::runtime
