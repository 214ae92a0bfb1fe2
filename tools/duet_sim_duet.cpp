// duet_sim_duet.cpp: the application on the simulated board: every request ends once, and right.
#include "actors/duet_service.hpp"
#include "actors/prompt_tokens.hpp"
#include "device/calrt/combined_adapter.hpp"
#include "device/emulator/made_up_tokens.hpp"
#include "device/package/tokenizer_metadata.hpp"
#include "device/package/validator.hpp"
#include "runtime/simulation/simulation.hpp"
#include "runtime/system.hpp"
#include "text/token_decoder.hpp"
#include "tools/duet_sim_board.hpp"
#include "tools/duet_sim_reader.hpp"
#include "tools/duet_sim_workload.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace duet::tools {

using namespace std::chrono_literals;   // NOLINT(google-build-using-namespace): 5s reads well
using device::emulator::Fault;
using device::emulator::FaultPoint;
using device::emulator::FaultSite;
using runtime::Duration;
using runtime::simulation::FaultKind;
using runtime::simulation::Faults;
using runtime::simulation::RunEnd;
using runtime::simulation::SimRandom;
using runtime::simulation::Simulation;
using runtime::simulation::SimulationOptions;

namespace {

/// A package and what its models answer, read once a process.
struct Models {
  std::shared_ptr<SimPackage> read = std::make_shared<SimPackage>();
  std::map<std::string, actors::ModelProfile> profiles;

  [[nodiscard]] std::string answer(const actors::GenerateRequest& request) const {
    const actors::ModelProfile& profile = profiles.at(request.model);
    const auto prepared = actors::prepare_prompts(request, profile);
    if (!prepared) throw std::logic_error("the workload made a wrong request");
    const auto tokens =
        device::emulator::made_up_answer(request.model, *prepared->prompts.at(0),
                                         read->ordinary_of(request.model), *request.tokens_max);
    text::TokenDecoder decoder(profile.tokenizer, text::DecodeFrom::continuation);
    std::string out;
    for (const std::uint32_t token : tokens) static_cast<void>(decoder.push(token, out));
    decoder.flush(out);
    return out;
  }
};

Models read_models(const std::string& directory) {
  device::ValidateOptions options;
  options.allow_unsigned = true;
  device::ValidationReport report = device::validate_package(directory, options);
  if (report.package == nullptr) throw std::runtime_error("no valid package in " + directory);
  Models models;
  models.read->package = report.package;
  for (const device::Model& model : report.package->manifest().models) {
    const std::string_view document = report.package->tokenizer(model.name);
    models.read->ordinary.emplace_back(model.name,
                                       device::ordinary_tokens(document, model.tokenizer).value());
    actors::ModelProfile profile{
        model.name, text::Tokenizer::from_json(document).value(), {}, 4096};
    profile.chat = text::ChatTemplate::create(profile.tokenizer).value();
    models.profiles.emplace(model.name, std::move(profile));
  }
  return models;
}

const Models& models_of(const std::string& directory) {
  static std::map<std::string, Models> all;
  const auto found = all.find(directory);
  return found != all.end() ? found->second
                            : all.emplace(directory, read_models(directory)).first->second;
}

/// What the board does wrong: each kind off in half of all runs.
class BoardFaults final : public device::emulator::FaultHook {
 public:
  BoardFaults(std::uint64_t seed, bool hung_jobs) : random_(seed, "board") {
    for (double* const kind : {&busy_, &exception_, &spoiled_, &never_ends_, &configure_}) {
      const bool on = random_.below(2) == 1;
      const double probability = random_.magnitude(0.0005, 0.02);
      if (on) *kind = probability;
    }
    if (!hung_jobs) never_ends_ = 0;
  }
  Fault consult(const FaultSite& site) noexcept override {
    const Fault fault = draw(site);
    if (fault.effect == Fault::Effect::none) return fault;
    ++injected_;
    if (on_fault) on_fault(site, fault);
    return fault;
  }
  void end() noexcept { on_ = false; }
  [[nodiscard]] std::uint64_t injected() const noexcept { return injected_; }

  std::function<void(const FaultSite& site, const Fault& fault)> on_fault;

