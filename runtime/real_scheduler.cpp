// real_scheduler.cpp: pumps over an Asio executor.
#include "runtime/real_scheduler.hpp"

#include "runtime/assert.hpp"

#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include <mutex>
#include <optional>
#include <utility>

namespace duet::runtime {

struct RealScheduler::State : std::enable_shared_from_this<State> {
  State(boost::asio::any_io_executor executor_value, RealSchedulerOptions options_value)
      : executor(std::move(executor_value)), options(options_value) {}

  const boost::asio::any_io_executor executor;
  const RealSchedulerOptions options;
  std::mutex mutex;
  RunnableQueue ready;
  std::uint32_t pumps = 0;   // posted or running
  std::uint64_t work = 0;
  std::optional<boost::asio::any_io_executor> tracked;   // holds the host's run() while work > 0

  void post_pump() {
    boost::asio::post(executor, [state = shared_from_this()] { state->pump(); });
  }

  void pump() {
    for (std::uint32_t i = 0; i < options.slice_max; ++i) {
      Runnable* next = nullptr;
      {
        const std::lock_guard lock(mutex);
        next = ready.pop();
        if (next == nullptr) {
          --pumps;
          return;
        }
      }
      next->run();
    }
    post_pump();
  }
};

RealScheduler::RealScheduler(boost::asio::any_io_executor executor, RealSchedulerOptions options)
    : state_(std::make_shared<State>(std::move(executor), options)) {
  DUET_ASSERT(options.pumps_max > 0 && options.slice_max > 0, options.pumps_max, options.slice_max);
}

RealScheduler::~RealScheduler() {
  const std::lock_guard lock(state_->mutex);
  DUET_ASSERT(state_->ready.empty() && state_->work == 0, state_->ready.size(), state_->work);
}

void RealScheduler::post(Runnable& runnable) noexcept {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ready.push(runnable);
    if (state_->pumps == state_->options.pumps_max || state_->pumps > state_->ready.size()) return;
    ++state_->pumps;
  }
  state_->post_pump();
}

void RealScheduler::work_started() noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->work++ == 0) {
    state_->tracked =
        boost::asio::prefer(state_->executor, boost::asio::execution::outstanding_work.tracked);
  }
}

void RealScheduler::work_finished() noexcept {
  std::optional<boost::asio::any_io_executor>
      released;   // destroyed after the lock: it may wake the host
  const std::lock_guard lock(state_->mutex);
  DUET_ASSERT(state_->work > 0);
  if (--state_->work == 0) released.swap(state_->tracked);
}

}   // namespace duet::runtime
