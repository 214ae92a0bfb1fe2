// connection.cpp: a connection's input, output, deadlines and end.
#include "http/connection.hpp"

#include "http/connection_parts.hpp"
#include "http/limits.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>

namespace duet::http {

Connection::Connection(std::shared_ptr<ConnectionContext> context,
                       std::unique_ptr<Transport> transport)
    : context_(std::move(context)),
      limits_(context_->options.limits),
      transport_(std::move(transport)),
      reader_({limits_.header_bytes, limits_.body_bytes}),
      timer_(std::make_unique<DeadlineTimer>(*this)) {}

Connection::~Connection() = default;

void Connection::open() noexcept {
  idle_until_ = after(limits_.keep_alive_idle);
  run();
}

void Connection::open_refused() noexcept {
  refuse_and_close(make_http_error(503, "the server has too many connections"));
  run();
}

void Connection::wake() noexcept {
  if (!woken_.exchange(true, std::memory_order_acq_rel)) transport_->post_wake(shared_from_this());
}

void Connection::close_soon() noexcept {
  close_requested_.store(true, std::memory_order_release);
  wake();
}

void Connection::on_wake() noexcept {
  woken_.exchange(false, std::memory_order_acq_rel);
  // On the way to another home the flags stay; on_moved() looks at them.
  if (!moving_) handle_outside();
}

void Connection::on_moved() noexcept {
  moving_ = false;
  handle_outside();
}

void Connection::handle_outside() {
  const bool fired = timer_fired_.exchange(false, std::memory_order_acq_rel);
  if (fired) armed_ = false;
  if (state_ == State::closed) {
    if (fired) kept_by_timer_.reset();
    return;
  }
  if (close_requested_.load(std::memory_order_acquire)) return close_now(true, "server_closed");
  const bool at_rest =
      state_ == State::waiting && !reader_.started() && in_.empty() && out_.empty();
  if (at_rest && context_->draining.load(std::memory_order_acquire)) return close_now(false, "");
  if (fired) on_deadline();
  if (parsing_ != nullptr && parsing_->done.load(std::memory_order_acquire)) finish_parsing();
  run();
}

void Connection::on_readable() noexcept {
  waiting_read_ = false;
  std::array<char, limits::read_bytes> piece;   // not zeroed: it is only read as far as filled
  for (std::uint32_t reads = 0; reads < limits::reads_a_turn_max && wants_input(); ++reads) {
    const IoResult got = transport_->read_some(piece);
    if (got.status == IoStatus::failed) return close_now(false, "reader_gone");
    if (got.status == IoStatus::ended) on_peer_ended();
    if (got.status != IoStatus::done) break;
    if (state_ == State::lingering) {
      lingered_bytes_ += got.bytes;
    } else {
      in_.append(piece.data(), got.bytes);
    }
    if (got.bytes < piece.size()) break;   // the next wait tells of more
  }
  run();
}

// The client has closed its writing side only, or is dead: then what is written next meets a reset,
// of which wait_hangup() tells. If no token is written soon, a comment is.
void Connection::on_peer_ended() {
  peer_ended_ = true;
  if (state_ != State::answering) return;
  wrote_since_ping_ = false;
  ping_at_ = std::min(ping_at_, after(limits::half_closed_probe));
}

void Connection::on_writable() noexcept {
  waiting_write_ = false;
  run();
}

void Connection::on_hangup() noexcept {
  waiting_hangup_ = false;
  close_now(false, "reader_gone");
}

bool Connection::wants_input() const noexcept {
  if (peer_ended_) return false;
  return state_ == State::lingering || in_.size() - in_used_ < limits::read_ahead_bytes_max;
}

void Connection::run() {
  std::uint32_t requests = 0;
  while (state_ != State::closed && flush()) {
    if (state_ == State::answering) {
      if (!answer_done_) break;
      finish_answer();
      continue;
    }
    if (state_ == State::lingering) {
      if (peer_ended_ || lingered_bytes_ > limits::linger_bytes_max) close_now(false, "");
      break;
    }
    if (close_after_) {
      end_connection();
      continue;
    }
    if (requests++ == limits::requests_a_turn_max) {
      wake();
      break;
    }
    const Progress progress = advance();
    if (progress == Progress::moved) return;
    if (progress == Progress::wait) break;
  }
  if (state_ != State::closed) arm();
}

bool Connection::flush() {
  for (;;) {
    if (out_sent_ == out_.size()) {
      out_.clear();
      out_sent_ = 0;
      if (answer_ == nullptr || answer_done_) return true;
      answer_done_ = answer_->take(out_);
      if (out_.empty()) return true;
    }
    if (waiting_write_) return false;
    const IoResult wrote = transport_->write_some(std::string_view(out_).substr(out_sent_));
    if (wrote.status == IoStatus::would_block) {
      if (!blocked_) blocked_until_ = after(limits_.slow_reader);
      blocked_ = true;
      waiting_write_ = true;
      transport_->wait_writable(shared_from_this());
      return false;
    }
    if (wrote.status != IoStatus::done) {
      close_now(false, "reader_gone");
      return false;
    }
    out_sent_ += wrote.bytes;
    context_->counters.writes.fetch_add(1, std::memory_order_relaxed);
    context_->counters.bytes_written.fetch_add(wrote.bytes, std::memory_order_relaxed);
    blocked_ = false;   // a reader that still reads has its time anew
    wrote_since_ping_ = true;
    if (answer_ == nullptr) continue;
    // Nothing else is written while an answer is under way.
    if (record_.bytes_sent == 0) record_.first_byte = context_->clock.now();
    record_.bytes_sent += wrote.bytes;
    answer_->sent(wrote.bytes);
  }
}

void Connection::end_connection() {
  if (!linger_ || peer_ended_) return close_now(false, "");
  // Closing with unread input resets the connection, and a reset overtakes the answer.
  transport_->shutdown_write();
  state_ = State::lingering;
  linger_until_ = after(limits_.linger);
  lingered_bytes_ = 0;
  in_.clear();
  in_used_ = 0;
}

void Connection::close_now(bool abort, std::string_view error) {
  if (state_ == State::closed) return;
  const bool was_answering = state_ == State::answering;
  state_ = State::closed;
  transport_->close(abort);
  if (was_answering) {
    // Counted before anybody is told, so that who is told finds it counted.
    ServerCounters& counters = context_->counters;
    if (error == "reader_gone") counters.readers_gone.fetch_add(1, std::memory_order_relaxed);
    if (completion_) counters.answers_open.fetch_sub(1, std::memory_order_relaxed);
    if (answer_ != nullptr) {
      if (!answer_done_) answer_->reader_gone();
      answer_->describe(record_);
    }
    record_.error = error;
    finish_record();
    if (completion_) context_->observer->answer_closed();
  }
  answer_.reset();   // it refers back to this connection
  parsing_.reset();
  reader_.reset();
  std::string().swap(in_);
  std::string().swap(out_);
  settle_timer();
  context_->observer->connection_closed(*this);
}

// Nothing is read ahead of need, so a connection that rests holds no buffer.
void Connection::release_buffers() {
  if (in_.empty() && in_.capacity() > limits::idle_buffer_bytes_max) std::string().swap(in_);
  if (out_.empty() && out_.capacity() > limits::idle_buffer_bytes_max) std::string().swap(out_);
}

void Connection::arm() {
  if (wants_input()) {
    if (!waiting_read_) {
      waiting_read_ = true;
      transport_->wait_readable(shared_from_this());
    }
  } else if (state_ == State::answering && !waiting_hangup_) {
    waiting_hangup_ = true;
    transport_->wait_hangup(shared_from_this());
  }
  if (state_ == State::waiting) {
    if (!reader_.started()) {
      release_buffers();
    } else if (head_until_ == runtime::TimePoint::max()) {
      head_until_ = after(limits_.header_deadline);
    }
  }
  set_deadline(next_deadline());
}

runtime::TimePoint Connection::after(std::chrono::milliseconds delay) const noexcept {
  return context_->clock.now() + delay;
}

runtime::TimePoint Connection::next_deadline() const noexcept {
  if (state_ == State::lingering) return linger_until_;
  if (blocked_) return blocked_until_;
  switch (state_) {
    case State::waiting:
      return reader_.started() ? head_until_ : idle_until_;
    case State::body:
      return body_until_;
    case State::answering:
      return ping_at_;
    case State::lingering:
    case State::closed:
      break;
  }
  return runtime::TimePoint::max();
}

void Connection::set_deadline(runtime::TimePoint deadline) {
  if (deadline == runtime::TimePoint::max()) return;
  if (armed_) {
    if (deadline >= armed_for_) return;
    // When it cannot be stopped it has expired: on_wake() is on its way and sets it anew.
    if (!context_->clock.cancel(*timer_)) return;
  }
  armed_ = true;
  armed_for_ = deadline;
  if (kept_by_timer_ == nullptr) kept_by_timer_ = shared_from_this();
  context_->clock.arm(*timer_, deadline);
}

// A timer that is just expiring still needs this object: its on_wake() lets go of it.
void Connection::settle_timer() noexcept {
  if (armed_ && !context_->clock.cancel(*timer_)) return;
  armed_ = false;
  kept_by_timer_.reset();
}

void Connection::on_deadline() {
  if (context_->clock.now() < next_deadline()) return;
  if (state_ == State::lingering) return close_now(false, "");
  if (blocked_) {
    context_->counters.readers_too_slow.fetch_add(1, std::memory_order_relaxed);
    return close_now(true, "reader_too_slow");
  }
  if (state_ == State::answering) {
    if (!wrote_since_ping_ && answer_ != nullptr) answer_->ping();
    wrote_since_ping_ = false;
    ping_at_ = after(limits_.ping_interval);
  } else if (state_ == State::body || reader_.started()) {
    refuse_and_close(make_http_error(408, "the request did not arrive in time"));
  } else {
    close_now(false, "");
  }
}

}   // namespace duet::http
