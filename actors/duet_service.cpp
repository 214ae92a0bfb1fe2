// duet_service.cpp: spawning, and the calls of front ends as messages.
#include "actors/duet_service.hpp"

#include "actors/device_call.hpp"
#include "actors/model_worker.hpp"

#include <stdexcept>
#include <utility>

namespace duet::actors {

namespace {

const device::Model& model_of(const device::Manifest& manifest, const ModelOptions& options) {
  for (const device::Model& model : manifest.models) {
    const bool named = options.package_model.empty() ? model.alias == options.alias
                                                     : model.name == options.package_model;
    if (named && model.chip == options.chip) return model;
  }
  throw std::invalid_argument("the package has no model for '" + options.alias + "' on chip " +
                              std::to_string(options.chip));
}

/// Calls back once at the latest when nobody holds it any more: a message may end with its actor.
template <typename Value>
class Once {
 public:
  Once(std::function<void(Value)> done, Value otherwise)
      : done_(std::move(done)), otherwise_(std::move(otherwise)) {}
  ~Once() {
    if (done_) done_(std::move(otherwise_));
  }
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  void operator()(Value value) { std::exchange(done_, nullptr)(std::move(value)); }

 private:
  std::function<void(Value)> done_;
  Value otherwise_;
};

/// Asks the supervisor to end and tells the host.
runtime::Behaviour shut_down_behaviour(runtime::Self<std::variant<runtime::Stop>> self,
                                       runtime::Ref<DeviceSupervisorMessage> supervisor,
                                       runtime::Duration patience, std::function<void(bool)> done) {
  ShutDown question;
  const auto answer = co_await self.ask(supervisor, std::move(question), patience);
  done(answer.has_value() && *answer);
}

using ChipCall = void (device::Device::*)(std::uint64_t tag, std::uint32_t chip, device::Sink sink);

/// Makes `call` of one chip after the other; each entry gets its value, or the error.
template <typename Entry, typename Value>
runtime::Behaviour ask_chips_behaviour(runtime::Self<std::variant<runtime::Stop>> self,
                                       device::Device* source, ChipCall call, Value Entry::*value,
                                       std::vector<Entry> chips,
                                       std::shared_ptr<Once<std::vector<Entry>>> done) {
  static_cast<void>(self);
  for (Entry& chip : chips) {
    auto start = [source, call, &chip](std::uint64_t tag, device::Sink sink) {
      (source->*call)(tag, chip.chip, std::move(sink));
    };
    DeviceOutcome outcome = co_await call_device(start);
    if (outcome) {
      chip.*value = std::move(std::get<Value>(*outcome));
    } else {
      chip.error = device::make_error_code(outcome.error().code).message();
    }
  }
  (*done)(std::move(chips));
}

/// `done` is called once, with what was asked or, if the system is stopping, with nothing.
template <typename Entry, typename Value>
void ask_chips(runtime::System& system, const char* name, device::Device& device, ChipCall call,
               Value Entry::*value, std::vector<Entry> chips,
               std::function<void(std::vector<Entry>)> done) {
  auto once = std::make_shared<Once<std::vector<Entry>>>(std::move(done), std::vector<Entry>());
  system.spawn(name, ask_chips_behaviour<Entry, Value>, &device, call, value, std::move(chips),
               std::move(once));
}

/// What the package has planned for the chip of one of its models.
ChipMemory plan_of(const device::Manifest& manifest, const device::Model& model,
                   const std::string& alias) {
  ChipMemory plan;
  plan.chip = model.chip;
  plan.alias = alias;
  plan.context = model.kv.tokens_per_slot;
  plan.kv_slots = model.kv.slots;
  for (device::ChipBudget& budget : device::chip_budgets(manifest)) {
    if (budget.chip == model.chip) plan.planned = std::move(budget);
  }
  return plan;
}

}   // namespace

DuetService::DuetService(runtime::System& system, device::Device& device,
                         std::shared_ptr<const device::Package> package, ServiceOptions options,
                         ServiceHooks hooks)
    : system_(system), device_(device), stop_deadline_(options.stop_deadline) {
  SupervisorSetup setup;
  std::vector<Route> routes;
  for (const ModelOptions& model : options.models) {
    auto board = std::make_shared<ModelBoard>(model.alias, model.chip);
    const device::Model& found = model_of(package->manifest(), model);
    runtime::ActorOptions worker_options("model-worker");
    worker_options.bounded_max = model.requests_waiting_max;
    const auto worker =
        system_.spawn<ModelWorker>(worker_options, model, options.scheduling, board);
    routes.push_back({model.alias, model.chip, worker, board, model.request_timeout});
    setup.models.push_back({model, worker, board, &found});
    boards_.push_back(std::move(board));
    plans_.push_back(plan_of(package->manifest(), found, model.alias));
  }
  router_ = system_.spawn<Router>("router", std::move(routes), std::move(hooks.on_request));
  setup.device = &device;
  setup.package = std::move(package);
  setup.options = options.device;
  setup.options.drain_deadline = options.stop_deadline;
  setup.router = router_;
  setup.log = std::move(hooks.on_life_cycle);
  setup.restart_process = std::move(hooks.restart_process);
  supervisor_ = system_.spawn("device-supervisor", device_supervisor, std::move(setup));
}

void DuetService::submit(GenerateRequest request, std::shared_ptr<OutputStream> stream) {
  SubmitRequest command(std::move(request), stream);
  const auto status = router_.send(std::move(command));
  if (status) return;
  stream->fail(
      ServiceError(errc::overloaded, "the server has too many requests; try again later", "", 1));
}

void DuetService::cancel(const std::string& id, const std::string& key, bool any_key,
                         std::function<void(CancelResult)> done) {
  const auto once = std::make_shared<Once<CancelResult>>(std::move(done), CancelResult::not_found);
  auto tell = [once](CancelResult result) { (*once)(result); };
  static_cast<void>(router_.send(CancelById(id, key, any_key, std::move(tell))));
}

std::vector<ModelStatus> DuetService::models() const {
  std::vector<ModelStatus> all;
  for (const auto& board : boards_) all.push_back(board->status());
  return all;
}

std::vector<ModelMetrics> DuetService::metrics() const {
  std::vector<ModelMetrics> all;
  for (const auto& board : boards_) all.push_back(board->metrics());
  return all;
}

void DuetService::take_traces(std::function<void(std::vector<ChipTrace>)> done) {
  std::vector<ChipTrace> traces;
  for (const auto& board : boards_) {
    traces.push_back({board->chip, board->alias, {}, ""});
  }
  ask_chips(system_, "take-traces", device_, &device::Device::take_trace, &ChipTrace::trace,
            std::move(traces), std::move(done));
}

void DuetService::measure_memory(std::function<void(std::vector<ChipMemory>)> done) {
  ask_chips(system_, "measure-memory", device_, &device::Device::memory_usage,
            &ChipMemory::measured, plans_, std::move(done));
}

void DuetService::shut_down(std::function<void(bool)> done) {
  // The drain, the calls that may each wait for the vendor, and the release.
  const auto patience = 2 * stop_deadline_ + std::chrono::minutes(2);
  const auto spawned = system_.spawn("shut-down", shut_down_behaviour, supervisor_, patience, done);
  if (spawned.empty()) done(false);
}

}   // namespace duet::actors
