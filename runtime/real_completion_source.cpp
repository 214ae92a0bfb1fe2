// real_completion_source.cpp: opens completion threads.
#include "runtime/real_completion_source.hpp"

#include "runtime/completion_thread.hpp"

#include <string>

namespace duet::runtime {

RealCompletionSource::RealCompletionSource()
    : abandoned_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

std::unique_ptr<CompletionLane> RealCompletionSource::open_lane(std::string_view name,
                                                                std::size_t queued_max) {
  return std::make_unique<CompletionThread>(std::string(name), queued_max, abandoned_);
}

std::uint64_t RealCompletionSource::abandoned() const noexcept {
  return abandoned_->load(std::memory_order_relaxed);
}

}   // namespace duet::runtime
