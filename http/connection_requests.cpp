// connection_requests.cpp: what a connection does with a request.
#include "http/connection.hpp"

#include "http/connection_parts.hpp"
#include "http/json_text.hpp"
#include "http/limits.hpp"
#include "http/pages.hpp"
#include "http/response_stream.hpp"
#include "runtime/assert.hpp"
#include "runtime/short_lock.hpp"

#include <array>
#include <chrono>
#include <mutex>

namespace duet::http {

namespace {

bool is_completion(RouteId route) noexcept {
  return route == RouteId::chat_completions || route == RouteId::completions;
}

/// The answer of DELETE /internal/requests/{id}: it comes when the service has decided.
class CancelAnswer final : public Answer {
 public:
  CancelAnswer(AnswerContext context, std::string id, runtime::Clock& clock,
               std::shared_ptr<AnswerReader> reader)
      : context_(std::move(context)),
        id_(std::move(id)),
        clock_(clock),
        reader_(std::move(reader)) {}

  void decided(actors::CancelResult result) {
    Reply reply;
    if (result == actors::CancelResult::cancelled) {
      reply.body = R"({"id":)";
      append_json_repaired(reply.body, id_);
      reply.body += R"(,"object":"request","cancelled":true})";
    } else {
      reply = error_reply(to_http_error(
          {actors::errc::request_not_found, "no request '" + bounded_echo(id_) + "' is running"}));
    }
    std::string bytes;
    append_reply(bytes, reply, context_, clock_.wall_now());
    {
      const std::lock_guard lock(lock_);
      status_ = reply.status;
      bytes_ = std::move(bytes);
    }
    reader_->answer_changed();
  }

  bool take(std::string& out) noexcept override {
    const std::lock_guard lock(lock_);
    out += bytes_;
    return status_ != 0;
  }
  void sent(std::size_t /*bytes*/) noexcept override {}
  void reader_gone() noexcept override {}
  void describe(RequestRecord& record) const override {
    const std::lock_guard lock(lock_);
    record.status = status_;
    if (status_ == 404) record.error = actors::to_string(actors::errc::request_not_found);
  }

 private:
  const AnswerContext context_;
  const std::string id_;
  runtime::Clock& clock_;
  const std::shared_ptr<AnswerReader> reader_;
  mutable runtime::ShortLock lock_;
  std::string bytes_;
  unsigned status_ = 0;   // 0: not decided
};

}   // namespace

Connection::Progress Connection::advance() {
  DUET_ASSERT(state_ == State::waiting || state_ == State::body);
  in_used_ += reader_.feed(std::string_view(in_).substr(in_used_));
  DUET_ASSERT(in_used_ <= in_.size(), in_used_, in_.size());
  in_.erase(0, in_used_);
  in_used_ = 0;
  switch (reader_.status()) {
    case RequestReader::Status::need_more:
      if (peer_ended_) {
        close_now(false, "");   // nothing, or a part of a request
      } else if (state_ == State::waiting && transport_->needs_move(Home::reserved)) {
        // What comes next may be a question for health, which must not wait for main.
        return move_to(Home::reserved);
      }
      return Progress::wait;
    case RequestReader::Status::failed:
      refuse_and_close(make_http_error(reader_.error_status(), reader_.error_message()));
      return Progress::again;
    case RequestReader::Status::head_complete:
      return on_head();
    case RequestReader::Status::complete:
      on_request();
      return Progress::again;
  }
  DUET_UNREACHABLE();
}

Connection::Progress Connection::move_to(Home home) {
  moving_ = true;
  waiting_read_ = waiting_write_ = waiting_hangup_ = false;
  transport_->move_to(home, shared_from_this());
  return Progress::moved;
}

Connection::Progress Connection::on_head() {
  const RequestHead& head = reader_.head();
  admission_ = admit(head, context_->options.keys);
  const RouteId route = admission_.match.id;
  const bool draining = context_->draining.load(std::memory_order_acquire);
  if (!admission_.refusal && is_completion(route) && draining)
    admission_.refusal = error_reply(make_http_error(503, "the server is stopping"));
  const bool completion = is_completion(route) && !admission_.refusal;

  record_ = RequestRecord{};
  record_.route = routes()[static_cast<std::size_t>(route)].name;
  record_.key = admission_.key;
  record_.received = context_->clock.now();
  if (admission_.request_id.empty()) {
    admission_.request_id = new_id(!completion                     ? "req-"
                                   : route == RouteId::completions ? "cmpl-"
                                                                   : "chatcmpl-");
  }
  record_.request_id = admission_.request_id;

  if (!completion) {
    reader_.discard_body();
    // The client need not send what nobody reads; then the connection cannot go on.
    if (head.expect_continue || head.content_length.value_or(0) > limits::discard_bytes_max) {
      close_after_ = true;
      linger_ = true;
      on_request();
      return Progress::again;
    }
  } else if (head.expect_continue) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  }
  state_ = State::body;
  body_until_ = record_.received + limits_.body_deadline;
  const Home home = completion ? Home::main : Home::reserved;
  return transport_->needs_move(home) ? move_to(home) : Progress::again;
}

