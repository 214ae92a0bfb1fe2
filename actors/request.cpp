// request.cpp: the loop of one request.
#include "actors/request.hpp"

#include "actors/choice.hpp"
#include "actors/limits.hpp"
#include "actors/prompt_tokens.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace duet::actors {

namespace {

/// Turns what the stream tells into messages. Shared: the stream may outlive the actor.
class Listener final : public OutputListener {
 public:
  explicit Listener(runtime::Ref<RequestMessage> request) : request_(std::move(request)) {}
  void on_writable() noexcept override { request_.send(ReaderWritable{}); }
  void on_reader_gone() noexcept override { request_.send(ReaderGone{}); }

 private:
  const runtime::Ref<RequestMessage> request_;
};

/// The state of a running request; the coroutine is the loop around it.
class Running {
 public:
  Running(RequestSetup setup, runtime::Ref<RequestMessage> self, runtime::TimePoint now)
      : setup_(std::move(setup)), began_(now) {
    listener_ = std::make_shared<Listener>(std::move(self));
    setup_.stream->listen(listener_);
    record_.id = setup_.request->id;
    record_.model = setup_.request->model;
    record_.chip = setup_.board->chip;
    record_.seed = setup_.request->sampling.seed;
  }

  /// The end of every request, also of one whose actor is destroyed: the stream hears of it, the
  /// worker drops what is left.
  ~Running() {
    if (!over_) fail(ServiceError(errc::internal, "the request was given up"));
    setup_.router.send(RequestEnded{setup_.number});
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] runtime::TimePoint deadline() const {
    return std::min(setup_.request->deadline, began_ + setup_.time_limit);
  }
  [[nodiscard]] const GenerateRequest& wanted() const { return *setup_.request; }
  [[nodiscard]] const std::shared_ptr<const ModelProfile>& profile() const {
    return setup_.profile;
  }
  [[nodiscard]] std::shared_ptr<const GenerateRequest> request() const { return setup_.request; }

  void queue(const PreparedPrompts& prepared, const runtime::Ref<RequestMessage>& self);
  void on(const RequestStarted&, runtime::TimePoint now);
  void on(LogitsReady message, runtime::TimePoint now);
  void on(ReaderWritable);
  void on_failed(const ServiceError& error);
  void fail(const ServiceError& error);
  void set_now(runtime::TimePoint now) { now_ = now; }
  [[nodiscard]] runtime::Properties snapshot() const;

 private:
  struct Parked {
    SequenceNumber sequence = 0;
    text::TokenId token = 0;
  };
  bool make_choices(const PreparedPrompts& prepared);
  void write(std::uint32_t index);
  void end(runtime::TimePoint now);

