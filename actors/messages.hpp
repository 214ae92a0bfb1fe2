// messages.hpp: the languages of the application's actors.
//
//   Router       <- front ends, Request, DeviceSupervisor
//   Request      <- ModelWorker, Router, its reader
//   ModelWorker  <- Request, ChipSession, DeviceSupervisor
//   ChipSession  <- ModelWorker, DeviceSupervisor, completion threads
#pragma once

#include "actors/generate_request.hpp"
#include "actors/job_queues.hpp"
#include "actors/model_profile.hpp"
#include "actors/output_stream.hpp"
#include "actors/service.hpp"
#include "device/contract/types.hpp"
#include "runtime/message.hpp"
#include "runtime/ref.hpp"
#include "runtime/reply.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace duet::actors {

struct RequestStarted;
struct LogitsReady;
struct RequestFailed;
struct ReaderWritable;
struct ReaderGone;
struct CancelRequest;
struct Generate;
struct TokenChosen;
struct SequenceParked;
struct SequenceDone;
struct DropRequest;
struct JobAccepted;
struct JobEnded;
struct SessionUp;
struct StateChanged;
struct DrainWorker;
struct WorkerTick;
struct RunJob;
struct AskJob;
struct ReleaseSequence;
struct ReturnBuffer;
struct JobDone;
struct JobSettled;
struct SubmitRequest;
struct CancelById;
struct RequestEnded;
struct ModelStateChanged;
struct SessionFault;
struct ShutDown;

}   // namespace duet::actors

// Answers to what was asked for are guaranteed; what a client starts is bounded.
namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<actors::RequestStarted> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::LogitsReady> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::RequestFailed> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::ReaderWritable> = MessageClass::latest;
template <>
inline constexpr MessageClass message_class<actors::ReaderGone> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::CancelRequest> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::Generate> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<actors::TokenChosen> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::SequenceParked> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::SequenceDone> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::DropRequest> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::JobAccepted> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::JobEnded> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::SessionUp> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::StateChanged> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::DrainWorker> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::WorkerTick> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::RunJob> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::AskJob> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::ReleaseSequence> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::ReturnBuffer> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::JobDone> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::JobSettled> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::SubmitRequest> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<actors::CancelById> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<actors::RequestEnded> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::ModelStateChanged> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::SessionFault> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<actors::ShutDown> = MessageClass::guaranteed;

// A cancel must not wait behind a queue of work.
template <>
inline constexpr Lane message_lane<actors::CancelRequest> = Lane::urgent;
template <>
inline constexpr Lane message_lane<actors::ReaderGone> = Lane::urgent;
template <>
inline constexpr Lane message_lane<actors::DropRequest> = Lane::urgent;
}   // namespace duet::runtime

namespace duet::actors {

/// Logits of one step, on loan from a ChipSession: while it exists no job uses the staging buffer
/// they lie in. Its end, wherever that is, gives the buffer back. Move-only; any thread.
class LogitsLease {
 public:
  LogitsLease() noexcept = default;
  LogitsLease(std::span<const float> logits, runtime::Address session,
              std::uint64_t buffer) noexcept
      : values_(logits), session_(std::move(session)), buffer_(buffer) {}
  LogitsLease(LogitsLease&& other) noexcept
      : values_(other.values_),
        session_(std::move(other.session_)),
        buffer_(std::exchange(other.buffer_, 0)) {}
  LogitsLease& operator=(LogitsLease&& other) noexcept {
    if (this != &other) {
      give_back();
      values_ = other.values_;
      session_ = std::move(other.session_);
      buffer_ = std::exchange(other.buffer_, 0);
    }
    return *this;
  }
  ~LogitsLease() { give_back(); }

  [[nodiscard]] std::span<const float> values() const noexcept { return values_; }
  void give_back() noexcept;   // chip_session.cpp

