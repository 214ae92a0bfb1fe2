// real_clock.hpp: the machine's clocks, and every timer behind one Asio timer.
#pragma once

#include "runtime/clock.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>

namespace duet::runtime {

/// Timers expire on the executor. The clock may be destroyed while none is armed; its executor must
/// still be there.
class RealClock final : public Clock {
 public:
  explicit RealClock(const boost::asio::any_io_executor& executor);
  ~RealClock() override;

  [[nodiscard]] TimePoint now() const noexcept override;
  [[nodiscard]] WallTime wall_now() const noexcept override;
  [[nodiscard]] TimePoint coarse_now() const noexcept override;
  void arm(Timer& timer, TimePoint due) override;
  bool cancel(Timer& timer) noexcept override;

 private:
  struct State;
  std::shared_ptr<State> state_;   // a wait that ends late finds it alive
};

}   // namespace duet::runtime
