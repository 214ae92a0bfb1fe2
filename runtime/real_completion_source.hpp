// real_completion_source.hpp: a thread a lane.
#pragma once

#include "runtime/completion_source.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace duet::runtime {

class RealCompletionSource final : public CompletionSource {
 public:
  RealCompletionSource();

  /// Throws std::system_error if no thread can be started.
  [[nodiscard]] std::unique_ptr<CompletionLane> open_lane(std::string_view name,
                                                          std::size_t queued_max) override;
  [[nodiscard]] std::uint64_t abandoned() const noexcept override;

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> abandoned_;   // outlives us in threads left behind
};

}   // namespace duet::runtime
