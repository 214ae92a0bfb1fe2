// chip_session.hpp: the owner of one chip's session: jobs in, results out, nothing stale ever.
#pragma once

#include "actors/messages.hpp"
#include "actors/options.hpp"
#include "device/contract/device.hpp"
#include "runtime/handler_actor.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace duet::actors {

/// What the supervisor has made for it.
struct ChipSessionSetup {
  std::uint32_t chip = 0;
  device::SessionState session;
  std::vector<device::IoBuffers> buffers;   ///< of both graphs.
  device::SequenceId sequence_first = 0;
  device::SequenceId sequence_last = 0;
  std::uint32_t inflight_max = 1;
  std::chrono::milliseconds job_deadline{10000};   ///< the watchdog's.
};

/// Figures that other threads read.
struct ChipCounters {
  std::atomic<std::uint64_t> jobs_submitted = 0;
  std::atomic<std::uint64_t> jobs_done = 0;   ///< ended well.
  std::atomic<std::uint64_t> jobs_failed = 0;
  std::atomic<std::uint64_t> completions_stale = 0;
  std::atomic<std::int64_t> last_progress = 0;   ///< runtime::TimePoint's count.
};

/// Turns orders into jobs of the device, one life of a session long.
///
/// Strand:    its own; the completion thread that ends a job may run it.
/// Owner:     DeviceSupervisor, which stops it before it resets or closes the session.
/// Bounds:    limits::orders_max waiting (the worker gives at most inflight_max, the supervisor one
/// more). Waits for: completion threads, a job at most job_deadline.
class ChipSession final : public runtime::HandlerActor<ChipSession, ChipSessionMessage> {
 public:
  /// `device` outlives the actor.
  ChipSession(device::Device& device, ChipSessionSetup setup,
              runtime::Ref<ModelWorkerMessage> worker,
              runtime::Ref<DeviceSupervisorMessage> supervisor,
              std::shared_ptr<ChipCounters> counters);

  ChipSession(const ChipSession&) = delete;
  ChipSession& operator=(const ChipSession&) = delete;
  ~ChipSession() override;

  // Commands.
  void on(RunJob command);
  void on(AskJob command);
  void on(ReleaseSequence command);
  void on(ReturnBuffer command);

  // Facts.
  void on(JobDone fact);
  void on(JobSettled fact);

  [[nodiscard]] runtime::Properties snapshot() const;

 private:
  struct Order {
    JobOrder what;
    std::optional<runtime::Reply<JobEnded>> reply;   ///< null: the worker's.
  };
  struct Buffer {
    device::IoBuffers io;
    bool busy = false;   ///< a job's, or leased with its logits.
  };
  struct Running {
    device::JobId job = 0;
    Order order;
    std::size_t buffer = 0;
  };
  struct Unsettled {
    device::JobId job = 0;
    std::size_t buffer = 0;
  };

  void submit_waiting();
  /// True: it is in flight, or has failed and was answered. False: try again later.
  bool submit(Order& order);
  void fail(Order& order, boost::system::error_code code);
  void answer(Order& order, JobEnded ended);
  [[nodiscard]] std::optional<std::size_t> free_buffer(device::GraphKind graph) const;
  [[nodiscard]] device::SequenceId device_sequence(SequenceNumber sequence) const;

  device::Device& device_;
  const ChipSessionSetup setup_;
  const runtime::Ref<ModelWorkerMessage> worker_;
  const runtime::Ref<DeviceSupervisorMessage> supervisor_;
  const std::shared_ptr<ChipCounters> counters_;
  std::vector<Buffer> buffers_;
  std::vector<Order> waiting_;   // limits::orders_max at most; a deque allocates as it moves on
  std::vector<Running> running_;
  std::vector<Unsettled> unsettled_;        // timed out; the device may still write
  std::vector<SequenceNumber> releasing_;   // once their job has ended
  device::JobId jobs_made_ = 0;
};

/// The sink of a session's jobs: turns completions into messages. Outlives the actor where it must.
class JobSink final : public device::CompletionSink {
 public:
  void connect(runtime::Ref<ChipSessionMessage> session);
  void on_call(device::CallDone&& done) noexcept override;
  void on_job(const device::JobResult& done) noexcept override;
  void on_settled(device::SessionId session, device::Generation generation,
                  device::JobId job) noexcept override;

 private:
  runtime::Ref<ChipSessionMessage> session_;   // written before the first job is submitted
};

}   // namespace duet::actors