  RequestSetup setup_;
  const runtime::TimePoint began_;
  runtime::TimePoint now_{};
  std::shared_ptr<Listener> listener_;
  std::vector<Choice> choices_;
  ChoiceScratch scratch_;
  std::vector<Parked> parked_;
  std::size_t choices_open_ = 0;
  bool queued_ = false;
  bool over_ = false;
  std::optional<runtime::TimePoint> first_token_;
  RequestRecord record_;
};

bool Running::make_choices(const PreparedPrompts& prepared) {
  const GenerateRequest& request = *setup_.request;
  std::uint32_t index = 0;
  for (const Tokens& prompt : prepared.prompts) {
    for (std::uint32_t i = 0; i < request.choices; ++i) {
      ChoiceOptions options;
      options.sampling = request.sampling;
      options.sampling.choice = index++;
      options.stop = request.stop;
      options.tokens_max = prepared.answer_max;
      options.logprobs = request.logprobs;
      options.logprobs_top = request.logprobs_top;
      auto choice = Choice::create(setup_.profile, std::move(options), *prompt);
      if (!choice) {
        fail(ServiceError(errc::bad_request, choice.error().message));
        return false;
      }
      choices_.push_back(std::move(*choice));
    }
  }
  choices_open_ = choices_.size();
  return true;
}

void Running::queue(const PreparedPrompts& prepared, const runtime::Ref<RequestMessage>& self) {
  record_.prompt_tokens = prepared.tokens;
  if (!make_choices(prepared)) return;
  const auto status =
      setup_.worker.send(Generate(setup_.number, self, prepared.prompts, setup_.request->choices));
  if (!status) {
    setup_.board->requests_refused.fetch_add(1, std::memory_order_relaxed);
    fail(ServiceError(errc::overloaded, "the model has too many requests; try again later", "", 1));
    return;
  }
  queued_ = true;
}

void Running::on(const RequestStarted& fact, runtime::TimePoint now) {
  record_.generation = fact.generation;
  record_.queue = now - began_;
  setup_.stream->start(record_.prompt_tokens);
}

void Running::on(LogitsReady message, runtime::TimePoint now) {
  Choice& choice = choices_.at(message.index);
  if (!first_token_.has_value()) {
    first_token_ = now;
    record_.ttft = now - began_;
    setup_.board->ttft.add(record_.ttft);
  }
  const auto token = choice.take(message.logits.values(), scratch_);
  message.logits.give_back();   // before the next job of the sequence is asked for
  if (!token) {
    fail(ServiceError(errc::device_fault, "the model's output was not usable"));
    return;
  }
  setup_.board->generation_tokens.fetch_add(1, std::memory_order_relaxed);

  // The next job runs while the text is on its way to the reader.
  const bool finished = choice.finished().has_value();
  if (finished) {
    setup_.worker.send(SequenceDone{message.sequence});
  } else if (setup_.stream->writable()) {
    setup_.worker.send(TokenChosen{message.sequence, *token});
  } else {
    setup_.worker.send(SequenceParked{message.sequence});
    parked_.push_back({message.sequence, *token});
  }
  write(message.index);
  if (!finished) return;
  record_.completion_tokens += choice.tokens();
  setup_.stream->choice_end(message.index, *choice.finished());
  record_.finish = *choice.finished() == FinishReason::stop ? "stop" : "length";
  if (--choices_open_ == 0) end(now);
}

void Running::write(std::uint32_t index) {
  Choice& choice = choices_.at(index);
  if (choice.has_delta()) setup_.stream->delta(choice.take_delta(index));
}

void Running::on(ReaderWritable) {
  for (const Parked& parked : parked_) {
    setup_.worker.send(TokenChosen{parked.sequence, parked.token});
  }
  parked_.clear();
}

void Running::end(runtime::TimePoint now) {
  over_ = true;
  record_.e2e = now - began_;
  setup_.board->e2e.add(record_.e2e);
  if (record_.completion_tokens > choices_.size()) {
    const auto steps = static_cast<runtime::Duration::rep>(
        (record_.completion_tokens - choices_.size()) / choices_.size());
    if (steps > 0) {
      record_.tpot = (now - *first_token_) / steps;
      setup_.board->tpot.add(record_.tpot);
    }
  }
  setup_.stream->end({record_.prompt_tokens, record_.completion_tokens});
  if (setup_.log) setup_.log(record_);
}

void Running::fail(const ServiceError& error) {
  if (std::exchange(over_, true)) return;
  if (queued_) {
    const bool aborted = error.code == errc::cancelled || error.code == errc::reader_too_slow ||
                         error.code == errc::deadline_exceeded;
    setup_.worker.send(DropRequest{setup_.number, aborted});
  }
  for (const Choice& choice : choices_) {
    if (!choice.finished().has_value()) record_.completion_tokens += choice.tokens();
  }
  record_.e2e = now_ - began_;
  setup_.stream->fail(error);
  record_.finish.clear();
  record_.error = to_string(error.code);
  if (setup_.log) setup_.log(record_);
}

// Its id and its progress; no word of its prompt.
runtime::Properties Running::snapshot() const {
  std::int64_t tokens = 0;
  for (const Choice& choice : choices_) tokens += choice.tokens();
  return {{"id", record_.id},
          {"model", record_.model},
          {"prompt_tokens", static_cast<std::int64_t>(record_.prompt_tokens)},
          {"tokens", tokens},
          {"choices_open", static_cast<std::int64_t>(choices_open_)},
          {"parked", static_cast<std::int64_t>(parked_.size())},
          {"queued", queued_}};
}

/// The worker has ended it already.
void Running::on_failed(const ServiceError& error) {
  queued_ = false;
  fail(error);
}

/// What a compute thread does for a long prompt. It owns all that it touches.
class Prepare {
 public:
  Prepare(std::shared_ptr<const GenerateRequest> request,
          std::shared_ptr<const ModelProfile> profile)
      : request_(std::move(request)), profile_(std::move(profile)) {}
  ServiceResult<PreparedPrompts> operator()() { return prepare_prompts(*request_, *profile_); }

 private:
  std::shared_ptr<const GenerateRequest> request_;
  std::shared_ptr<const ModelProfile> profile_;
};

/// One message. Stops, cancels and a gone reader all end the request.
void handle(Running& running, RequestMessage message, runtime::TimePoint now) {
  running.set_now(now);
  std::visit(
      [&](auto&& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, RequestStarted>) {
          running.on(what, now);
        } else if constexpr (std::is_same_v<What, LogitsReady>) {
          running.on(std::move(what), now);
        } else if constexpr (std::is_same_v<What, RequestFailed>) {
          running.on_failed(what.error);
        } else if constexpr (std::is_same_v<What, ReaderWritable>) {
          running.on(what);
        } else if constexpr (std::is_same_v<What, ReaderGone>) {
          running.fail(ServiceError(errc::cancelled, "the client went away"));
        } else if constexpr (std::is_same_v<What, CancelRequest>) {
          running.fail(ServiceError(errc::cancelled, "the request was cancelled"));
        } else {
          static_assert(std::is_same_v<What, runtime::Stop>);
          running.fail(ServiceError(errc::unavailable, "the server is stopping", "", 5));
        }
      },
      std::move(message));
}

}   // namespace

runtime::Behaviour request(runtime::Self<RequestMessage> self, RequestSetup setup) {
  Running running(std::move(setup), self.ref(), self.now());
  const auto shown = self.describe([&running] { return running.snapshot(); });
  std::optional<ServiceResult<PreparedPrompts>> prepared;
  if (prompt_bytes(running.wanted()) < limits::offload_text_bytes_min) {
    prepared = prepare_prompts(running.wanted(), *running.profile());
  } else {
    Prepare prepare(running.request(), running.profile());
    auto offloaded = co_await self.offload(std::move(prepare));
    if (offloaded) prepared = std::move(*offloaded);
  }
  running.set_now(self.now());
  if (!prepared.has_value()) {
    running.fail(ServiceError(errc::overloaded, "too many long prompts; try again later", "", 1));
  } else if (!*prepared) {
    running.fail(prepared->error());
  } else {
    running.queue(**prepared, self.ref());
  }
  prepared.reset();
  const runtime::TimePoint deadline = running.deadline();
  while (!running.over()) {
    auto received = co_await self.receive_for(deadline - self.now());
    if (received) {
      handle(running, std::move(*received), self.now());
    } else {
      running.fail(ServiceError(errc::deadline_exceeded, "the request's time is over"));
    }
  }
}

}   // namespace duet::actors
