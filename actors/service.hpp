// service.hpp: what the application offers to its front ends; http/ knows nothing else of it.
#pragma once

#include "actors/generate_request.hpp"
#include "actors/output_stream.hpp"
#include "runtime/time.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace duet::actors {

///
enum class WorkerState : std::uint8_t {
  unloaded,
  validating,
  configuring,
  warming,
  ready,
  draining,
  unloading,
  recovering,
  failed,
};
[[nodiscard]] const char* to_string(WorkerState state) noexcept;

struct ModelStatus {
  std::string alias;
  WorkerState state = WorkerState::unloaded;
  std::string reason;   ///< why it is not ready, one sentence for an operator; "" if it is.
  runtime::WallTime created{};          ///< when it became ready; for /v1/models.
  std::uint32_t context = 0;            ///< tokens of prompt and answer together.
  runtime::TimePoint last_progress{};   ///< the last job that ended well.
  std::uint32_t chip = 0;               ///< internal: never shown to a client.
};

/// Counters only grow; gauges return to 0 when nothing runs. requests_accepted = finished + failed
/// + aborted + running.
struct ModelMetrics {
  std::string alias;
  std::uint64_t requests_accepted = 0;
  std::uint64_t requests_finished = 0;
  std::uint64_t requests_failed = 0;
  std::uint64_t requests_aborted = 0;
  std::uint64_t requests_refused = 0;   ///< never accepted.
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generation_tokens = 0;
  std::uint64_t jobs_submitted = 0;
  std::uint64_t jobs_done = 0;
  std::uint64_t jobs_failed = 0;
  std::uint64_t completions_stale = 0;   ///< dropped by their generation.
  std::uint64_t requests_running = 0;    ///< gauges from here
  std::uint64_t requests_waiting = 0;
  std::uint64_t sequences_active = 0;
  std::uint64_t kv_slots_used = 0;
  std::uint64_t kv_slots_total = 0;
  std::vector<std::uint64_t>
      ttft_buckets;   ///< cumulative counts per limits::latency_buckets_seconds, last: all.
  double ttft_seconds_sum = 0;
  std::vector<std::uint64_t> tpot_buckets;
  double tpot_seconds_sum = 0;
  std::vector<std::uint64_t> e2e_buckets;
  double e2e_seconds_sum = 0;
};

enum class CancelResult : std::uint8_t { cancelled, not_found };

/// Any thread may call; nothing blocks.
class Service {
 public:
  virtual ~Service() = default;

  /// Starts a request; exactly one end or fail reaches `stream`, possibly before this returns.
  virtual void submit(GenerateRequest request, std::shared_ptr<OutputStream> stream) = 0;

  /// Stops delivery at once; the job under way is waited for. `done` is called once, on any thread.
  /// A key cancels its own requests; `any_key` cancels whoever's it is.
  virtual void cancel(const std::string& id, const std::string& key, bool any_key,
                      std::function<void(CancelResult)> done) = 0;

  /// Published values, at most one job old; never waits for an actor.
  [[nodiscard]] virtual std::vector<ModelStatus> models() const = 0;
  [[nodiscard]] virtual std::vector<ModelMetrics> metrics() const = 0;
};

}   // namespace duet::actors