void Connection::on_request() {
  if (!reader_.head().keep_alive) close_after_ = true;
  if (admission_.refusal) return reply(*admission_.refusal);
  switch (admission_.match.id) {
    case RouteId::chat_completions:
      return start_completion(ApiKind::chat);
    case RouteId::completions:
      return start_completion(ApiKind::completions);
    case RouteId::cancel_request:
      return start_cancel();
    default:
      break;
  }
  const PageContext page{context_->service, context_->counters, context_->clock.now(),
                         context_->draining.load(std::memory_order_acquire)};
  reply(make_page(admission_.match.id, admission_.match.parameter, admission_.match.query, page));
}

AnswerContext Connection::answer_context() const {
  AnswerContext context;
  context.request_id = admission_.request_id;
  context.keep_alive = !close_after_ && !context_->draining.load(std::memory_order_acquire);
  const RequestHead& head = reader_.head();
  context.http_1_0 = head.http_1_0;
  context.head_only = head.method == Method::head;
  return context;
}

void Connection::reply(const Reply& reply) {
  const AnswerContext context = answer_context();
  close_after_ = !context.keep_alive;
  append_reply(out_, reply, context, context_->clock.wall_now());
  record_.status = reply.status;
  if (reply.status >= 400) record_.error = "http";
  record_.bytes_sent = out_.size();
  record_.first_byte = context_->clock.now();
  finish_record();
  next_request();
}

// The end of the request is unknown, or not worth waiting for.
void Connection::refuse_and_close(const HttpError& error) {
  const bool has_head = state_ == State::body;
  if (!has_head) {
    record_ = RequestRecord{};
    record_.route = routes().front().name;
    record_.received = context_->clock.now();
  }
  AnswerContext context;
  context.keep_alive = false;
  context.request_id = has_head ? admission_.request_id : new_id("req-");
  record_.request_id = context.request_id;
  const Reply reply = error_reply(error);
  append_reply(out_, reply, context, context_->clock.wall_now());
  record_.status = reply.status;
  record_.error = "http";
  record_.bytes_sent = out_.size();
  if (!has_head) admission_ = Admission{};
  finish_record();
  close_after_ = true;
  linger_ = true;
  next_request();
}

void Connection::finish_record() {
  record_.finished = context_->clock.now();
  context_->counters.count(admission_.match.id, record_.status);
  if (context_->log) context_->log(record_);
}

void Connection::next_request() {
  reader_.reset();
  state_ = State::waiting;
  head_until_ = runtime::TimePoint::max();
  idle_until_ = after(limits_.keep_alive_idle);
}

