// address.hpp: names one life of an actor, weakly.
#pragma once

#include "runtime/detail/configuration.hpp"

#include <cstdint>

namespace duet::runtime {

namespace detail {
class Slot;
}   // namespace detail

/// A place among the actors and the generation that lived there. Never dangles: the place's memory
/// stays with the process, and a later life there has another generation.
class Address {
 public:
  Address() = default;
  Address(detail::Slot* slot, std::uint64_t generation) noexcept
      : slot_(slot), generation_(generation) {}

  [[nodiscard]] bool empty() const noexcept { return slot_ == nullptr; }

  /// False once the actor has ended. It may end the moment after. Any thread.
  [[nodiscard]] bool alive() const noexcept;

  /// The number that inspection shows: the system's running number of its spawns; 0 if empty or
  /// ended. The same spawns give the same numbers in every run.
  [[nodiscard]] std::uint64_t number() const noexcept;

  [[nodiscard]] detail::Slot* slot() const noexcept { return slot_; }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

  friend bool operator==(const Address&, const Address&) = default;

 private:
  detail::Slot* slot_ = nullptr;
  std::uint64_t generation_ = 0;
};

}   // namespace duet::runtime