 private:
  std::span<const float> values_;
  runtime::Address session_;
  std::uint64_t buffer_ = 0;   // 0: none
};

using Tokens = std::shared_ptr<const std::vector<text::TokenId>>;

// ---- to a Request ----

/// From ModelWorker: the chip has accepted the first prefill of the request; the commit point of
/// the response.
struct RequestStarted {
  device::Generation generation = 0;   ///< of the session it runs on.
};

/// From ModelWorker: the logits behind the prompt or the last token of a choice.
struct LogitsReady {
  LogitsReady(SequenceNumber number, std::uint32_t choice, LogitsLease lease) noexcept
      : sequence(number), index(choice), logits(std::move(lease)) {}
  SequenceNumber sequence;
  std::uint32_t index;   ///< of the choice.
  LogitsLease logits;
};

/// From ModelWorker: the request is over; none of its sequences exists any more.
struct RequestFailed {
  explicit RequestFailed(ServiceError reason) : error(std::move(reason)) {}
  ServiceError error;
};

/// From the output stream: there is room again.
struct ReaderWritable {};
/// From the output stream: nobody reads.
struct ReaderGone {};

/// From Router: a client or an operator wants it to end.
struct CancelRequest {};

using RequestMessage = std::variant<RequestStarted, LogitsReady, RequestFailed, ReaderWritable,
                                    ReaderGone, CancelRequest, runtime::Stop>;

// ---- to a ModelWorker ----

/// A number for each request, never reused.
using RequestNumber = std::uint64_t;

/// From Request: queue these sequences. Refused with RequestFailed, or by the mailbox.
struct Generate {
  Generate(RequestNumber request_number, runtime::Ref<RequestMessage> sender,
           std::vector<Tokens> all_prompts, std::uint32_t choices_each)
      : number(request_number),
        request(std::move(sender)),
        prompts(std::move(all_prompts)),
        choices(choices_each) {}
  RequestNumber number;
  runtime::Ref<RequestMessage> request;
  std::vector<Tokens> prompts;   ///< choice index = prompt * choices + choice.
  std::uint32_t choices;
};

/// From Request: the sequence goes on with this token.
struct TokenChosen {
  SequenceNumber sequence = 0;
  text::TokenId token = 0;
};

/// From Request: the reader is slow; the sequence keeps its slot.
struct SequenceParked {
  SequenceNumber sequence = 0;
};

/// From Request: the choice is complete.
struct SequenceDone {
  SequenceNumber sequence = 0;
};

/// From Request: drop all sequences of it, running ones when their job has ended. May overtake
/// Generate.
struct DropRequest {
  RequestNumber number = 0;
  bool aborted = false;   ///< by its client, an operator or its deadline; else it failed.
};

/// From ChipSession: the runtime has taken the prefill of this sequence.
struct JobAccepted {
  device::Generation generation = 0;   ///< of the session.
  SequenceNumber sequence = 0;
};

/// From ChipSession: the end of a job.
struct JobEnded {
  JobEnded(device::Generation life, SequenceNumber number, boost::system::error_code code,
           LogitsLease lease) noexcept
      : generation(life), sequence(number), status(code), logits(std::move(lease)) {}
  device::Generation generation;   ///< of the session; of a former one it is stale.
  SequenceNumber sequence;
  boost::system::error_code status;
  LogitsLease logits;   ///< empty after a failure.
};

/// From DeviceSupervisor: the model may run on this session from now on.
struct SessionUp {
  SessionUp(runtime::Address chip_session, device::Generation life,
            std::shared_ptr<const ModelProfile> what, std::uint32_t slots)
      : session(std::move(chip_session)),
        generation(life),
        profile(std::move(what)),
        kv_slots(slots) {}
  runtime::Address session;   ///< of the ChipSession actor.
  device::Generation generation;
  std::shared_ptr<const ModelProfile> profile;
  std::uint32_t kv_slots;
};

/// From DeviceSupervisor: the model's state is another; anything but ready refuses new requests,
/// and all but draining ends the running ones.
struct StateChanged {
  StateChanged(WorkerState next, std::string why) : state(next), reason(std::move(why)) {}
  WorkerState state;
  std::string reason;
};

/// From DeviceSupervisor: answered when no request is left.
struct DrainWorker {
  DrainWorker() = default;
  runtime::Reply<bool> reply;
};

/// From its own timer.
struct WorkerTick {};

using ModelWorkerMessage =
    std::variant<Generate, TokenChosen, SequenceParked, SequenceDone, DropRequest, JobAccepted,
                 JobEnded, SessionUp, StateChanged, DrainWorker, WorkerTick>;

// ---- to a ChipSession ----

/// What a job is to compute.
struct JobOrder {
  SequenceNumber sequence = 0;
  device::GraphKind graph = device::GraphKind::decode;
  Tokens prompt;             ///< of a prefill.
  text::TokenId token = 0;   ///< of a decode.
  std::uint32_t past = 0;
};

/// From ModelWorker: answered by JobAccepted and JobEnded.
struct RunJob {
  explicit RunJob(JobOrder what) : order(std::move(what)) {}
  JobOrder order;
};

/// From DeviceSupervisor, for goldens and warm-up: answered by the reply alone.
struct AskJob {
  AskJob() = default;
  explicit AskJob(JobOrder what) : order(std::move(what)) {}
  JobOrder order;
  runtime::Reply<JobEnded> reply;
};

/// The sequence's slot is free. Its job, if one runs, is waited for.
struct ReleaseSequence {
  SequenceNumber sequence = 0;
};

/// From a LogitsLease: its buffer is free.
struct ReturnBuffer {
  std::uint64_t buffer = 0;
};

/// From a completion thread.
struct JobDone {
  device::JobResult result;
};
struct JobSettled {
  device::SessionId session = 0;
  device::Generation generation = 0;
  device::JobId job = 0;
};

using ChipSessionMessage =
    std::variant<RunJob, AskJob, ReleaseSequence, ReturnBuffer, JobDone, JobSettled>;

// ---- to the Router ----

struct SubmitRequest {
  SubmitRequest(GenerateRequest what, std::shared_ptr<OutputStream> where)
      : request(std::make_shared<const GenerateRequest>(std::move(what))),
        stream(std::move(where)) {}
  std::shared_ptr<const GenerateRequest> request;
  std::shared_ptr<OutputStream> stream;
};

struct CancelById {
  CancelById(std::string request_id, std::string who, bool any,
             std::function<void(CancelResult)> tell)
      : id(std::move(request_id)), key(std::move(who)), any_key(any), done(std::move(tell)) {}
  std::string id;
  std::string key;
  bool any_key;
  std::function<void(CancelResult)> done;
};

/// From Request, as its last act.
struct RequestEnded {
  RequestNumber number = 0;
};

/// From DeviceSupervisor.
struct ModelStateChanged {
  ModelStateChanged(std::string which, std::shared_ptr<const ModelProfile> what, WorkerState next)
      : alias(std::move(which)), profile(std::move(what)), state(next) {}
  std::string alias;
  std::shared_ptr<const ModelProfile> profile;   ///< null: as before.
  WorkerState state;
};

using RouterMessage = std::variant<SubmitRequest, CancelById, RequestEnded, ModelStateChanged>;

// ---- to the DeviceSupervisor ----

/// From ChipSession: something that only the ladder can mend.
struct SessionFault {
  SessionFault(std::uint32_t which, device::Generation life, boost::system::error_code what)
      : chip(which), generation(life), code(what) {}
  std::uint32_t chip;
  device::Generation generation;   ///< of the session; an older one's fault is over already.
  boost::system::error_code code;
};

/// Drain, release the board and end.
struct ShutDown {
  ShutDown() = default;
  runtime::Reply<bool> reply;
};

using DeviceSupervisorMessage = std::variant<SessionFault, ShutDown>;

}   // namespace duet::actors
