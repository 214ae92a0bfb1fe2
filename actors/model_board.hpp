// model_board.hpp: what one model shows to other threads: its state and its figures.
#pragma once

#include "actors/chip_session.hpp"
#include "actors/limits.hpp"
#include "actors/service.hpp"
#include "runtime/short_lock.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace duet::actors {

/// Counts of durations per limits::latency_buckets_seconds. Any thread.
class LatencyHistogram {
 public:
  void add(runtime::Duration duration) noexcept;
  /// Cumulative, as Prometheus wants them; the last is the count of all.
  void read(std::vector<std::uint64_t>& cumulative, double& sum_seconds) const;

 private:
  std::array<std::atomic<std::uint64_t>, limits::latency_buckets_seconds.size() + 1> counts_{};
  std::atomic<std::uint64_t> sum_nanoseconds_ = 0;
};

/// Written by the model's actors, read by anyone. accepted = finished + failed + aborted + running.
struct ModelBoard {
  ModelBoard(std::string model_alias, std::uint32_t model_chip)
      : alias(std::move(model_alias)), chip(model_chip) {}

  const std::string alias;
  const std::uint32_t chip;
  const std::shared_ptr<ChipCounters> jobs = std::make_shared<ChipCounters>();

  std::atomic<std::uint64_t> requests_accepted = 0;
  std::atomic<std::uint64_t> requests_finished = 0;
  std::atomic<std::uint64_t> requests_failed = 0;
  std::atomic<std::uint64_t> requests_aborted = 0;
  std::atomic<std::uint64_t> requests_refused = 0;
  std::atomic<std::uint64_t> prompt_tokens = 0;
  std::atomic<std::uint64_t> generation_tokens = 0;
  std::atomic<std::uint64_t> requests_waiting = 0;
  std::atomic<std::uint64_t> sequences_active = 0;
  std::atomic<std::uint64_t> kv_slots_used = 0;
  std::atomic<std::uint64_t> kv_slots_total = 0;
  LatencyHistogram ttft;
  LatencyHistogram tpot;
  LatencyHistogram e2e;

  void set_state(WorkerState next, const std::string& why, runtime::WallTime now);
  void set_context(std::uint32_t tokens);

  [[nodiscard]] ModelStatus status() const;
  [[nodiscard]] ModelMetrics metrics() const;

 private:
  mutable runtime::ShortLock lock_;
  WorkerState state_ = WorkerState::unloaded;
  std::string reason_ = "the board is not up yet";
  runtime::WallTime created_{};
  std::uint32_t context_ = 0;
};

}   // namespace duet::actors
