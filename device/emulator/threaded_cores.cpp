// threaded_cores.cpp: hands one body to a helper thread and waits for it.
#include "device/emulator/threaded_cores.hpp"

#include "runtime/assert.hpp"

namespace duet::device::emulator {
namespace {

// About 50 microseconds: the next decode of a busy chip follows within that; an idle chip must not
// burn a core.
constexpr std::uint32_t spins_max = 2000;

void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void wait_for(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  for (std::uint32_t i = 0; i < spins_max; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_cpu();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}   // namespace

CoreTeam::CoreTeam() : helper_([this] { serve(); }) {}

CoreTeam::~CoreTeam() {
  stop_ = true;
  asked_.fetch_add(1, std::memory_order_release);
  asked_.notify_one();
  helper_.join();
}

void CoreTeam::run_cores(void (*body)(void* context, std::uint32_t core), void* context) {
  const std::uint32_t before = answered_.load(std::memory_order_relaxed);
  DUET_ASSERT(asked_.load(std::memory_order_relaxed) == before, before);
  body_ = body;
  context_ = context;
  asked_.fetch_add(1, std::memory_order_release);
  asked_.notify_one();
  body(context, 0);
  wait_for(answered_, before);
}

void CoreTeam::serve() {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_for(asked_, seen);
    if (stop_) return;
    body_(context_, 1);
    answered_.fetch_add(1, std::memory_order_release);
    answered_.notify_one();
  }
}

}   // namespace duet::device::emulator
