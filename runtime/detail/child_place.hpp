// child_place.hpp: where the current life of a supervised child can be read by anyone.
#pragma once

#include "runtime/address.hpp"

#include <atomic>
#include <cstdint>

namespace duet::runtime::detail {

/// An address of two words, written by one supervisor at a time and read on any thread without a
/// lock. A reader that meets a writer reads again; a writer needs four stores.
class ChildPlace {
 public:
  void publish(const Address& address) noexcept {
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    // Release: whoever sees one of these sees the odd version as well.
    slot_.store(address.slot(), std::memory_order_release);
    generation_.store(address.generation(), std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  [[nodiscard]] Address read() const noexcept {
    for (;;) {
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      Slot* const slot = slot_.load(std::memory_order_acquire);
      const std::uint64_t generation = generation_.load(std::memory_order_acquire);
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) {
        return {slot, generation};
      }
    }
  }

 private:
  std::atomic<std::uint64_t> version_ = 0;
  std::atomic<Slot*> slot_ = nullptr;
  std::atomic<std::uint64_t> generation_ = 0;
};

}   // namespace duet::runtime::detail
