// trace_hash.hpp: one number for all that a run did.
#pragma once

#include "runtime/simulation/sim_random.hpp"
#include "runtime/time.hpp"

#include <array>
#include <cstdint>

namespace duet::runtime::simulation {

/// Folds who did what when, in order. Types go in by the text of their name; an address never does.
class TraceHash {
 public:
  void add(std::uint64_t word) noexcept {
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15ULL;
    hash_ ^= hash_ >> 32U;
  }
  void add(std::uint64_t actor, const char* type, TimePoint now) noexcept {
    add(actor ^ (text(type) << 1U));
    add(static_cast<std::uint64_t>(now.time_since_epoch().count()));
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return hash_; }

 private:
  /// Names are literals, so where one was seen its hash is known.
  [[nodiscard]] std::uint64_t text(const char* type) noexcept {
    Seen& seen = seen_[(reinterpret_cast<std::uintptr_t>(type) >> 3U) % seen_.size()];
    if (seen.text != type) seen = Seen{type, hash_text(type)};
    return seen.hash;
  }

  struct Seen {
    const char* text = nullptr;
    std::uint64_t hash = 0;
  };
  std::array<Seen, 64> seen_{};
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

}   // namespace duet::runtime::simulation
