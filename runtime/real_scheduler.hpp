// real_scheduler.hpp: runs what is ready on an Asio executor, in slices, so that the host's own
// handlers get their turn.
#pragma once

#include "runtime/scheduler.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <memory>

namespace duet::runtime {

struct RealSchedulerOptions {
  std::uint32_t pumps_max =
      1;   ///< handlers posted at the same time; the threads that run the executor.
  std::uint32_t slice_max = 64;   ///< runnables a pump runs before it re-posts itself.
};

/// Destroyed only when nothing is ready and no pump is posted.
class RealScheduler final : public Scheduler {
 public:
  RealScheduler(boost::asio::any_io_executor executor, RealSchedulerOptions options);
  ~RealScheduler() override;

  void post(Runnable& runnable) noexcept override;
  void work_started() noexcept override;
  void work_finished() noexcept override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}   // namespace duet::runtime
