// response_stream.cpp: rendering on one side, taking on the other.
#include "http/response_stream.hpp"

#include "http/json_text.hpp"
#include "runtime/assert.hpp"

#include <mutex>
#include <utility>

namespace duet::http {

namespace {

constexpr std::string_view last_chunk = "0\r\n\r\n";
constexpr std::string_view comment = ": ping\n\n";

}   // namespace

ResponseStream::ResponseStream(AnswerShape shape, AnswerContext context, StreamMarks marks,
                               runtime::Clock& clock, std::shared_ptr<AnswerReader> reader)
    : shape_(std::move(shape)),
      context_(std::move(context)),
      marks_(marks),
      clock_(clock),
      reader_(std::move(reader)) {
  if (shape_.stream) {
    events_.emplace(shape_);
  } else {
    body_.emplace(shape_);
  }
}

void ResponseStream::listen(std::weak_ptr<actors::OutputListener> listener) noexcept {
  std::shared_ptr<actors::OutputListener> told;
  {
    const std::lock_guard lock(lock_);
    listener_ = std::move(listener);
    if (gone_ && !done_) told = listener_.lock();
  }
  if (told != nullptr) told->on_reader_gone();
}

void ResponseStream::start(std::uint32_t prompt_tokens) noexcept {
  DUET_ASSERT(!started_);
  started_ = true;
  usage_.prompt_tokens = prompt_tokens;
  if (!shape_.stream || gone_) return;
  status_ = 200;
  std::string head;
  append_stream_head(head, context_, clock_.wall_now());
  if (shape_.kind == ApiKind::chat) {
    for (std::uint32_t index = 0; index < shape_.choices; ++index) events_->role(scratch_, index);
  }
  publish(false, head);
}

void ResponseStream::delta(const actors::OutputDelta& delta) noexcept {
  DUET_ASSERT(started_);
  if (gone_.load(std::memory_order_relaxed)) return;
  if (!shape_.stream) return body_->delta(delta);
  events_->delta(scratch_, delta);
  if (!scratch_.empty()) publish(false);
}

void ResponseStream::choice_end(std::uint32_t index, actors::FinishReason reason) noexcept {
  DUET_ASSERT(started_);
  DUET_ASSERT(index < shape_.choices, index, shape_.choices);
  if (gone_.load(std::memory_order_relaxed)) return;
  if (!shape_.stream) return body_->choice_end(index, reason);
  events_->choice_end(scratch_, index, reason);
  publish(false);
}

void ResponseStream::end(const actors::Usage& usage) noexcept {
  DUET_ASSERT(started_);
  usage_ = usage;
  if (!shape_.stream) {
    Reply reply;
    reply.body = body_->finish(usage);
    status_ = reply.status;
    return publish_reply(reply);
  }
  if (shape_.include_usage) events_->usage(scratch_, usage);
  EventRenderer::done(scratch_);
  publish(true);
}

void ResponseStream::fail(const actors::ServiceError& error) noexcept {
  error_ = actors::to_string(error.code);
  const HttpError told = to_http_error(error);
  if (!shape_.stream || !started_) {
    status_ = told.status;
    return publish_reply(error_reply(told));
  }
  EventRenderer::error(scratch_, told);
  publish(true);
}

bool ResponseStream::writable() const noexcept {
  return !parked_.load(std::memory_order_relaxed);
}

void ResponseStream::append_framed(std::string_view bytes) {
  const std::size_t before = pending_.size();
  if (chunked()) {
    append_hex(pending_, bytes.size());
    pending_ += "\r\n";
    pending_ += bytes;
    pending_ += "\r\n";
  } else {
    pending_ += bytes;
  }
  unsent_ += pending_.size() - before;
}

void ResponseStream::publish(bool last, std::string_view head) noexcept {
  bool idle = false;
  {
    const std::lock_guard lock(lock_);
    idle = pending_.empty();
    if (!gone_) {
      pending_ += head;
      unsent_ += head.size();
      in_stream_ = true;
      if (!scratch_.empty()) append_framed(scratch_);
      if (last && chunked()) {
        pending_ += last_chunk;
        unsent_ += last_chunk.size();
      }
      if (unsent_ >= marks_.high_bytes) parked_.store(true, std::memory_order_relaxed);
    }
    if (last) {
      in_stream_ = false;
      done_ = true;
    }
  }
  scratch_.clear();
  // Whoever found the buffer empty has told the connection; it takes all there is when it comes.
  if (idle || last) reader_->answer_changed();
}

void ResponseStream::publish_reply(const Reply& reply) noexcept {
  std::string bytes;
  append_reply(bytes, reply, context_, clock_.wall_now());
  {
    const std::lock_guard lock(lock_);
    DUET_ASSERT(!done_);
    if (!gone_) {
      unsent_ += bytes.size();
      pending_ = std::move(bytes);
    }
    done_ = true;
  }
  reader_->answer_changed();
}

bool ResponseStream::take(std::string& out) noexcept {
  const std::lock_guard lock(lock_);
  if (out.empty()) {
    out.swap(pending_);
  } else {
    out += pending_;
    pending_.clear();
  }
  return done_;
}

void ResponseStream::sent(std::size_t bytes) noexcept {
  std::shared_ptr<actors::OutputListener> told;
  {
    const std::lock_guard lock(lock_);
    DUET_ASSERT(bytes <= unsent_, bytes, unsent_);
    unsent_ -= bytes;
    if (parked_.load(std::memory_order_relaxed) && unsent_ <= marks_.low_bytes) {
      parked_.store(false, std::memory_order_relaxed);
      if (!done_) told = listener_.lock();
    }
  }
  if (told != nullptr) told->on_writable();
}

void ResponseStream::reader_gone() noexcept {
  std::shared_ptr<actors::OutputListener> told;
  {
    const std::lock_guard lock(lock_);
    if (gone_) return;
    gone_ = true;
    parked_.store(false, std::memory_order_relaxed);
    std::string().swap(pending_);
    if (!done_) told = listener_.lock();
  }
  if (told != nullptr) told->on_reader_gone();
}

void ResponseStream::ping() noexcept {
  bool idle = false;
  {
    const std::lock_guard lock(lock_);
    if (!in_stream_ || gone_ || !pending_.empty()) return;
    idle = true;
    append_framed(comment);
  }
  if (idle) reader_->answer_changed();
}

bool ResponseStream::ends_connection() const noexcept {
  return shape_.stream && context_.http_1_0;
}

void ResponseStream::describe(RequestRecord& record) const {
  const std::lock_guard lock(lock_);
  record.model = shape_.model;
  record.stream = shape_.stream;
  if (!done_) return;   // the other side may still write these
  record.status = status_;
  record.error = error_;
  record.prompt_tokens = usage_.prompt_tokens;
  record.completion_tokens = usage_.completion_tokens;
}

}   // namespace duet::http
