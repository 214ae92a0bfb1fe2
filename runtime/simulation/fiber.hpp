// fiber.hpp: a stack of its own for a call that blocks in virtual time.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace duet::runtime::simulation {

/// Runs a function on another stack of the same thread; the function may stand still in the middle.
class Fiber {
 public:
  /// Enough for a vendor call with its error texts; one that recurses does not belong in a lane.
  static constexpr std::size_t stack_bytes = 256 * 1024;

  explicit Fiber(std::function<void()> function);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  /// It has ended.
  ~Fiber();

  /// Goes on until the next yield() or the end. Not from inside.
  void resume();
  /// From inside: returns to resume().
  void yield();
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  static void enter();

  std::function<void()> function_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  const void* outside_stack_ = nullptr;   // for AddressSanitizer
  std::size_t outside_bytes_ = 0;
  bool ended_ = false;
};

}   // namespace duet::runtime::simulation
