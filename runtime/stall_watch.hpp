// stall_watch.hpp: finds the handler that keeps a thread for too long.
#pragma once

#include "runtime/snapshot.hpp"
#include "runtime/system.hpp"
#include "runtime/time.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace duet::runtime {

/// An actor that holds its thread: no other actor and no handler of the host runs there meanwhile.
struct Stall {
  ActorSnapshot actor;   ///< `message` is what it handles; `file` and `line` where it waited last.
  Duration held{};       ///< so long at least.
};

/// Compares what each thread runs at one look with what it ran at the look before. It costs the
/// actors nothing; a look costs some tens of nanoseconds a thread, however many actors there are.
///
/// One thread at a time. The system may end before it; then looks find nothing.
class StallWatch {
 public:
  StallWatch(const System& system, Duration budget);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// Those that were already running the same message `budget` ago, at an earlier look. Each stall
  /// is told once; it is found within the time between two looks after its budget.
  [[nodiscard]] std::vector<Stall> look();

  /// Told so far.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  struct Held;
  const std::weak_ptr<detail::Core> core_;
  const Duration budget_;
  std::vector<Held> held_;
  std::uint64_t count_ = 0;
};

}   // namespace duet::runtime
