// memory_transport.hpp: a connection in memory under a clock that a test moves: one thread, no
// sockets, no waiting.
#pragma once

#include "http/connection.hpp"
#include "runtime/timer_heap.hpp"
#include "tests/http/client.hpp"
#include "tests/http/fake_service.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace duet::http::tests {

class ManualClock final : public runtime::Clock {
 public:
  [[nodiscard]] runtime::TimePoint now() const noexcept override { return now_; }
  [[nodiscard]] runtime::WallTime wall_now() const noexcept override {
    return runtime::WallTime(std::chrono::seconds(1700000000));
  }
  void arm(runtime::Timer& timer, runtime::TimePoint due) override { heap_.arm(timer, due); }
  bool cancel(runtime::Timer& timer) noexcept override { return heap_.remove(timer); }
  [[nodiscard]] std::size_t armed() const { return heap_.size(); }
  /// True: a timer expired.
  bool step(runtime::TimePoint until) {
    runtime::Timer* const first = heap_.earliest();
    if (first == nullptr || first->due() > until) {
      now_ = until;
      return false;
    }
    now_ = std::max(now_, first->due());
    heap_.pop_due(now_)->expired();
    return true;
  }

 private:
  runtime::TimePoint now_{std::chrono::hours(1)};
  runtime::TimerHeap heap_;
};

class CountingRandom final : public runtime::Random {
 public:
  [[nodiscard]] std::uint64_t next() noexcept override { return ++value_; }

 private:
  std::uint64_t value_ = 0;
};

/// The two ends of the wire as a test sees them.
struct Wire {
  std::string to_server;
  bool client_ended = false;
  bool client_reset = false;
  bool client_dead = false;   // ended, and its kernel answers the next byte with a reset
  std::string from_server;
  std::size_t room = std::numeric_limits<std::size_t>::max();   // of the client's window
  std::size_t writes = 0;
  bool write_shut = false;
  bool closed = false;
  bool aborted = false;
  Home home = Home::reserved;
  std::vector<Home> moves;
};

class MemoryTransport final : public Transport {
 public:
  explicit MemoryTransport(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}

  IoResult read_some(std::span<char> into) noexcept override {
    check_home();
    // As a kernel does: an end that came stays an end, whatever comes after it.
    if (wire_->client_reset && !wire_->client_ended) return {IoStatus::failed};
    if (wire_->to_server.empty())
      return {wire_->client_ended ? IoStatus::ended : IoStatus::would_block};
    const std::size_t size = wire_->to_server.copy(into.data(), into.size());
    wire_->to_server.erase(0, size);
    return {IoStatus::done, size};
  }
  IoResult write_some(std::string_view bytes) noexcept override {
    check_home();
    if (wire_->client_reset) return {IoStatus::failed};
    const std::size_t size = std::min(bytes.size(), wire_->room);
    if (size == 0) return {IoStatus::would_block};
    wire_->from_server += bytes.substr(0, size);
    wire_->room -= size;
    ++wire_->writes;
    if (wire_->client_dead) wire_->client_reset = true;   // what a dead client's kernel answers
    return {IoStatus::done, size};
  }
  void wait_readable(std::shared_ptr<TransportEvents> events) noexcept override {
    set(readable_, std::move(events));
  }
  void wait_writable(std::shared_ptr<TransportEvents> events) noexcept override {
    set(writable_, std::move(events));
  }
  void wait_hangup(std::shared_ptr<TransportEvents> events) noexcept override {
    set(hangup_, std::move(events));
  }
  void post_wake(std::shared_ptr<TransportEvents> events) noexcept override {
    set(wake_, std::move(events));
  }
  [[nodiscard]] bool needs_move(Home home) const noexcept override { return home != wire_->home; }
  void move_to(Home home, std::shared_ptr<TransportEvents> events) noexcept override {
    check_home();
    readable_ = writable_ = hangup_ = nullptr;
    wire_->home = home;
    wire_->moves.push_back(home);
    set(moved_, std::move(events));
  }
  void shutdown_write() noexcept override { wire_->write_shut = true; }
  void close(bool abort) noexcept override {
    wire_->closed = true;
    wire_->aborted = abort;
    readable_ = writable_ = hangup_ = nullptr;
  }

  /// Delivers one event that is due; false if none is.
  bool deliver() {
    const bool input = !wire_->to_server.empty() || wire_->client_ended || wire_->client_reset;
    if (take(wake_, true, &TransportEvents::on_wake)) return true;
    if (take(moved_, true, &TransportEvents::on_moved)) return true;
    if (take(readable_, input, &TransportEvents::on_readable)) return true;
    if (take(writable_, wire_->room > 0 || wire_->client_reset, &TransportEvents::on_writable))
      return true;
    return take(hangup_, wire_->client_reset, &TransportEvents::on_hangup);
  }

