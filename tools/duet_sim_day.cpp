// duet_sim_day.cpp: a day of a thousand actors that sleep, send and ask.
#include "runtime/handler_actor.hpp"
#include "runtime/self.hpp"
#include "runtime/simulation/simulation.hpp"
#include "runtime/system.hpp"
#include "tools/duet_sim_workload.hpp"

#include <chrono>
#include <string>
#include <variant>
#include <vector>

namespace duet::tools {
namespace {

/// From anybody. Class: bounded.
struct Greeting {
  std::uint64_t from = 0;
};
/// From anybody, who wants to be answered. Class: bounded.
struct Inquiry {
  Inquiry() noexcept {}   // NOLINT(modernize-use-equals-default): no aggregate
  runtime::Reply<std::uint64_t> reply;
};
/// From itself. Class: guaranteed; one is on its way at a time.
struct Tick {};

using CitizenMessage = std::variant<Greeting, Inquiry, Tick>;

}   // namespace
}   // namespace duet::tools

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<tools::Greeting> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::Inquiry> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::Tick> = MessageClass::guaranteed;
}   // namespace duet::runtime

namespace duet::tools {

using namespace std::chrono_literals;   // NOLINT(google-build-using-namespace): 5s reads well
using runtime::Behaviour;
using runtime::Duration;
using runtime::Ref;
using runtime::Self;
using runtime::simulation::RunEnd;

namespace {

constexpr std::size_t citizens = 1000;       // half of them coroutines, half handler actors
constexpr std::uint64_t inquiry_every = 8;   // of so many messages one is an ask

struct Town {
  std::vector<Ref<CitizenMessage>> all;
  std::uint64_t answers = 0;
  std::uint64_t failures = 0;
};

Duration pause(runtime::Random& random) {
  return 500ms + Duration(random.below(9'500'000'000));
}

/// Sends or asks, then hears what comes until its pause is over.
Behaviour citizen(Self<CitizenMessage> self, Town* town) {
  std::uint64_t heard = 0;
  for (;;) {
    const Ref<CitizenMessage> other = town->all[self.random().below(citizens)];
    if (self.random().below(inquiry_every) != 0) {
      if (!other.send(Greeting{heard})) ++town->failures;
    } else if (other != self.ref()) {
      Inquiry inquiry;
      const auto answer = co_await self.ask(other, std::move(inquiry), 1h);
      ++(answer.has_value() ? town->answers : town->failures);
    }
    const runtime::TimePoint until = self.now() + pause(self.random());
    while (self.now() < until) {
      auto message = co_await self.receive_for(until - self.now());
      if (!message.has_value()) break;
      ++heard;
      if (auto* inquiry = std::get_if<Inquiry>(&*message)) inquiry->reply(heard);
    }
  }
}

class Clerk final : public runtime::HandlerActor<Clerk, CitizenMessage> {
 public:
  explicit Clerk(Town& town) : town_(town) {}
  void started() { on(Tick{}); }
  void on(Greeting) { ++heard_; }
  void on(Inquiry inquiry) { inquiry.reply(++heard_); }
  void on(Tick) {
    const Ref<CitizenMessage> other = town_.all[random().below(citizens)];
    if (random().below(inquiry_every) != 0) {
      if (!other.send(Greeting{heard_})) ++town_.failures;
    } else {
      ask(other, Inquiry(), 1h, [this](const runtime::AskResult<std::uint64_t>& answer) {
        ++(answer.has_value() ? town_.answers : town_.failures);
      });
    }
    send_after(pause(random()), Tick{});
  }

 private:
  Town& town_;
  std::uint64_t heard_ = 0;
};

}   // namespace

SimOutcome run_day(const SimOrder& order) {
  runtime::simulation::SimulationOptions options;
  options.seed = order.seed;
  runtime::simulation::Simulation simulation(options);
  runtime::System system(simulation.executor(), simulation.system_options("day"));
  Town town;
  for (std::size_t i = 0; i < citizens; ++i) {
    town.all.push_back(i % 2 == 0 ? system.spawn("citizen", citizen, &town)
                                  : system.spawn<Clerk>("clerk", town));
  }
  const RunEnd end = simulation.run_for(order.day);

  SimOutcome outcome;
  if (end != RunEnd::time_over) {
    outcome.violations.push_back(std::string("liveness: the town fell ") + to_string(end));
  }
  if (town.failures > 0) {
    outcome.violations.push_back("delivery: " + std::to_string(town.failures) +
                                 " messages or answers got lost");
  }
  outcome.hash = simulation.hash();
  outcome.simulated = simulation.now().time_since_epoch();
  outcome.activations = simulation.activations();
  outcome.handled = simulation.handled();
  outcome.faults = "none";
  outcome.figures =
      std::to_string(simulation.timers()) + " timers, " + std::to_string(town.answers) + " answers";
  return outcome;
}

}   // namespace duet::tools
