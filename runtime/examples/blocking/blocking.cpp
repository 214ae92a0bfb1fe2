// blocking.cpp: a library that blocks and is for one thread only, behind an actor of an io_context
// that it never holds up.
//
//   blocking --once   reads eight records, checks them, ends; exit code 0 if all was right
#include <duet/runtime/async_ask.hpp>
#include <duet/runtime/blocking.hpp>
#include <duet/runtime/handler_actor.hpp>
#include <duet/runtime/self.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <variant>

namespace rt = duet::runtime;
using namespace std::chrono_literals;

namespace vendor {

/// As such libraries are: each call blocks, and two at a time are not allowed.
class Store {
 public:
  std::string read(int key) {
    std::this_thread::sleep_for(5ms);
    return "record " + std::to_string(key);
  }
};

}   // namespace vendor

/// To the store. Bounded: refused when too many wait.
struct Read {
  explicit Read(int number) noexcept : key(number) {}
  rt::Reply<std::string> reply;
  int key;
};
/// From the completion thread; no text if the call was never made.
struct ReadDone {
  ReadDone(std::uint64_t call, std::optional<std::string> result) noexcept
      : id(call), text(std::move(result)) {}
  std::uint64_t id;
  std::optional<std::string> text;
};
struct Never {};
template <>
inline constexpr rt::MessageClass rt::message_class<Read> = rt::MessageClass::bounded;
template <>
inline constexpr rt::MessageClass rt::message_class<ReadDone> = rt::MessageClass::guaranteed;
template <>
inline constexpr rt::MessageClass rt::message_class<Never> = rt::MessageClass::guaranteed;

using StoreMessage = std::variant<Read, ReadDone>;

class Store final : public rt::HandlerActor<Store, StoreMessage> {
 public:
  explicit Store(rt::CompletionSource& source) : lane_(source.open_lane("store", waiting_max)) {}

  void on(Read read) {
    const std::uint64_t id = ++last_id_;
    // By value: a call that never comes back keeps what it uses, not us.
    auto call = [id, key = read.key, vendor = vendor_] { return ReadDone(id, vendor->read(key)); };
    auto unmade = [id] { return ReadDone(id, std::nullopt); };
    if (!rt::call_blocking(*lane_, self(), std::move(call), unmade)) {
      read.reply.fail(rt::errc::overloaded);
      return;
    }
    waiting_.emplace(id, std::move(read.reply));
    set_waits_for("the vendor's store");
  }

  void on(ReadDone done) {
    auto reply = waiting_.extract(done.id);
    if (done.text) reply.mapped()(std::move(*done.text));   // else it says receiver_gone
    if (waiting_.empty()) set_waits_for(nullptr);
  }

 private:
  static constexpr std::size_t waiting_max = 64;

  std::shared_ptr<vendor::Store> vendor_ = std::make_shared<vendor::Store>();
  std::unique_ptr<rt::CompletionLane> lane_;
  std::map<std::uint64_t, rt::Reply<std::string>> waiting_;
  std::uint64_t last_id_ = 0;
};

/// Asks for all records, then computes something that would hold up the loop, on a compute thread.
rt::Behaviour reader(rt::Self<std::variant<Never>> self, rt::Ref<StoreMessage> store, int* status) {
  std::string all;
  for (int key = 0; key < 8; ++key) {
    Read read(key);
    const auto text = co_await self.ask(store, std::move(read), 10s);
    if (text.has_error()) {
      std::cerr << "record " << key << ": " << text.error().error().message() << "\n";
      co_return;
    }
    all += text.value();
  }
  const auto sum = [all] { return std::accumulate(all.begin(), all.end(), 0); };
  const auto computed = co_await self.offload(sum);
  std::cout << all.size() << " characters, sum " << computed.value() << "\n";
  if (computed.value() == std::accumulate(all.begin(), all.end(), 0)) *status = EXIT_SUCCESS;
}

/// What the host did before: a handler that wants its turn all the time.
class Heartbeat {
 public:
  explicit Heartbeat(boost::asio::io_context& io) : timer_(io) {}
  void beat(rt::Ref<std::variant<Never>> while_alive) {
    timer_.expires_after(1ms);
    timer_.async_wait([this, while_alive](boost::system::error_code) {
      ++beats_;
      if (while_alive.alive()) beat(while_alive);
    });
  }
  [[nodiscard]] int beats() const noexcept { return beats_; }

 private:
  boost::asio::steady_timer timer_;
  int beats_ = 0;
};

int main() {
  int status = EXIT_FAILURE;
  boost::asio::io_context io;
  rt::System system(io.get_executor());
  const auto store = system.spawn<Store>("store", system.completions());
  const auto asks = system.spawn("reader", reader, store, &status);
  Heartbeat heartbeat(io);
  heartbeat.beat(asks);
  io.run();   // returns when no call, ask, timer or computation is pending
  std::cout << "the host's own handler ran " << heartbeat.beats() << " times meanwhile\n";
  return heartbeat.beats() > 1 ? status : EXIT_FAILURE;
}
