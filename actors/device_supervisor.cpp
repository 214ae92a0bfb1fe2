// device_supervisor.cpp: bring-up, faults, recovery, shut-down.
#include "actors/device_supervisor.hpp"

#include "actors/chip_session.hpp"
#include "actors/device_call.hpp"
#include "actors/limits.hpp"
#include "device/package/golden_verdict.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace duet::actors {

namespace {

using runtime::Async;
using Self = runtime::Self<DeviceSupervisorMessage>;

/// The supervisor's own sequences, for goldens and warm-up, far from any worker's.
constexpr SequenceNumber own_sequences = SequenceNumber{1} << 40U;

class Supervision {
 public:
  Supervision(Self self, SupervisorSetup setup) : self_(self), setup_(std::move(setup)) {
    for (const SupervisedModel& model : setup_.models)
      chips_.push_back({&model, {}, {}, {}, {}, {}});
  }

  Async<bool> bring_up();
  Async<bool> recover();
  Async<bool> shut_down();
  void announce(WorkerState state, const std::string& reason);
  [[nodiscard]] bool concerns_us(const SessionFault& fault) const;

 private:
  struct Chip {
    const SupervisedModel* model;
    std::shared_ptr<JobSink> sink;
    device::SessionState session;
    std::vector<device::IoBuffers> buffers;
    runtime::Ref<ChipSessionMessage> actor;
    std::shared_ptr<const ModelProfile> profile;
  };

  // Each makes one call of the contract.
  Async<DeviceOutcome> open();
  Async<DeviceOutcome> load();
  Async<DeviceOutcome> configure();
  Async<DeviceOutcome> read_hash();
  Async<DeviceOutcome> create_session(Chip& chip);
  Async<DeviceOutcome> load_model(Chip& chip);
  Async<DeviceOutcome> allocate(Chip& chip, device::GraphKind graph);
  Async<DeviceOutcome> release(Chip& chip, std::uint64_t buffers);
  Async<DeviceOutcome> drain(Chip& chip);
  Async<DeviceOutcome> reset();
  Async<DeviceOutcome> reset_configuration();
  Async<DeviceOutcome> close();

  Async<bool> bring_up_board();
  Async<bool> bring_up_chip(Chip& chip);
  Async<bool> make_buffers(Chip& chip);
  Async<bool> golden_passes(Chip& chip);
  Async<std::optional<JobEnded>> run_job(Chip& chip, JobOrder order);
  Async<bool> leave_chips();
  bool make_profile(Chip& chip);
  bool check(const char* what, const DeviceOutcome& outcome);
  void note(const std::string& event, const std::string& detail) {
    if (setup_.log) setup_.log(event, detail);
  }
  [[nodiscard]] runtime::TimePoint deadline() const {
    return self_.now() + setup_.options.call_deadline;
  }

