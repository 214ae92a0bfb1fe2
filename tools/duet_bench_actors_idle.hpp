// duet_bench_actors_idle.hpp: many actors that have handled one message and now wait.
#pragma once

#include <cstdint>
#include <memory>

namespace duet::tools {

/// A system with one thread and room for references to the actors, all touched already.
class IdleActors {
 public:
  IdleActors() = default;
  IdleActors(const IdleActors&) = delete;
  IdleActors& operator=(const IdleActors&) = delete;
  virtual ~IdleActors() = default;

  /// Makes the actors and has each handle one message, a thousand at a time. Returns when all wait.
  virtual void fill() = 0;
};

inline constexpr std::uint64_t idle_batch = 1000;

[[nodiscard]] std::unique_ptr<IdleActors> idle_handlers(std::uint64_t actors);
[[nodiscard]] std::unique_ptr<IdleActors> idle_coroutines(std::uint64_t actors);
/// Null if this program was built without CAF.
[[nodiscard]] std::unique_ptr<IdleActors> idle_caf(std::uint64_t actors);

}   // namespace duet::tools
