// sim_scheduler.cpp: posts into the simulation's ready set.
#include "runtime/simulation/sim_scheduler.hpp"

#include "runtime/assert.hpp"
#include "runtime/detail/arena.hpp"
#include "runtime/detail/slot.hpp"

namespace duet::runtime::simulation {

void SimScheduler::post(Runnable& runnable) noexcept {
  DUET_ASSERT(!closed_);
  if (core_ == nullptr) {
    const auto* const slot = dynamic_cast<const detail::Slot*>(&runnable);
    if (slot != nullptr) core_ = &slot->arena().core();
  }
  if (random_ != nullptr && random_->chance(lost_)) return;
  ready_.push(runnable, this);
}

void SimScheduler::close() noexcept {
  closed_ = true;
  core_ = nullptr;
  ready_.forget(*this);
}

void SimScheduler::work_finished() noexcept {
  DUET_ASSERT(work_ > 0);
  --work_;
}

}   // namespace duet::runtime::simulation
