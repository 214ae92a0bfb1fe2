// combined_session.hpp: one session over a combined runtime: its books, its job lanes, its jobs.
#pragma once

#include "device/calrt/kv_book.hpp"
#include "device/calrt/vendor_runtime.hpp"
#include "device/contract/device.hpp"
#include "device/contract/limits.hpp"
#include "runtime/completion_source.hpp"
#include "runtime/short_lock.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace duet::device {

/// What a loaded model gives its session.
struct BoundModel {
  GraphHandle prefill = 0;
  GraphHandle decode = 0;
  std::uint32_t prefill_tokens_max = 0;
  KvBookLimits kv;
};

/// Thread-safe. One lane a job that may be in flight; a job's call lies ready in its lane, so that
/// a submission allocates nothing. Shared, because a call that never returns keeps it.
class CombinedSession final : public std::enable_shared_from_this<CombinedSession> {
 public:
  CombinedSession(VendorRuntime& runtime, runtime::CompletionSource& source, SessionState state,
                  ChipSessionOptions options, Sink jobs);
  ~CombinedSession();

  [[nodiscard]] SessionState state() const;
  [[nodiscard]] bool idle() const;   ///< No job queued or running.

  /// Changes of the life cycle; the adapter makes them on its life-cycle lane.
  void bind(BoundModel model, Generation generation);
  void set_phase(SessionPhase phase);
  /// Raises the generation, forgets the key/value slots and completes every running job as stale,
  /// unsettled.
  void invalidate(Generation generation, SessionPhase phase);
  /// Refuses jobs and waits for the threads of the running ones. Not from a sink.
  void close();

  /// Stops new jobs; `idle_now` runs once no job is left, at once if none is. The owner's deadline
  /// is its own.
  void drain(std::function<void()> idle_now);
  result<void> resume();

  void add_buffers(const IoBuffers& buffers);
  /// Errors: unknown_name, device_busy.
  result<void> remove_buffers(std::uint64_t buffers);
  [[nodiscard]] std::size_t buffers_count() const;
  [[nodiscard]] std::optional<GraphHandle> graph(GraphKind kind) const;

  result<void> kv_reserve(Generation generation, SequenceId sequence, std::uint32_t tokens);
  result<void> kv_commit(Generation generation, SequenceId sequence, std::uint32_t tokens);
  result<void> kv_rollback(Generation generation, SequenceId sequence);
  result<void> kv_release(Generation generation, SequenceId sequence);

  result<void> submit(const JobRequest& job);
  result<CancelEffect> cancel(JobId job);
  result<void> abandon(JobId job);
  [[nodiscard]] JobState query(JobId job) const;

 private:
  class Job;
  class ReleaseCall;
  struct Lane;
  struct Buffers {
    IoBuffers io;
    bool busy = false;
  };
  struct Release {
    Generation generation;
    SequenceId sequence;
  };

  // With lock_ held:
  [[nodiscard]] result<void> check_generation(Generation generation) const;
  [[nodiscard]] result<Buffers*> check_job(const JobRequest& job);
  [[nodiscard]] Lane* find_lane(JobId job) const;
  [[nodiscard]] Buffers* find_buffers(std::uint64_t id);
  [[nodiscard]] bool idle_locked() const;

  void queue_release(Generation generation, SequenceId sequence);
  void tell_releases();
  void end_job(Job& job, const JobResult& outcome, bool told);
  void time_out(Job& job);
  [[nodiscard]] std::unique_ptr<Lane> make_lane();

  VendorRuntime& runtime_;
  runtime::CompletionSource& source_;
  const ChipSessionOptions options_;
  const Sink jobs_sink_;
  // Held by a completion thread across kv_release calls, so that no job overtakes the release that
  // made room for it.
  runtime::ShortLock telling_;

  mutable runtime::ShortLock lock_;   // guards what follows
  SessionState state_;
  std::optional<BoundModel> model_;
  std::optional<KvBook> kv_;
  std::vector<Buffers> buffers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::shared_ptr<Job>> quarantine_;
  std::function<void()> when_idle_;
  std::vector<Release> releases_;   // that the runtime must be told of
  std::unique_ptr<ReleaseCall> release_call_;
};

}   // namespace duet::device
