// response_stream.hpp: the OutputStream of one completions request, on its way to a connection.
#pragma once

#include "actors/output_stream.hpp"
#include "http/answer.hpp"
#include "http/openai_response.hpp"
#include "http/response_head.hpp"
#include "runtime/clock.hpp"
#include "runtime/short_lock.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace duet::http {

struct StreamMarks {
  std::size_t high_bytes;   ///< unsent bytes at which writable() becomes false,
  std::size_t low_bytes;    ///< and at which it becomes true again.
};

/// Two sides that meet in one buffer of framed bytes. The request's side renders outside the lock
/// and appends under it; the connection's side swaps the buffer for its empty one, so that both
/// keep their capacity and a token allocates nothing. Whatever was appended before the connection
/// looks goes out in one write.
///
/// Streamed: status and headers go out with start(); a failure before it is a status, after it an
/// event without [DONE]. Not streamed: everything goes out at the end, and a failure is a status.
class ResponseStream final : public actors::OutputStream, public Answer {
 public:
  ResponseStream(AnswerShape shape, AnswerContext context, StreamMarks marks, runtime::Clock& clock,
                 std::shared_ptr<AnswerReader> reader);

  // The request's side; see OutputStream.
  void listen(std::weak_ptr<actors::OutputListener> listener) noexcept override;
  void start(std::uint32_t prompt_tokens) noexcept override;
  void delta(const actors::OutputDelta& delta) noexcept override;
  void choice_end(std::uint32_t index, actors::FinishReason reason) noexcept override;
  void end(const actors::Usage& usage) noexcept override;
  void fail(const actors::ServiceError& error) noexcept override;
  [[nodiscard]] bool writable() const noexcept override;

  // The connection's side; see Answer.
  [[nodiscard]] bool take(std::string& out) noexcept override;
  void sent(std::size_t bytes) noexcept override;
  void reader_gone() noexcept override;
  void ping() noexcept override;
  [[nodiscard]] bool ends_connection() const noexcept override;
  void describe(RequestRecord& record) const override;

 private:
  void publish(bool last, std::string_view head = {}) noexcept;   // `head`, and scratch_ framed
  void publish_reply(const Reply& reply) noexcept;
  void append_framed(std::string_view bytes);
  [[nodiscard]] bool chunked() const noexcept { return shape_.stream && !context_.http_1_0; }

  const AnswerShape shape_;
  const AnswerContext context_;
  const StreamMarks marks_;
  runtime::Clock& clock_;
  const std::shared_ptr<AnswerReader> reader_;

  // The request's side alone, until done_ is published.
  std::optional<EventRenderer> events_;
  std::optional<BodyRenderer> body_;
  std::string scratch_;
  bool started_ = false;
  actors::Usage usage_;
  unsigned status_ = 0;
  std::string_view error_;

  // Both sides.
  mutable runtime::ShortLock lock_;
  std::string pending_;      // framed, not taken yet
  std::size_t unsent_ = 0;   // pending_, and what was taken and not sent
  bool done_ = false;        // nothing will be appended
  bool in_stream_ = false;   // events may be appended: between head and end of a stream
  std::weak_ptr<actors::OutputListener> listener_;
  std::atomic<bool> parked_ = false;   // changes under the lock
  std::atomic<bool> gone_ = false;     // changes under the lock
};

}   // namespace duet::http