 private:
  Fault draw(const FaultSite& site) noexcept {
    if (!on_) return {};
    switch (site.point) {
      case FaultPoint::submit:
        return random_.chance(busy_) ? Fault::fail(device::errc::device_busy) : Fault{};
      case FaultPoint::configure:
        return random_.chance(configure_) ? Fault::fail(device::errc::out_of_memory) : Fault{};
      case FaultPoint::compute_start:
        if (random_.chance(exception_)) return Fault::fail(device::errc::ccu_exception);
        if (random_.chance(spoiled_)) return Fault::spoil_output();
        if (random_.chance(never_ends_)) return Fault::never_ends();
        return {};
      default:
        return {};
    }
  }
  SimRandom random_;
  double busy_ = 0;
  double exception_ = 0;
  double spoiled_ = 0;
  double never_ends_ = 0;
  double configure_ = 0;
  bool on_ = true;
  std::uint64_t injected_ = 0;
};

struct Client {
  std::shared_ptr<Reader> reader;
  std::string id;
  std::string expected;
  std::uint32_t choices = 1;
  bool submitted = false;
  int cancels = 0;
  int cancels_answered = 0;
};

SimulationOptions simulation_options(const SimOrder& order) {
  SimulationOptions options;
  options.seed = order.seed;
  options.faults = Faults::swarm(order.seed);
  if (!order.hung_jobs) {
    // Late ones come within the 30 s that a recovery waits for them.
    options.faults.set(FaultKind::call_lost, 0);
    options.call_times.late_max = 8s;
  }
  return options;
}

/// The board, the application and its clients.
class Stage {
 public:
  Stage(const SimOrder& order, const Models& models)
      : order_(order),
        models_(models),
        simulation_(simulation_options(order)),
        faults_(order.seed, order.hung_jobs),
        board_(simulation_, models.read, &faults_) {
    faults_.on_fault = [this](const FaultSite& site, const Fault& fault) {
      tell("fault " + std::to_string(static_cast<int>(fault.effect)) + " of chip " +
           std::to_string(site.chip) + ", job " + std::to_string(site.job));
    };
    simulation_.completions().let_calls_block();
    // A life-cycle call that is lost ends the process, by design; nothing is left to look at.
    simulation_.completions().spare("board-");
    adapter_.emplace(board_, simulation_.completions(), simulation_.clock());
    system_.emplace(simulation_.executor(), simulation_.system_options("duet"));
    actors::ServiceOptions options;
    options.device.package = models.read->package->directory();
    for (std::uint32_t chip = 0; chip < 2; ++chip) {
      actors::ModelOptions model;
      model.alias = chip == 0 ? "model-a" : "model-b";
      model.chip = chip;
      options.models.push_back(model);
    }
    actors::ServiceHooks hooks;
    hooks.on_life_cycle = [this](const std::string& event, const std::string& detail) {
      ++events_[event];
      tell(event + ": " + detail);
    };
    hooks.restart_process = [this] { restart_wanted_ = true; };
    service_.emplace(*system_, *adapter_, models.read->package, options, std::move(hooks));
  }

  SimOutcome run() {
    run_until([this] { return events_.contains("ready"); }, 10min, "the board came up");
    add_clients();
    simulation_.run_for(20s);
    simulation_.end_faults();
    faults_.end();
    const auto all_ended = [this] {
      return std::all_of(clients_.begin(), clients_.end(),
                         [](const Client& client) { return client.reader->ended(); });
    };
    run_until(all_ended, 2h, "every request ended");
    shut_down();
    judge();
    return std::move(outcome_);
  }

 private:
  void run_until(const std::function<bool()>& condition, Duration within, const char* what) {
    if (restart_wanted_) return;
    const RunEnd end =
        simulation_.run_until([&] { return restart_wanted_ || condition(); }, within);
    if (end == RunEnd::satisfied) return;
    violate("liveness", std::string("before ") + what + ": " + to_string(end));
    if (end != RunEnd::quiet) return;
    if (const auto deadlock = simulation_.deadlock()) violate("deadlock", deadlock->text());
  }

  void tell(const std::string& what) const {
    if (!order_.tell) return;
    const double seconds =
        std::chrono::duration<double>(simulation_.now().time_since_epoch()).count();
    order_.tell(std::to_string(seconds) + " s " + what);
  }

  void violate(const char* kind, const std::string& what) {
    outcome_.violations.push_back(std::string(kind) + ": " + what);
  }

