// completion_thread.hpp: a thread that makes blocking calls and owns nothing else.
#pragma once

#include "runtime/completion_source.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace duet::runtime {

/// The loop is: take a call, run it, finish it. The thread shares only its queue with the lane, so
/// that a call that never returns can be left behind.
class CompletionThread final : public CompletionLane {
 public:
  /// `abandoned` counts threads left in a call; a call that comes back after all lowers it.
  /// Throws std::system_error if no thread can be started.
  CompletionThread(std::string name, std::size_t queued_max,
                   std::shared_ptr<std::atomic<std::uint64_t>> abandoned);
  ~CompletionThread() override;

  [[nodiscard]] bool push(BlockingCall& call) noexcept override;
  void close() noexcept override;
  bool abandon() noexcept override;

 private:
  struct Shared;
  struct Thread;
  void stop(bool leave_running_call) noexcept;

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Thread> thread_;   // null once joined or left behind
};

}   // namespace duet::runtime