  Self self_;
  SupervisorSetup setup_;
  std::vector<Chip> chips_;
  device::PackageId package_ = 0;
  bool opened_ = false;
  bool real_outputs_ = true;   // false: the board makes its answers up
  std::string failure_;        // of the last step
};

Async<DeviceOutcome> Supervision::open() {
  auto start = [this](std::uint64_t tag, device::Sink sink) {
    setup_.device->open(tag, deadline(), std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::load() {
  auto start = [this](std::uint64_t tag, device::Sink sink) {
    const device::Package& package = *setup_.package;
    setup_.device->load_package(tag,
                                {package.directory(), package.shared_manifest(), package.hash()},
                                deadline(), std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::configure() {
  auto start = [this](std::uint64_t tag, device::Sink sink) {
    setup_.device->configure(tag, package_, deadline(), std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::read_hash() {
  auto start = [this](std::uint64_t tag, device::Sink sink) {
    setup_.device->read_hash(tag, deadline(), std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::create_session(Chip& chip) {
  auto start = [this, &chip](std::uint64_t tag, device::Sink sink) {
    device::ChipSessionOptions options;
    options.chip = chip.model->model->chip;
    options.inflight_max = chip.model->options.inflight_max;
    setup_.device->create_session(tag, options, chip.sink, std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::load_model(Chip& chip) {
  auto start = [this, &chip](std::uint64_t tag, device::Sink sink) {
    setup_.device->load_model(tag, chip.session.session, package_, chip.model->model->name,
                              deadline(), std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::allocate(Chip& chip, device::GraphKind graph) {
  auto start = [this, &chip, graph](std::uint64_t tag, device::Sink sink) {
    setup_.device->allocate_io(tag, chip.session.session, graph, std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::release(Chip& chip, std::uint64_t buffers) {
  auto start = [this, &chip, buffers](std::uint64_t tag, device::Sink sink) {
    setup_.device->release_io(tag, chip.session.session, buffers, std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::drain(Chip& chip) {
  auto start = [this, &chip](std::uint64_t tag, device::Sink sink) {
    setup_.device->drain(tag, chip.session.session, self_.now() + setup_.options.drain_deadline,
                         std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::reset() {
  auto start = [this](std::uint64_t tag, device::Sink sink) {
    setup_.device->reset(tag, {device::ResetScope::device, 0, 0}, deadline(), std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::reset_configuration() {
  auto start = [this](std::uint64_t tag, device::Sink sink) {
    setup_.device->reset_configuration(tag, deadline(), std::move(sink));
  };
  return call_device(start);
}

Async<DeviceOutcome> Supervision::close() {
  auto start = [this](std::uint64_t tag, device::Sink sink) {
    setup_.device->close(tag, deadline(), std::move(sink));
  };
  return call_device(start);
}

bool Supervision::check(const char* what, const DeviceOutcome& outcome) {
  if (outcome) {
    note(what, "ok");
    return true;
  }
  failure_ = std::string(what) + ": " + device::make_error_code(outcome.error().code).message() +
             (outcome.error().detail.empty() ? "" : ": " + outcome.error().detail);
  note(what, failure_);
  return false;
}

void Supervision::announce(WorkerState state, const std::string& reason) {
  for (const Chip& chip : chips_) {
    chip.model->worker.send(StateChanged(state, reason));
    setup_.router.send(ModelStateChanged(chip.model->options.alias, chip.profile, state));
  }
  note(to_string(state), reason);
}

bool Supervision::concerns_us(const SessionFault& fault) const {
  return std::any_of(chips_.begin(), chips_.end(),
                     [&](const Chip& chip) { return chip.session.generation == fault.generation; });
}

bool Supervision::make_profile(Chip& chip) {
  const device::Model& model = *chip.model->model;
  auto tokenizer = text::Tokenizer::from_json(setup_.package->tokenizer(model.name));
  if (!tokenizer) {
    failure_ = "tokenizer of " + model.alias + ": " + tokenizer.error().message;
    return false;
  }
  if (tokenizer->vocabulary().size() != model.config.vocabulary) {
    failure_ = "tokenizer of " + model.alias + ": it has another vocabulary than the model";
    return false;
  }
  std::optional<text::ChatTemplate> chat;
  if (tokenizer->chat_template().has_value()) {
    auto made = text::ChatTemplate::create(*tokenizer);
    if (!made) {
      failure_ = "chat template of " + model.alias + ": " + made.error().message;
      return false;
    }
    chat = std::move(*made);
  }
  const std::uint32_t context =
      chip.model->options.context_max == 0
          ? model.kv.tokens_per_slot
          : std::min(chip.model->options.context_max, model.kv.tokens_per_slot);
  chip.profile = std::make_shared<const ModelProfile>(
      ModelProfile{chip.model->options.alias, std::move(*tokenizer), std::move(chat), context});
  return true;
}

Async<bool> Supervision::bring_up() {
  for (Chip& chip : chips_) {
    if (chip.profile == nullptr && !make_profile(chip)) {
      note("bring-up", failure_);
      announce(WorkerState::failed, failure_);
      co_return false;
    }
  }
  announce(WorkerState::configuring, "the board is being configured");
  bool up = co_await bring_up_board();
  for (std::size_t i = 0; up && i < chips_.size(); ++i) up = co_await bring_up_chip(chips_[i]);
  if (up) announce(WorkerState::warming, "goldens are being checked");
  for (std::size_t i = 0; up && i < chips_.size(); ++i) up = co_await golden_passes(chips_[i]);
  if (!up) {
    announce(WorkerState::recovering, failure_);
    co_return false;
  }
  for (const Chip& chip : chips_) {
    chip.model->worker.send(SessionUp(chip.actor.address(), chip.session.generation, chip.profile,
                                      chip.model->model->kv.slots));
  }
  announce(WorkerState::ready, "");
  co_return true;
}

Async<bool> Supervision::bring_up_board() {
  if (!opened_) {
    const DeviceOutcome opened = co_await open();
    if (!check("open", opened)) co_return false;
    opened_ = true;
    real_outputs_ = std::get<device::Topology>(*opened).real_outputs;
  }
  const DeviceOutcome loaded = co_await load();
  if (!check("load", loaded)) co_return false;
  const auto& package = std::get<device::LoadedPackage>(*loaded);
  package_ = package.package;
  const auto& graphs = setup_.package->manifest().graphs;
  bool equal = package.graphs.size() == graphs.size();
  for (const device::LoadedGraph& graph : package.graphs) {
    const device::Graph* const expected =
        device::find_graph(setup_.package->manifest(), graph.name);
    equal = equal && expected != nullptr && expected->target_chips == graph.target_chips &&
            expected->mode == graph.mode;
  }
  if (!equal) {
    failure_ = "the runtime has loaded other graphs or chips than the manifest names";
    note("validate loaded", failure_);
    co_return false;
  }
  const DeviceOutcome configured = co_await configure();
  co_return check("configure", configured);
}

Async<bool> Supervision::bring_up_chip(Chip& chip) {
  chip.sink = std::make_shared<JobSink>();
  const DeviceOutcome created = co_await create_session(chip);
  if (!check("create session", created)) co_return false;
  chip.session = std::get<device::SessionState>(*created);
  const DeviceOutcome loaded = co_await load_model(chip);
  if (!check("load model", loaded)) co_return false;
  chip.session = std::get<device::SessionState>(*loaded);
  const bool buffers = co_await make_buffers(chip);
  if (!buffers) co_return false;

  ChipSessionSetup setup;
  setup.chip = chip.model->model->chip;
  setup.session = chip.session;
  setup.buffers = chip.buffers;
  setup.sequence_first = chip.model->model->kv.sequence_id_first;
  setup.sequence_last = chip.model->model->kv.sequence_id_last;
  setup.inflight_max = chip.model->options.inflight_max;
  setup.job_deadline = chip.model->options.job_deadline_min;
  runtime::ActorOptions options("chip-session");
  options.run_on_completion_thread = true;
  chip.actor = self_.spawn<ChipSession>(options, *setup_.device, std::move(setup),
                                        chip.model->worker, self_.ref(), chip.model->board->jobs);
  chip.sink->connect(chip.actor);
  co_return !chip.actor.empty();
}

Async<bool> Supervision::make_buffers(Chip& chip) {
  chip.buffers.clear();
  // One of each graph a job in flight, and one more for decodes, so that the next job need not wait
  // for a sample.
  for (std::uint32_t i = 0; i <= chip.model->options.inflight_max; ++i) {
    for (const auto graph : {device::GraphKind::prefill, device::GraphKind::decode}) {
      if (graph == device::GraphKind::prefill && i == chip.model->options.inflight_max) continue;
      const DeviceOutcome made = co_await allocate(chip, graph);
      if (!check("buffers", made)) co_return false;
      chip.buffers.push_back(std::get<device::IoBuffers>(*made));
    }
  }
  co_return true;
}

Async<std::optional<JobEnded>> Supervision::run_job(Chip& chip, JobOrder order) {
  AskJob question(std::move(order));
  auto answer = co_await self_.ask(chip.actor, std::move(question), setup_.options.call_deadline);
  if (!answer) {
    failure_ = "a job of " + chip.model->options.alias + " was not answered";
    co_return std::nullopt;
  }
  if (answer->status.failed()) {
    failure_ = "a job of " + chip.model->options.alias + " failed: " + answer->status.message();
    co_return std::nullopt;
  }
  co_return std::move(*answer);
}

Async<bool> Supervision::golden_passes(Chip& chip) {
  const DeviceOutcome hash = co_await read_hash();
  if (!check("read hash", hash)) co_return false;
  if (std::get<std::string>(*hash) != setup_.package->hash()) {
    failure_ = "the device holds another package than the validated one";
    note("golden", failure_);
    co_return false;
  }
  if (!real_outputs_) {
    note("golden " + chip.model->options.alias,
         "skipped: this board makes its answers up, they mean nothing");
    co_return true;
  }
  const device::Golden& golden = setup_.package->golden(chip.model->model->name);
  device::GoldenVerdict verdict;
  std::size_t prompts = golden.prompts.size();
  if (setup_.options.golden_prompts_max != 0) {
    prompts = std::min<std::size_t>(prompts, setup_.options.golden_prompts_max);
  }
  for (std::size_t i = 0; i < prompts; ++i) {
    const device::GoldenPrompt& prompt = golden.prompts[i];
    ++verdict.prompts;
    JobOrder order;
    order.sequence = own_sequences + i;
    order.graph = device::GraphKind::prefill;
    order.prompt = std::make_shared<const std::vector<text::TokenId>>(prompt.prompt_ids);
    for (std::size_t step = 0; step < prompt.tokens.size(); ++step) {
      const auto positions = order.graph == device::GraphKind::prefill
                                 ? static_cast<std::uint32_t>(prompt.prompt_ids.size())
                                 : 1U;
      std::optional<JobEnded> ended = co_await run_job(chip, order);
      if (!ended.has_value()) {
        note("golden", failure_);
        co_return false;
      }
      device::judge_step(verdict, golden, i, step, ended->logits.values());
      order.graph = device::GraphKind::decode;
      order.past += positions;
      order.token = prompt.tokens[step];
    }
    chip.actor.send(ReleaseSequence{own_sequences + i});
  }
  const bool passed = verdict.passed(chip.model->model->golden_rule);
  if (!passed) failure_ = "golden of " + chip.model->options.alias + ": " + verdict.text();
  note("golden " + chip.model->options.alias, verdict.text());
  co_return passed;
}

/// Waits until the workers hold nothing of the sessions, then ends the session actors and gives the
/// buffers back.
Async<bool> Supervision::leave_chips() {
  bool all = true;
  for (Chip& chip : chips_) {
    DrainWorker question;
    const auto drained =
        co_await self_.ask(chip.model->worker, std::move(question), setup_.options.drain_deadline);
    all = all && drained.has_value();
    if (!chip.actor.empty()) self_.stop(chip.actor);
    chip.actor = {};
    for (const device::IoBuffers& buffers : chip.buffers) {
      // A job that never came back keeps its own.
      const DeviceOutcome released = co_await release(chip, buffers.id);
      all = all && released.has_value();
    }
    chip.buffers.clear();
  }
  co_return all;
}

Async<bool> Supervision::recover() {
  runtime::Duration pause = setup_.options.recovery_backoff;
  for (std::uint32_t attempt = 1; attempt <= setup_.options.recovery_attempts; ++attempt) {
    if (attempt > 1) {
      co_await self_.sleep(pause);
      pause = std::min<runtime::Duration>(2 * pause, limits::recovery_pause_max);
    }
    announce(WorkerState::recovering, "the board is being recovered");
    static_cast<void>(co_await leave_chips());
    if (opened_) {
      const DeviceOutcome done = co_await reset();
      if (!check("reset device", done)) {
        const auto code = done.error().code;
        if (code == device::errc::driver_lost || code == device::errc::call_timeout) {
          announce(WorkerState::failed, failure_);
          if (setup_.options.restart_on_unknown_dma && setup_.restart_process) {
            setup_.restart_process();
          }
          co_return false;
        }
        continue;
      }
    }
    const bool up = co_await bring_up();
    if (up) co_return true;
  }
  announce(WorkerState::failed, failure_ + "; an operator must look at the board");
  co_return false;
}

Async<bool> Supervision::shut_down() {
  announce(WorkerState::draining, "the server is stopping");
  for (Chip& chip : chips_) {
    DrainWorker question;
    static_cast<void>(
        co_await self_.ask(chip.model->worker, std::move(question), setup_.options.drain_deadline));
  }
  announce(WorkerState::unloading, "the server is stopping");
  static_cast<void>(co_await leave_chips());
  if (!opened_) co_return true;
  for (Chip& chip : chips_) {
    if (chip.session.session == 0) continue;
    const DeviceOutcome drained = co_await drain(chip);
    check("drain", drained);
  }
  const DeviceOutcome done = co_await reset_configuration();
  check("reset configuration", done);
  const DeviceOutcome closed = co_await close();
  const bool released = check("release", closed);
  announce(WorkerState::unloaded, released ? "the board was released" : failure_);
  co_return released;
}

}   // namespace

runtime::Behaviour device_supervisor(runtime::Self<DeviceSupervisorMessage> self,
                                     SupervisorSetup setup) {
  Supervision supervision(self, std::move(setup));
  bool up = co_await supervision.bring_up();
  if (!up) up = co_await supervision.recover();
  for (;;) {
    DeviceSupervisorMessage message = co_await self.receive();
    if (auto* stop = std::get_if<ShutDown>(&message)) {
      const bool released = co_await supervision.shut_down();
      stop->reply(released);
      co_return;
    }
    // Until injection proves otherwise, every fault counts as polluting the whole board.
    const auto& fault = std::get<SessionFault>(message);
    if (up && supervision.concerns_us(fault)) up = co_await supervision.recover();
  }
}

}   // namespace duet::actors