  void add_clients() {
    SimRandom& random = simulation_.workload_random();
    clients_.resize(random.between(3, 24));
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      Client& client = clients_[i];
      client.id = "r" + std::to_string(i);
      client.choices = random.below(4) == 0 ? 2 : 1;
      actors::GenerateRequest request;
      request.id = client.id;
      request.model = random.below(2) == 0 ? "model-a" : "model-b";
      auto messages = std::make_shared<boost::json::array>();
      messages->push_back(boost::json::object{
          {"role", "user"},
          {"content", "What is " + std::to_string(random.below(1000)) + " + 5?"}});
      request.prompts.emplace_back(actors::ChatPrompt(std::move(messages)));
      request.sampling.temperature = 0;
      request.choices = client.choices;
      request.tokens_max = static_cast<std::uint32_t>(random.between(1, 48));
      client.expected = models_.answer(request);
      const bool rests = random.below(4) == 0;
      const bool goes = random.below(6) == 0;
      client.reader = std::make_shared<Reader>(
          simulation_, rests ? static_cast<std::uint32_t>(random.between(1, 8)) : 0U,
          goes ? static_cast<std::uint32_t>(random.between(1, 10)) : 0U);
      const Duration begins = Duration(random.below(15'000'000'000));
      const Duration time_limit = Duration(random.between(20'000'000, 10'000'000'000));
      if (random.below(6) == 0) request.deadline = simulation_.now() + begins + time_limit;
      simulation_.after(begins, [this, &client, request = std::move(request)] {
        client.submitted = true;
        service_->submit(request, client.reader);
      });
      if (random.below(5) == 0) add_cancel(client, begins + Duration(random.below(1'000'000'000)));
    }
  }

  /// At times before its request, or after its end.
  void add_cancel(Client& client, Duration when) {
    ++client.cancels;
    simulation_.after(when, [this, &client] {
      service_->cancel(client.id, "", false,
                       [&client](actors::CancelResult) { ++client.cancels_answered; });
    });
  }

  void shut_down() {
    if (restart_wanted_) return;
    std::optional<bool> released;
    service_->shut_down([&released](bool clean) { released = clean; });
    run_until([&released] { return released.has_value(); }, 1h, "the service shut down");
    bool stopped = false;
    std::string left;
    system_->stop(10s, [&](const runtime::StopReport& report) {
      for (const auto& straggler : report.stragglers) left += " " + straggler.name;
      stopped = true;
    });
    run_until([&stopped] { return stopped; }, 1h, "the actors stopped");
    if (!left.empty()) violate("stop", "these did not:" + left);
    if (released == false && !events_.contains("failed")) violate("stop", "the board is not free");
  }

  void judge() {
    std::uint64_t well = 0;
    std::map<std::string, std::uint64_t> errors;
    for (const Client& client : clients_) {
      if (restart_wanted_) break;   // the process is gone, and its clients with it
      const std::string wrong = client.reader->judge(client.expected, client.choices);
      if (!wrong.empty()) violate("answer", client.id + ": " + wrong);
      if (client.cancels != client.cancels_answered) violate("cancel", client.id + " hangs");
      ++(client.reader->well() ? well : errors[client.reader->error()]);
    }
    for (const actors::ModelMetrics& model : service_->metrics()) {
      if (restart_wanted_) break;
      if (model.requests_running + model.requests_waiting + model.kv_slots_used != 0) {
        violate("ledger", model.alias + " still holds something");
      }
      if (model.requests_accepted !=
          model.requests_finished + model.requests_failed + model.requests_aborted) {
        violate("ledger", model.alias + ": requests do not add up");
      }
      if (model.jobs_submitted != model.jobs_done + model.jobs_failed) {
        violate("ledger", model.alias + ": jobs do not add up");
      }
    }
    outcome_.figures = std::to_string(clients_.size()) + " requests, " + std::to_string(well) +
                       " answered in full";
    for (const auto& [error, count] : errors) {
      outcome_.figures += ", " + std::to_string(count) + " " + error;
    }
    outcome_.figures += "; " + std::to_string(faults_.injected()) + " faults of the board, " +
                        std::to_string(events_["ready"]) + " times ready" +
                        (restart_wanted_ ? ", asked for a restart" : "");
    outcome_.hash = simulation_.hash();
    outcome_.simulated = simulation_.now().time_since_epoch();
    outcome_.activations = simulation_.activations();
    outcome_.handled = simulation_.handled();
    outcome_.faults = simulation_.faults_drawn().text();
  }

  const SimOrder order_;
  const Models& models_;
  SimOutcome outcome_;
  std::map<std::string, std::uint64_t> events_;
  bool restart_wanted_ = false;
  Simulation simulation_;
  BoardFaults faults_;
  SimBoard board_;
  std::optional<device::CombinedAdapter> adapter_;
  std::vector<Client> clients_;
  std::optional<runtime::System> system_;
  std::optional<actors::DuetService> service_;
};

}   // namespace

SimOutcome run_duet(const SimOrder& order) {
  return Stage(order, models_of(order.package)).run();
}

}   // namespace duet::tools
