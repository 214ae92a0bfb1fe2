// model_worker.hpp: one served model; turns admitted requests into jobs on one chip.
#pragma once

#include "actors/job_queues.hpp"
#include "actors/messages.hpp"
#include "actors/model_board.hpp"
#include "actors/options.hpp"
#include "runtime/handler_actor.hpp"
#include "runtime/tombstones.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace duet::actors {

/// Owns the sequences of one model and decides which job runs next.
///
/// Strand:    its own.
/// Owner:     DeviceSupervisor.
/// Bounds:    options.requests_waiting_max, options.prompt_tokens_waiting_max; as many active
/// sequences as key/value slots. Waits for: ChipSession, options.inflight_max jobs at a time; for
/// each sequence's Request, which answers every LogitsReady. Ends:      never by itself; every
/// request got exactly one RequestFailed, or ended itself, before its sequences are gone.
class ModelWorker final : public runtime::HandlerActor<ModelWorker, ModelWorkerMessage> {
 public:
  ModelWorker(ModelOptions options, SchedulingOptions scheduling,
              std::shared_ptr<ModelBoard> board);

  // Commands.
  void on(Generate command);
  void on(TokenChosen command);
  void on(SequenceParked command);
  void on(SequenceDone command);
  void on(DropRequest command);
  void on(DrainWorker command);

  // Facts.
  void on(JobAccepted fact);
  void on(JobEnded fact);
  void on(SessionUp fact);
  void on(StateChanged fact);
  void on(WorkerTick fact);

  [[nodiscard]] runtime::Properties snapshot() const;

 private:
  ///
  enum class SequenceState : std::uint8_t {
    queued,   ///< waits for its prefill.
    prefill_running,
    sampling,   ///< its Request holds the logits.
    decode_ready,
    decode_running,
    parked,     ///< its reader is slow.
    dropping,   ///< nobody wants it; its job is waited for.
  };
  struct Sequence {
    RequestNumber request = 0;
    std::uint32_t index = 0;
    SequenceState state = SequenceState::queued;
    Tokens prompt;
    std::uint32_t past = 0;       ///< committed positions.
    text::TokenId next = 0;       ///< for its decode.
    runtime::TimePoint since{};   ///< when it was queued.
  };
  struct Request {
    runtime::Ref<RequestMessage> from;
    std::vector<SequenceNumber> sequences;
    bool started = false;
  };

  void submit_jobs();
  void run(const JobChoice& choice);
  /// Takes the sequence out of everything. Frees its slot if it had one.
  void forget(SequenceNumber number);
  void drop_sequences(RequestNumber number);
  void fail_request(RequestNumber number, const ServiceError& error);
  void fail_all(const ServiceError& error);
  void expire_waiting();
  void arm_tick();
  [[nodiscard]] std::optional<runtime::TimePoint> waits_since(const Request& request) const;
  [[nodiscard]] std::optional<runtime::TimePoint> next_expiry() const;
  void leave_session();
  void publish();
  void finish_drain_if_idle();
  [[nodiscard]] std::optional<ServiceError> refusal(const Generate& command) const;
  void check_invariants() const;
  void check_slots() const;

  const ModelOptions options_;
  const std::shared_ptr<ModelBoard> board_;
  WorkerState state_ = WorkerState::unloaded;
  std::string reason_ = "the board is not up yet";
  runtime::Ref<ChipSessionMessage> session_;
  device::Generation generation_ = 0;   // of the session
  std::shared_ptr<const ModelProfile> profile_;
  std::uint32_t kv_slots_ = 0;
  std::uint32_t kv_slots_used_ = 0;
  std::uint32_t jobs_running_ = 0;
  std::uint32_t sampling_ = 0;
  JobQueues queues_;
  std::map<SequenceNumber, Sequence> sequences_;
  std::map<RequestNumber, Request> requests_;
  runtime::Tombstones<RequestNumber> tombstones_;   // dropped before their Generate came
  SequenceNumber sequences_made_ = 0;
  std::optional<runtime::TimePoint> tick_due_;
  std::vector<runtime::Reply<bool>> draining_;
};

}   // namespace duet::actors