void Connection::start_completion(ApiKind kind) {
  std::vector<std::string> aliases;
  for (actors::ModelStatus& model : context_->service.models())
    aliases.push_back(std::move(model.alias));
  auto parsing = std::make_shared<Parsing>(kind, reader_.take_body(), std::move(aliases),
                                           limits_.nesting_depth);
  if (context_->offload == nullptr || parsing->body.size() < limits::offload_body_bytes_min) {
    parsing->parse();
    return submit(std::move(*parsing->result));
  }
  state_ = State::answering;
  completion_ = true;
  answer_done_ = false;
  ping_at_ = runtime::TimePoint::max();
  context_->counters.answers_open.fetch_add(1, std::memory_order_relaxed);
  parsing_ = parsing;
  context_->offload([parsing, self = shared_from_this()] {
    parsing->parse();
    parsing->done.store(true, std::memory_order_release);
    self->wake();
  });
}

void Connection::finish_parsing() {
  const std::shared_ptr<Parsing> parsing = std::move(parsing_);
  parsing_ = nullptr;
  completion_ = false;
  state_ = State::body;
  context_->counters.answers_open.fetch_sub(1, std::memory_order_relaxed);
  submit(std::move(*parsing->result));
  if (!completion_) context_->observer->answer_closed();
}

void Connection::submit(RequestResult<OpenAiRequest> result) {
  if (!result) {
    record_.error = actors::to_string(result.error().code);
    return reply(error_reply(to_http_error(result.error())));
  }
  OpenAiRequest& request = *result;
  request.generate.id = admission_.request_id;
  request.generate.key = admission_.key;

  AnswerShape shape;
  shape.kind = request.kind;
  shape.id = request.generate.id;
  shape.model = request.generate.model;
  shape.created = std::chrono::duration_cast<std::chrono::seconds>(
                      context_->clock.wall_now().time_since_epoch())
                      .count();
  shape.choices =
      request.generate.choices * static_cast<std::uint32_t>(request.generate.prompts.size());
  shape.stream = request.stream;
  shape.include_usage = request.include_usage;
  shape.logprobs = request.generate.logprobs;
  const AnswerContext context = answer_context();
  close_after_ = !context.keep_alive;
  auto stream = std::make_shared<ResponseStream>(
      std::move(shape), context, StreamMarks{limits_.stream_high_bytes, limits_.stream_low_bytes},
      context_->clock, shared_from_this());
  completion_ = true;
  context_->counters.answers_open.fetch_add(1, std::memory_order_relaxed);
  begin_answer(stream);
  context_->service.submit(std::move(request.generate), std::move(stream));
}

void Connection::start_cancel() {
  auto answer = std::make_shared<CancelAnswer>(answer_context(), admission_.match.parameter,
                                               context_->clock, shared_from_this());
  begin_answer(answer);
  context_->service.cancel(admission_.match.parameter, admission_.key, admission_.any_key,
                           [answer](actors::CancelResult result) { answer->decided(result); });
}

void Connection::begin_answer(std::shared_ptr<Answer> answer) {
  DUET_ASSERT(answer_ == nullptr);
  DUET_ASSERT(out_.empty());
  answer_ = std::move(answer);
  answer_done_ = false;
  state_ = State::answering;
  wrote_since_ping_ = false;
  ping_at_ = after(peer_ended_ ? limits::half_closed_probe : limits_.ping_interval);
}

void Connection::finish_answer() {
  answer_->describe(record_);
  finish_record();
  if (answer_->ends_connection()) close_after_ = true;
  answer_.reset();
  const bool completion = completion_;
  completion_ = false;
  next_request();
  if (!completion) return;
  context_->counters.answers_open.fetch_sub(1, std::memory_order_relaxed);
  context_->observer->answer_closed();
}

std::string Connection::new_id(std::string_view prefix) const {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string id(prefix);
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t bits = context_->random.next();
    for (unsigned shift = 0; shift < 64; shift += 4) id += hex[(bits >> shift) & 15U];
  }
  return id;
}

}   // namespace duet::http