 private:
  using Waiter = std::shared_ptr<TransportEvents>;

  void set(Waiter& waiter, Waiter events) noexcept {
    BOOST_TEST(waiter == nullptr);   // one wait of a kind at a time
    waiter = std::move(events);
  }
  bool take(Waiter& waiter, bool due, void (TransportEvents::*event)() noexcept) {
    if (waiter == nullptr || !due) return false;
    const Waiter events = std::exchange(waiter, nullptr);
    ((*events).*event)();
    return true;
  }
  void check_home() const { BOOST_TEST(moved_ == nullptr); }

  const std::shared_ptr<Wire> wire_;
  Waiter readable_, writable_, hangup_, wake_, moved_;
};

/// One connection over a fake service.
class MemoryServer final : public ConnectionObserver {
 public:
  explicit MemoryServer(ServerOptions options = {})
      : context(std::make_shared<ConnectionContext>(std::move(options), clock, random, service)) {
    context->observer = this;
    context->log = [this](const RequestRecord& record) { records.push_back(record); };
  }
  ~MemoryServer() override {
    if (connection == nullptr) return;
    connection->close_soon();
    settle();
    const std::weak_ptr<Connection> gone = connection;
    transport_ = nullptr;
    connection.reset();
    BOOST_TEST(gone.expired());   // nothing keeps a closed connection
    BOOST_TEST(clock.armed() == 0U);
    BOOST_TEST(closed == 1);
  }

  void open() {
    auto transport = std::make_unique<MemoryTransport>(wire);
    transport_ = transport.get();
    connection = std::make_shared<Connection>(context, std::move(transport));
    connection->open();
    settle();
  }
  void settle() {
    while (transport_->deliver()) {
    }
  }
  void send(std::string_view bytes) {
    wire->to_server += bytes;
    settle();
  }
  void advance(std::chrono::milliseconds by) {
    const runtime::TimePoint until = clock.now() + by;
    while (clock.step(until)) settle();
    settle();
  }
  [[nodiscard]] std::string take_output() { return std::exchange(wire->from_server, {}); }

  void connection_closed(Connection& /*connection*/) noexcept override { ++closed; }
  void answer_closed() noexcept override { ++answers_closed; }

  ManualClock clock;
  CountingRandom random;
  FakeService service;
  std::shared_ptr<Wire> wire = std::make_shared<Wire>();
  std::shared_ptr<ConnectionContext> context;
  std::shared_ptr<Connection> connection;
  std::vector<RequestRecord> records;
  int closed = 0;
  int answers_closed = 0;

 private:
  MemoryTransport* transport_ = nullptr;
};

/// Counts what a stream tells.
struct CountingListener final : actors::OutputListener {
  void on_writable() noexcept override { ++writable; }
  void on_reader_gone() noexcept override { ++gone; }
  int writable = 0;
  int gone = 0;
};

/// Bodies of chat requests, streamed and not.
inline const std::string chat_stream =
    R"({"model":"model-a","stream":true,"messages":[{"role":"user","content":"hi"}]})";
inline const std::string chat_whole =
    R"({"model":"model-a","messages":[{"role":"user","content":"hi"}]})";

/// How often `what` stands in `text`.
inline std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

/// Keeps the stream of each request for the test to write to.
struct HeldStreams {
  explicit HeldStreams(FakeService& service) {
    service.on_submit(
        [this](actors::GenerateRequest request, std::shared_ptr<actors::OutputStream> stream) {
          stream->listen(listener);
          requests.push_back(std::move(request));
          streams.push_back(std::move(stream));
        });
  }
  void delta(std::string_view text, std::uint32_t index = 0) {
    actors::OutputDelta delta;
    delta.index = index;
    delta.text = text;
    streams.back()->delta(delta);
  }
  std::shared_ptr<CountingListener> listener = std::make_shared<CountingListener>();
  std::vector<actors::GenerateRequest> requests;
  std::vector<std::shared_ptr<actors::OutputStream>> streams;
};

/// A connection in the middle of a streamed answer of which nothing has been delivered yet.
struct OpenStream {
  explicit OpenStream(ServerOptions options = {})
      : server(std::move(options)), held(server.service) {
    server.open();
    server.send(post("/v1/chat/completions", chat_stream));
    held.streams.back()->start(3);
  }
  MemoryServer server;
  HeldStreams held;
};

}   // namespace duet::http::tests
