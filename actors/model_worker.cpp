// model_worker.cpp: admission, the four queues, and the way of a sequence from prompt to last
// token.
#include "actors/model_worker.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <utility>

namespace duet::actors {

ModelWorker::ModelWorker(ModelOptions options, SchedulingOptions scheduling,
                         std::shared_ptr<ModelBoard> board)
    : options_(std::move(options)), board_(std::move(board)), queues_(scheduling) {}

// ---- admission ----

std::optional<ServiceError> ModelWorker::refusal(const Generate& command) const {
  if (state_ != WorkerState::ready) {
    return ServiceError(
        errc::unavailable,
        "the model " + options_.alias + " is " + to_string(state_) + "; try again later", "", 5);
  }
  std::uint64_t tokens = queues_.prefill_tokens();
  for (const Tokens& prompt : command.prompts) tokens += prompt->size() * command.choices;
  const std::size_t sequences = queues_.prefills() + command.prompts.size() * command.choices;
  // A model that does nothing takes any single request that fits its context, however small the
  // bounds are.
  const bool idle = requests_.empty();
  if (!idle &&
      (sequences > options_.requests_waiting_max || tokens > options_.prompt_tokens_waiting_max)) {
    return ServiceError(errc::overloaded,
                        "the queue of " + options_.alias + " is full; try again later", "", 1);
  }
  return std::nullopt;
}

void ModelWorker::on(Generate command) {
  if (tombstones_.take(command.number, now())) return;
  if (auto refused = refusal(command)) {
    board_->requests_refused.fetch_add(1, std::memory_order_relaxed);
    command.request.send(RequestFailed(std::move(*refused)));
    return;
  }

  board_->requests_accepted.fetch_add(1, std::memory_order_relaxed);
  Request request{command.request, {}, false};
  std::uint32_t index = 0;
  for (const Tokens& prompt : command.prompts) {
    for (std::uint32_t choice = 0; choice < command.choices; ++choice) {
      const SequenceNumber number = ++sequences_made_;
      Sequence sequence;
      sequence.request = command.number;
      sequence.index = index++;
      sequence.prompt = prompt;
      sequence.since = now();
      queues_.push_prefill(number, static_cast<std::uint32_t>(prompt->size()), sequence.since);
      sequences_.emplace(number, std::move(sequence));
      request.sequences.push_back(number);
    }
  }
  requests_.emplace(command.number, std::move(request));

  submit_jobs();
}

void ModelWorker::on(DropRequest command) {
  if (!requests_.contains(command.number)) {
    // Its Generate may still be on its way, for as long as a request lasts at most. The drop that
    // follows the end of a request finds nothing either; it is forgotten by then.
    tombstones_.bury(command.number, now() + options_.request_timeout, now());
    return;
  }
  (command.aborted ? board_->requests_aborted : board_->requests_failed)
      .fetch_add(1, std::memory_order_relaxed);
  drop_sequences(command.number);
  submit_jobs();
}

// ---- sequences ----

void ModelWorker::forget(SequenceNumber number) {
  const auto found = sequences_.find(number);
  DUET_ASSERT(found != sequences_.end(), number);
  const Sequence& sequence = found->second;
  if (sequence.state == SequenceState::sampling) --sampling_;
  if (sequence.state != SequenceState::queued) {
    DUET_ASSERT(kv_slots_used_ > 0);
    --kv_slots_used_;
    session_.send(ReleaseSequence{number});
  }
  queues_.remove(number);
  const auto request = requests_.find(sequence.request);
  if (request != requests_.end()) {
    std::erase(request->second.sequences, number);
    if (request->second.sequences.empty()) requests_.erase(request);
  }
  sequences_.erase(found);
  check_slots();
}

void ModelWorker::drop_sequences(RequestNumber number) {
  const auto request = requests_.find(number);
  if (request == requests_.end()) return;
  const std::vector<SequenceNumber> sequences = request->second.sequences;
  for (const SequenceNumber sequence_number : sequences) {
    Sequence& sequence = sequences_.at(sequence_number);
    const bool running = sequence.state == SequenceState::prefill_running ||
                         sequence.state == SequenceState::decode_running;
    if (running) {
      // The chip writes into its slot until the job ends.
      std::erase(request->second.sequences, sequence_number);
      sequence.state = SequenceState::dropping;
    } else if (sequence.state != SequenceState::dropping) {
      forget(sequence_number);
      if (!requests_.contains(number)) return;
    }
  }
  requests_.erase(number);
}

void ModelWorker::fail_request(RequestNumber number, const ServiceError& error) {
  const auto request = requests_.find(number);
  if (request == requests_.end()) return;
  const runtime::Ref<RequestMessage> from = request->second.from;
  board_->requests_failed.fetch_add(1, std::memory_order_relaxed);
  drop_sequences(number);
  from.send(RequestFailed(error));
}

void ModelWorker::fail_all(const ServiceError& error) {
  std::vector<RequestNumber> numbers;
  for (const auto& [number, request] : requests_) numbers.push_back(number);
  for (const RequestNumber number : numbers) fail_request(number, error);
}

void ModelWorker::on(TokenChosen command) {
  const auto found = sequences_.find(command.sequence);
  if (found == sequences_.end()) return;   // dropped meanwhile
  Sequence& sequence = found->second;
  DUET_ASSERT(sequence.state == SequenceState::sampling || sequence.state == SequenceState::parked);

  if (sequence.state == SequenceState::sampling) --sampling_;
  sequence.state = SequenceState::decode_ready;
  sequence.next = command.token;
  queues_.push_decode(command.sequence);

  submit_jobs();
}

void ModelWorker::on(SequenceParked command) {
  const auto found = sequences_.find(command.sequence);
  if (found == sequences_.end()) return;
  DUET_ASSERT(found->second.state == SequenceState::sampling);
  --sampling_;
  found->second.state = SequenceState::parked;
  submit_jobs();
}

void ModelWorker::on(SequenceDone command) {
  const auto found = sequences_.find(command.sequence);
  if (found != sequences_.end()) {
    const RequestNumber number = found->second.request;
    forget(command.sequence);
    if (!requests_.contains(number)) {
      board_->requests_finished.fetch_add(1, std::memory_order_relaxed);
    }
  }
  submit_jobs();
}

// ---- jobs ----

void ModelWorker::submit_jobs() {
  expire_waiting();
  while (state_ != WorkerState::unloaded && jobs_running_ < options_.inflight_max) {
    // Only prefills ask how late it is, and reading the clock at every token is not free.
    const runtime::TimePoint time = queues_.prefills() > 0 ? now() : runtime::TimePoint();
    const auto choice = queues_.choose(time, sampling_, kv_slots_used_ < kv_slots_);
    if (!choice) break;
    run(*choice);
  }
  arm_tick();
  publish();
  finish_drain_if_idle();
  check_invariants();
}

void ModelWorker::run(const JobChoice& choice) {
  Sequence& sequence = sequences_.at(choice.sequence);
  JobOrder order;
  order.sequence = choice.sequence;
  order.past = sequence.past;
  if (choice.kind == JobChoice::Kind::prefill) {
    DUET_ASSERT(sequence.state == SequenceState::queued);
    sequence.state = SequenceState::prefill_running;
    ++kv_slots_used_;
    check_slots();
    order.graph = device::GraphKind::prefill;
    order.prompt = sequence.prompt;
  } else {
    DUET_ASSERT(sequence.state == SequenceState::decode_ready);
    sequence.state = SequenceState::decode_running;
    order.graph = device::GraphKind::decode;
    order.token = sequence.next;
  }
  ++jobs_running_;

  session_.send(RunJob(std::move(order)));
}

void ModelWorker::on(JobAccepted fact) {
  if (fact.generation != generation_) return;
  const auto sequence = sequences_.find(fact.sequence);
  if (sequence == sequences_.end()) return;
  const auto request = requests_.find(sequence->second.request);
  if (request == requests_.end() || std::exchange(request->second.started, true)) return;
  request->second.from.send(RequestStarted{generation_});
}

void ModelWorker::on(JobEnded fact) {
  if (fact.generation != generation_) return;   // its sequence went with its session
  const auto found = sequences_.find(fact.sequence);
  DUET_ASSERT(found != sequences_.end() && jobs_running_ > 0, fact.sequence, jobs_running_);
  --jobs_running_;
  Sequence& sequence = found->second;
  const RequestNumber number = sequence.request;

  if (sequence.state == SequenceState::dropping) {
    forget(fact.sequence);
  } else if (fact.status.failed()) {
    sequence.state = SequenceState::parked;   // no job of it runs any more
    fail_request(number, ServiceError(errc::device_fault,
                                      "the accelerator failed while it worked on this request"));
  } else {
    const bool prefill = sequence.state == SequenceState::prefill_running;
    sequence.past += prefill ? static_cast<std::uint32_t>(sequence.prompt->size()) : 1;
    if (prefill) board_->prompt_tokens.fetch_add(sequence.past, std::memory_order_relaxed);
    sequence.state = SequenceState::sampling;
    ++sampling_;
    const auto status = requests_.at(number).from.send(
        LogitsReady(fact.sequence, sequence.index, std::move(fact.logits)));
    if (!status) drop_sequences(number);   // it has ended, and its drop is on its way
  }

  submit_jobs();
}

// ---- time ----

/// Since when all sequences of a request wait for their prefill; nothing once one of them ran.
std::optional<runtime::TimePoint> ModelWorker::waits_since(const Request& request) const {
  if (request.started) return std::nullopt;
  runtime::TimePoint since{};
  for (const SequenceNumber number : request.sequences) {
    const Sequence& sequence = sequences_.at(number);
    if (sequence.state != SequenceState::queued) return std::nullopt;
    since = std::max(since, sequence.since);
  }
  return since;
}

void ModelWorker::expire_waiting() {
  if (queues_.prefills() == 0) return;   // this is asked at every token
  std::vector<RequestNumber> expired;
  const runtime::TimePoint limit = now() - options_.queue_timeout;
  for (const auto& [number, request] : requests_) {
    const auto since = waits_since(request);
    if (since.has_value() && *since <= limit) expired.push_back(number);
  }
  for (const RequestNumber number : expired) {
    fail_request(
        number,
        ServiceError(errc::overloaded,
                     "the request waited too long in the queue of " + options_.alias, "", 1));
  }
}

std::optional<runtime::TimePoint> ModelWorker::next_expiry() const {
  std::optional<runtime::TimePoint> first;
  for (const auto& [number, request] : requests_) {
    const auto since = waits_since(request);
    if (since.has_value()) first = std::min(first.value_or(*since), *since);
  }
  if (first.has_value()) *first += options_.queue_timeout;
  return first;
}

void ModelWorker::arm_tick() {
  std::optional<runtime::TimePoint> due = queues_.next_due();
  // Due already and not run: a slot or a sample is waited for, which comes as a message. What time
  // alone brings is then the end of a request that waits too long.
  if (due.has_value() && *due <= now()) due = next_expiry();
  if (!due.has_value() || (tick_due_.has_value() && *tick_due_ <= *due)) return;
  tick_due_ = due;
  send_after(*due - now(), WorkerTick{});
}

void ModelWorker::on(WorkerTick) {
  tick_due_.reset();
  submit_jobs();
}

// ---- life cycle ----

void ModelWorker::on(SessionUp fact) {
  leave_session();
  session_ = runtime::Ref<ChipSessionMessage>(fact.session);
  generation_ = fact.generation;
  profile_ = std::move(fact.profile);
  kv_slots_ =
      options_.sequences_max == 0 ? fact.kv_slots : std::min(options_.sequences_max, fact.kv_slots);
  board_->set_context(profile_->context);
  publish();
  finish_drain_if_idle();
}

/// The former session's jobs that were not waited for any longer: what they still bring is stale.
/// Their requests have been told when the model went out of service.
void ModelWorker::leave_session() {
  DUET_ASSERT(requests_.empty() && sampling_ == 0, requests_.size(), sampling_);
  for (const auto& [number, sequence] : sequences_) {
    DUET_ASSERT(sequence.state == SequenceState::dropping, number);
  }
  sequences_.clear();
  jobs_running_ = 0;
  kv_slots_used_ = 0;
}

void ModelWorker::on(StateChanged fact) {
  state_ = fact.state;
  reason_ = std::move(fact.reason);
  board_->set_state(state_, reason_, core().clock().wall_now());
  if (state_ != WorkerState::ready && state_ != WorkerState::draining) {
    fail_all(ServiceError(errc::unavailable, "the model " + options_.alias + " went out of service",
                          "", 5));
  } else if (state_ == WorkerState::draining) {
    // Running answers may finish; what has not begun is refused while its status can still be
    // chosen.
    std::vector<RequestNumber> waiting;
    for (const auto& [number, request] : requests_) {
      if (!request.started) waiting.push_back(number);
    }
    for (const RequestNumber number : waiting) {
      fail_request(number, ServiceError(errc::unavailable,
                                        "the model " + options_.alias + " is draining", "", 5));
    }
  }
  submit_jobs();
}

void ModelWorker::on(DrainWorker command) {
  draining_.push_back(std::move(command.reply));
  finish_drain_if_idle();
}

void ModelWorker::finish_drain_if_idle() {
  if (draining_.empty() || !sequences_.empty() || jobs_running_ > 0) return;
  for (auto& reply : draining_) reply(true);
  draining_.clear();
}

void ModelWorker::publish() {
  set_waits_for(jobs_running_ > 0 ? "job" : sampling_ > 0 ? "token" : nullptr);
  board_->requests_waiting.store(queues_.prefills(), std::memory_order_relaxed);
  board_->sequences_active.store(kv_slots_used_, std::memory_order_relaxed);
  board_->kv_slots_used.store(kv_slots_used_, std::memory_order_relaxed);
  board_->kv_slots_total.store(kv_slots_, std::memory_order_relaxed);
}

void ModelWorker::check_invariants() const {
  DUET_ASSERT(kv_slots_used_ <= kv_slots_, kv_slots_used_, kv_slots_);
  DUET_ASSERT(jobs_running_ <= options_.inflight_max, jobs_running_, options_.inflight_max);
}

/// Where slots are taken and freed; at every token it would cost more than the token.
void ModelWorker::check_slots() const {
  DUET_DEBUG_ASSERT(static_cast<std::size_t>(
                        std::count_if(sequences_.begin(), sequences_.end(), [](const auto& entry) {
                          return entry.second.state != SequenceState::queued;
                        })) == kv_slots_used_);
}

runtime::Properties ModelWorker::snapshot() const {
  const auto count = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  return {{"model", options_.alias},
          {"state", to_string(state_)},
          {"reason", reason_},
          {"generation", count(generation_)},
          {"requests", count(requests_.size())},
          {"sequences", count(sequences_.size())},
          {"prefills_waiting", count(queues_.prefills())},
          {"decodes_waiting", count(queues_.decodes())},
          {"sampling", count(sampling_)},
          {"jobs_running", count(jobs_running_)},
          {"kv_slots_used", count(kv_slots_used_)},
          {"kv_slots", count(kv_slots_)}};
}

}   // namespace duet::actors
