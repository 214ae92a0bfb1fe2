// actors.hpp: the two actors that the service got: one limits its clients, one counts.
#pragma once

#include <duet/runtime/handler_actor.hpp>
#include <duet/runtime/inspect/server.hpp>
#include <duet/runtime/system.hpp>

#include <boost/asio/io_context.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace rt = duet::runtime;
using namespace std::chrono_literals;

/// May this client have an answer now?
struct Permit {
  explicit Permit(std::string address) noexcept : client(std::move(address)) {}
  rt::Reply<bool> reply;
  std::string client;
};
/// From the limiter to itself.
struct Refill {};
/// One answer has been given.
struct Served {
  unsigned status = 0;
};
/// How many answers of each status have been given?
struct Report {
  Report() noexcept {}
  rt::Reply<std::map<unsigned, int>> reply;
};
namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<Permit> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<Refill> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<Served> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<Report> = MessageClass::bounded;
}   // namespace duet::runtime
using LimiterMessage = std::variant<Permit, Refill>;
using CounterMessage = std::variant<Served, Report>;

/// Gives each client so many answers a second. Bounds: clients_max.
class Limiter final : public rt::HandlerActor<Limiter, LimiterMessage> {
 public:
  explicit Limiter(int a_second) : a_second_(a_second) {}
  void on(Permit permit) {
    if (used_.empty()) send_after(1s, Refill{});
    if (used_.size() == clients_max) return permit.reply.fail(rt::errc::overloaded);
    permit.reply(++used_[permit.client] <= a_second_);
  }
  void on(Refill) { used_.clear(); }

 private:
  static constexpr std::size_t clients_max = 10'000;
  const int a_second_;
  std::map<std::string, int> used_;
};

class Counter final : public rt::HandlerActor<Counter, CounterMessage> {
 public:
  void on(Served served) { ++totals_[served.status]; }
  void on(Report report) { report.reply(totals_); }

 private:
  std::map<unsigned, int> totals_;
};

/// What the service holds: the system on its own io_context, and the window into it.
struct Actors {
  explicit Actors(boost::asio::io_context& io, const std::string& path)
      : system(io.get_executor()) {
    rt::inspect::ServerOptions options;
    options.path = path;
    inspection.emplace(io.get_executor(), system, options);
  }
  rt::System system;
  rt::Ref<LimiterMessage> limiter = system.spawn<Limiter>("limiter", 3);
  rt::Ref<CounterMessage> counter = system.spawn<Counter>("counter");
  std::optional<rt::inspect::Server> inspection;
};
