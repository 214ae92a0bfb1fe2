// buggify.hpp: places where simulation makes rare things common.
#pragma once

#include "runtime/detail/thread_state.hpp"

namespace duet::runtime {

/// True now and then while a simulation runs this thread's actors, else false; in production a test
/// of a null pointer. Write it where something odd but allowed may happen:
///
///   const bool full = queue_.size() == queue_max || buggify("worker.queue_full");
///
/// `place` is a literal, unique in the program. Every run of a simulation draws which places are on
/// and how often each fires; a place's draws depend on the seed and its name alone, so a new place
/// does not change what others do.
[[nodiscard]] inline bool buggify(const char* place) noexcept {
  detail::Observer* const observer = detail::thread_state().observer;
  return observer != nullptr && observer->buggify(place);
}

}   // namespace duet::runtime
