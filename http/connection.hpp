// connection.hpp: one client's connection: requests in, answers out, in order.
#pragma once

#include "actors/service.hpp"
#include "http/admission.hpp"
#include "http/answer.hpp"
#include "http/openai_request.hpp"
#include "http/request_reader.hpp"
#include "http/request_record.hpp"
#include "http/response_head.hpp"
#include "http/server_counters.hpp"
#include "http/server_options.hpp"
#include "http/transport.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace duet::http {

class Connection;

/// Told by connections, on any of their strands.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void connection_closed(Connection& connection) noexcept = 0;
  virtual void answer_closed() noexcept = 0;   ///< a completion ended, however.
};

/// What all connections of a server share; it outlives them.
struct ConnectionContext {
  ConnectionContext(ServerOptions server_options, runtime::Clock& the_clock,
                    runtime::Random& the_random, actors::Service& the_service)
      : options(std::move(server_options)),
        clock(the_clock),
        random(the_random),
        service(the_service) {}

  const ServerOptions options;
  runtime::Clock& clock;
  runtime::Random& random;
  actors::Service& service;
  std::function<void(std::function<void()>)> offload;   ///< for large bodies; may be empty.
  std::function<void(const RequestRecord&)> log;        ///< may be empty.
  ConnectionObserver* observer = nullptr;
  ServerCounters counters;
  std::atomic<bool> draining = false;
};

/// The logic of a connection, without I/O: it is called by its transport and calls it back.
///
/// Strand:    the transport's home; wake(), close_soon() and answer_changed() from any thread.
/// Owner:     the server; a running wait, a wake and an armed timer keep it alive too.
/// Bounds:    ServerLimits; input ahead of an answer limits::read_ahead_bytes_max.
/// Waits for: the client (deadlines of ServerLimits), the service (its own deadline).
/// Ends:      once, with connection_closed(); an answer that is under way is told reader_gone().
class Connection final : public TransportEvents,
                         public AnswerReader,
                         public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ConnectionContext> context, std::unique_ptr<Transport> transport);
  ~Connection() override;

  void open() noexcept;
  void open_refused() noexcept;   ///< instead: answers 503 to whatever comes, and ends.
  void wake() noexcept;           ///< something outside has changed, for instance draining.
  void close_soon() noexcept;     ///< ends it at once, whatever is under way.

  void on_readable() noexcept override;
  void on_writable() noexcept override;
  void on_hangup() noexcept override;
  void on_wake() noexcept override;
  void on_moved() noexcept override;
  void answer_changed() noexcept override { wake(); }

 private:
  enum class State : std::uint8_t {
    waiting,     // for a head
    body,        // of a request whose head is there
    answering,   // answer_ or parsing_ is there
    lingering,   // the last answer is out; input is read away until the client has seen it
    closed,
  };
  class DeadlineTimer;
  struct Parsing;

  // Input and output (connection.cpp).
  void run();
  void handle_outside();
  void on_peer_ended();
  [[nodiscard]] bool flush();   // false: the socket is full, or the connection closed
  [[nodiscard]] bool wants_input() const noexcept;
  void end_connection();
  void close_now(bool abort, std::string_view error);
  void arm();
  [[nodiscard]] runtime::TimePoint next_deadline() const noexcept;
  void set_deadline(runtime::TimePoint deadline);
  void on_deadline();
  void settle_timer() noexcept;
  void release_buffers();
  [[nodiscard]] runtime::TimePoint after(std::chrono::milliseconds delay) const noexcept;

  // Requests (connection_requests.cpp).
  // `moved`: this strand must not touch the connection any more.
  enum class Progress : std::uint8_t { again, wait, moved };
  [[nodiscard]] Progress advance();
  [[nodiscard]] Progress on_head();
  [[nodiscard]] Progress move_to(Home home);
  void on_request();
  void start_completion(ApiKind kind);
  void finish_parsing();
  void submit(RequestResult<OpenAiRequest> result);
  void start_cancel();
  void reply(const Reply& reply);
  void refuse_and_close(const HttpError& error);
  void begin_answer(std::shared_ptr<Answer> answer);
  void finish_answer();
  void finish_record();
  void next_request();
  [[nodiscard]] std::string new_id(std::string_view prefix) const;
  [[nodiscard]] AnswerContext answer_context() const;

  const std::shared_ptr<ConnectionContext> context_;
  const ServerLimits& limits_;
  const std::unique_ptr<Transport> transport_;

  State state_ = State::waiting;
  std::string in_;   // received; from in_used_ on not consumed
  std::size_t in_used_ = 0;
  std::string out_;   // to be sent, from out_sent_ on
  std::size_t out_sent_ = 0;
  RequestReader reader_;
  Admission admission_;
  RequestRecord record_;
  std::shared_ptr<Answer> answer_;
  std::shared_ptr<Parsing> parsing_;
  bool answer_done_ = false;   // its last byte was taken
  bool completion_ = false;    // the answer under way is one
  bool close_after_ = false;   // this answer is the last one
  bool linger_ = false;        // input may be left unread
  bool peer_ended_ = false;
  bool moving_ = false;
  bool waiting_read_ = false;
  bool waiting_write_ = false;
  bool waiting_hangup_ = false;
  bool blocked_ = false;   // out_ met a full socket
  bool wrote_since_ping_ = false;
  std::size_t lingered_bytes_ = 0;

  runtime::TimePoint idle_until_ = runtime::TimePoint::max();
  runtime::TimePoint head_until_ = runtime::TimePoint::max();
  runtime::TimePoint body_until_ = runtime::TimePoint::max();
  runtime::TimePoint blocked_until_ = runtime::TimePoint::max();
  runtime::TimePoint linger_until_ = runtime::TimePoint::max();
  runtime::TimePoint ping_at_ = runtime::TimePoint::max();

  // One coarse timer: it is moved only to an earlier time; when it expires early it is set again.
  std::unique_ptr<DeadlineTimer> timer_;
  bool armed_ = false;
  runtime::TimePoint armed_for_ = runtime::TimePoint::max();
  std::shared_ptr<Connection> kept_by_timer_;

  std::atomic<bool> woken_ = false;
  std::atomic<bool> timer_fired_ = false;
  std::atomic<bool> close_requested_ = false;
};

}   // namespace duet::http
