// real_scheduler.hpp: runs what is ready on an Asio executor, in slices, so that the host's own
// handlers get their turn.
#pragma once

#include "runtime/limits.hpp"
#include "runtime/scheduler.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <memory>

namespace duet::runtime {

struct RealSchedulerOptions {
  std::uint32_t pumps_max =
      1;   ///< handlers posted at the same time; the threads that run the executor.
  /// runnables a pump runs before it re-posts itself; a slice ends after
  /// limits::slice_ns_max as well.
  std::uint32_t slice_max = limits::slice_activations_max;
};

/// A pump is a posted handler that runs what is ready from a FIFO of its own, without a lock; when
/// another pump is idle it gives half away if that is worth it (limits::backlog_ns_max), or to find
/// out whether it is (detail/spread.hpp). An idle pump posts nothing and parks no thread.
///
/// Destroyed only when nothing is ready, or after close().
class RealScheduler final : public Scheduler {
 public:
  RealScheduler(boost::asio::any_io_executor executor, RealSchedulerOptions options);
  ~RealScheduler() override;

  void post(Runnable& runnable) noexcept override;
  void post_all(RunnableQueue& runnables) noexcept override;
  void close() noexcept override;
  void work_started() noexcept override;
  void work_finished() noexcept override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}   // namespace duet::runtime
