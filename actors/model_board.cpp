// model_board.cpp: publishing and reading of a model's figures.
#include "actors/model_board.hpp"

#include <utility>

namespace duet::actors {

void LatencyHistogram::add(runtime::Duration duration) noexcept {
  const double seconds = std::chrono::duration<double>(duration).count();
  std::size_t bucket = 0;
  while (bucket < limits::latency_buckets_seconds.size() &&
         seconds > limits::latency_buckets_seconds[bucket]) {
    ++bucket;
  }
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_nanoseconds_.fetch_add(static_cast<std::uint64_t>(duration.count()),
                             std::memory_order_relaxed);
}

void LatencyHistogram::read(std::vector<std::uint64_t>& cumulative, double& sum_seconds) const {
  cumulative.clear();
  std::uint64_t total = 0;
  for (const auto& count : counts_) {
    total += count.load(std::memory_order_relaxed);
    cumulative.push_back(total);
  }
  sum_seconds = static_cast<double>(sum_nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
}

void ModelBoard::set_state(WorkerState next, const std::string& why, runtime::WallTime now) {
  const std::lock_guard lock(lock_);
  if (next == WorkerState::ready && state_ != WorkerState::ready) created_ = now;
  state_ = next;
  reason_ = why;
}

void ModelBoard::set_context(std::uint32_t tokens) {
  const std::lock_guard lock(lock_);
  context_ = tokens;
}

ModelStatus ModelBoard::status() const {
  ModelStatus status;
  status.alias = alias;
  status.chip = chip;
  status.last_progress =
      runtime::TimePoint(runtime::Duration(jobs->last_progress.load(std::memory_order_relaxed)));
  const std::lock_guard lock(lock_);
  status.state = state_;
  status.reason = reason_;
  status.created = created_;
  status.context = context_;
  return status;
}

ModelMetrics ModelBoard::metrics() const {
  const auto read = [](const std::atomic<std::uint64_t>& value) {
    return value.load(std::memory_order_relaxed);
  };
  ModelMetrics metrics;
  metrics.alias = alias;
  metrics.requests_finished = read(requests_finished);
  metrics.requests_failed = read(requests_failed);
  metrics.requests_aborted = read(requests_aborted);
  // Read last, so that the sum of the others never exceeds it.
  metrics.requests_accepted = read(requests_accepted);
  metrics.requests_refused = read(requests_refused);
  metrics.prompt_tokens = read(prompt_tokens);
  metrics.generation_tokens = read(generation_tokens);
  metrics.jobs_done = read(jobs->jobs_done);
  metrics.jobs_failed = read(jobs->jobs_failed);
  metrics.jobs_submitted = read(jobs->jobs_submitted);
  metrics.completions_stale = read(jobs->completions_stale);
  metrics.requests_running = metrics.requests_accepted - metrics.requests_finished -
                             metrics.requests_failed - metrics.requests_aborted;
  metrics.requests_waiting = read(requests_waiting);
  metrics.sequences_active = read(sequences_active);
  metrics.kv_slots_used = read(kv_slots_used);
  metrics.kv_slots_total = read(kv_slots_total);
  ttft.read(metrics.ttft_buckets, metrics.ttft_seconds_sum);
  tpot.read(metrics.tpot_buckets, metrics.tpot_seconds_sum);
  e2e.read(metrics.e2e_buckets, metrics.e2e_seconds_sum);
  return metrics;
}

}   // namespace duet::actors
