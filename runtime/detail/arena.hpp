// arena.hpp: the slots of one system, and who may come in.
#pragma once

#include "runtime/detail/gate.hpp"
#include "runtime/detail/slot.hpp"
#include "runtime/detail/thread_block.hpp"

#include <boost/asio/execution_context.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace duet::runtime::detail {

/// Never freed: when its system ends, the next system of the process takes it. So a slot belongs to
/// one arena for ever, and whoever is inside the gate knows that the system is there.
class Arena {
 public:
  static constexpr std::uint32_t slab_slots = 64;

  /// An arena without a system.
  [[nodiscard]] static Arena& acquire(Core& core, boost::asio::execution_context& context);
  /// The gate is closed and no actor lives.
  static void release(Arena& arena) noexcept;

  [[nodiscard]] Slot& take_slot();
  void give_slot(Slot& slot) noexcept;

  /// All slots there are; those of the dead too.
  [[nodiscard]] std::vector<Slot*> slots() const;

  /// Where the calling thread counts. Stays with the arena.
  [[nodiscard]] ThreadBlock& block_of_thread();

  /// Calls `look(const ThreadBlock&)` for each thread that has run actors here.
  template <typename F>
  void for_each_block(F look) const {
    const std::lock_guard guard(blocks_lock_);
    for (const auto& block : blocks_) {
      if (block != nullptr) look(std::as_const(*block));
    }
  }

  /// Valid inside the gate or an activation.
  [[nodiscard]] Core& core() const noexcept { return *core_.load(std::memory_order_relaxed); }

  /// Null between two systems. Any time.
  [[nodiscard]] const Core* core_if_any() const noexcept {
    return core_.load(std::memory_order_relaxed);
  }

  /// Whose services an I/O object of an actor uses; the last one's after the system has ended.
  [[nodiscard]] boost::asio::execution_context& context() const noexcept {
    return *context_.load(std::memory_order_relaxed);
  }

  Gate gate;

 private:
  Arena() = default;

  std::atomic<Core*> core_ = nullptr;
  std::atomic<boost::asio::execution_context*> context_ = nullptr;
  mutable ShortLock lock_;
  std::vector<Slot*> slabs_;   // guarded by lock_, as the next two
  Slot* free_ = nullptr;       // linked through the slots
  std::size_t free_count_ = 0;
  mutable ShortLock blocks_lock_;
  std::vector<std::unique_ptr<ThreadBlock>> blocks_;   // by the thread's index
};

/// Holds the system of a slot while something is pushed into it. Free of cost inside that system's
/// own activations.
class Inside {
 public:
  [[gnu::always_inline]] explicit Inside(Arena& arena) noexcept {
    if (thread_state().inside(arena)) {
      inside_ = true;
    } else if (arena.gate.enter()) {
      gate_ = &arena.gate;
      inside_ = true;
    }
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    if (gate_ != nullptr) gate_->leave();
  }
  explicit operator bool() const noexcept { return inside_; }

 private:
  Gate* gate_ = nullptr;
  bool inside_ = false;
};

}   // namespace duet::runtime::detail
