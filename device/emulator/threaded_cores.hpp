// threaded_cores.hpp: runs the two CalCores of a chip on two threads.
#pragma once

#include "device/kernels/executor.hpp"

#include <atomic>
#include <cstdint>
#include <thread>

namespace duet::device::emulator {

/// Core 0 runs on the calling thread, core 1 on a thread of its own, which spins for a moment after
/// each job and then sleeps. One caller at a time. Throws std::system_error if no thread starts.
class CoreTeam final : public CoreRunner {
 public:
  CoreTeam();
  ~CoreTeam() override;
  CoreTeam(const CoreTeam&) = delete;
  CoreTeam& operator=(const CoreTeam&) = delete;

  void run_cores(void (*body)(void* context, std::uint32_t core), void* context) override;
  [[nodiscard]] bool parallel() const override { return true; }

 private:
  void serve();

  // Written by the caller before `asked_` is raised, read by the helper after.
  void (*body_)(void* context, std::uint32_t core) = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  alignas(64) std::atomic<std::uint32_t> asked_{0};
  alignas(64) std::atomic<std::uint32_t> answered_{0};
  std::thread helper_;
};

}   // namespace duet::device::emulator
