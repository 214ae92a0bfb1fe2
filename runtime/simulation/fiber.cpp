// fiber.cpp: stacks by ucontext, and what AddressSanitizer has to know of them.
#include "runtime/simulation/fiber.hpp"

#include "runtime/assert.hpp"

#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define DUET_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DUET_FIBER_ASAN 1
#endif
#endif
#if defined(DUET_FIBER_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace duet::runtime::simulation {
namespace {

/// makecontext() passes integers only, so the fiber that is entered first lies here meanwhile.
thread_local Fiber* entering = nullptr;

void leave_stack([[maybe_unused]] void** fake, [[maybe_unused]] const void* to,
                 [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(DUET_FIBER_ASAN)
  __sanitizer_start_switch_fiber(fake, to, bytes);
#endif
}

void arrive_on_stack([[maybe_unused]] void* fake, [[maybe_unused]] const void** from,
                     [[maybe_unused]] std::size_t* bytes) noexcept {
#if defined(DUET_FIBER_ASAN)
  __sanitizer_finish_switch_fiber(fake, from, bytes);
#endif
}

}   // namespace

Fiber::Fiber(std::function<void()> function)
    : function_(std::move(function)), stack_(new std::byte[stack_bytes]) {
  const int got = ::getcontext(&inside_);
  DUET_ASSERT(got == 0, got);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = stack_bytes;
  inside_.uc_link = nullptr;
  ::makecontext(&inside_, &Fiber::enter, 0);
}

Fiber::~Fiber() {
  DUET_ASSERT(ended_);
}

void Fiber::enter() {
  Fiber& fiber = *std::exchange(entering, nullptr);
  arrive_on_stack(nullptr, &fiber.outside_stack_, &fiber.outside_bytes_);
  fiber.function_();
  fiber.ended_ = true;
  leave_stack(nullptr, fiber.outside_stack_, fiber.outside_bytes_);
  ::setcontext(&fiber.outside_);
  DUET_UNREACHABLE();
}

void Fiber::resume() {
  DUET_ASSERT(!ended_);
  entering = this;
  void* fake = nullptr;
  leave_stack(&fake, stack_.get(), stack_bytes);
  const int switched = ::swapcontext(&outside_, &inside_);
  DUET_ASSERT(switched == 0, switched);
  arrive_on_stack(fake, nullptr, nullptr);
}

void Fiber::yield() {
  void* fake = nullptr;
  leave_stack(&fake, outside_stack_, outside_bytes_);
  const int switched = ::swapcontext(&inside_, &outside_);
  DUET_ASSERT(switched == 0, switched);
  arrive_on_stack(fake, &outside_stack_, &outside_bytes_);
}

}   // namespace duet::runtime::simulation
