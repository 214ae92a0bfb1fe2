// duet_sim_board.cpp: carries out what the board's core asks for, when its time has come.
#include "tools/duet_sim_board.hpp"

#include "device/emulator/made_up_tokens.hpp"
#include "device/emulator/package_image.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace duet::tools {

using device::errc;
using device::Failure;
using device::result;
namespace emulator = device::emulator;

namespace {

class SimImage final : public emulator::PackageImage {
 public:
  explicit SimImage(std::shared_ptr<const SimPackage> package) : package_(std::move(package)) {}
  [[nodiscard]] const device::Manifest& manifest() const override {
    return package_->package->manifest();
  }
  [[nodiscard]] const std::string& hash() const override { return package_->package->hash(); }
  [[nodiscard]] result<std::vector<device::Program>> programs(
      const device::Graph& graph) const override {
    return package_->package->programs(graph.name);
  }
  [[nodiscard]] result<std::span<const std::byte>> file(
      const device::Section& section) const override {
    return package_->package->file(section.path);
  }
  [[nodiscard]] result<std::vector<std::uint32_t>> ordinary_tokens(
      const device::Model& model) const override {
    return package_->ordinary_of(model.name);
  }

 private:
  std::shared_ptr<const SimPackage> package_;
};

emulator::Profile timed_profile() {
  return emulator::find_profile("timed").value();
}

}   // namespace

const std::vector<std::uint32_t>& SimPackage::ordinary_of(const std::string& model) const {
  const auto found = std::find_if(ordinary.begin(), ordinary.end(),
                                  [&model](const auto& entry) { return entry.first == model; });
  DUET_ASSERT(found != ordinary.end(), model);
  return found->second;
}

SimBoard::SimBoard(runtime::simulation::Simulation& simulation,
                   std::shared_ptr<const SimPackage> package, emulator::FaultHook* faults)
    : simulation_(simulation),
      package_(std::move(package)),
      faults_(faults),
      core_(timed_profile(), faults) {}

SimBoard::~SimBoard() {
  simulation_.clock().cancel(*this);
}

device::ChipNanoseconds SimBoard::chip_now() const noexcept {
  return static_cast<device::ChipNanoseconds>((simulation_.now() - opened_at_).count());
}

void SimBoard::expired() noexcept {
  drive();
}

/// Lets happen what is due, carries out what follows, and sets the timer to what comes next.
void SimBoard::drive() {
  bool ended = false;
  if (core_.state() != emulator::BoardState::closed) core_.advance(chip_now());
  for (;;) {
    const auto action = core_.next_action();
    if (!action) {
      const auto event = core_.next_event();
      if (!event || *event > chip_now()) break;
      core_.advance(*event);
      continue;
    }
    if (const auto* const compute = std::get_if<emulator::StartCompute>(&*action)) {
      make_up(*compute);
    } else {
      DUET_ASSERT(std::holds_alternative<emulator::JobEnded>(*action));   // transfers are modelled
      ended = true;
    }
  }
  if (ended || core_.lost()) simulation_.completions().wake_blocked();
  const auto next = core_.next_event();
  if (next) {
    simulation_.clock().arm(*this, opened_at_ + runtime::Duration(*next));
  } else {
    simulation_.clock().cancel(*this);
  }
}

void SimBoard::make_up(const emulator::StartCompute& action) {
  const emulator::JobView job = core_.view(action.ticket);
  Staging& host = staging_[Core::io_index(job.buffers)];
  DUET_ASSERT(host.id == job.buffers && made_up_ != nullptr);
  boost::system::error_code status;
  if (action.spoil_output) {
    status = make_error_code(errc::bad_output);
  } else {
    const std::span<const std::uint32_t> tokens(host.tokens);
    const std::uint32_t token = made_up_->next_token(job, tokens.first(job.tokens), faults_);
    host.logits[host.made_up] = 0;
    host.logits[token] = emulator::made_up_logit;
    host.made_up = token;
  }
  core_.compute_done(action.ticket, status, action.at, action.at);
}

result<device::Topology> SimBoard::open() {
  opened_at_ = simulation_.now();
  return core_.open(0);
}

result<void> SimBoard::finish_reset(result<void> begun) {
  drive();
  if (!begun) return begun;
  DUET_ASSERT(!core_.work_in_hand());   // there is no thread that could have any
  core_.finish_reset();
  drive();
  const emulator::BoardState state = core_.state();
  if (state == emulator::BoardState::open || state == emulator::BoardState::closed) {
    made_up_.reset();
    image_.reset();
  }
  if (state == emulator::BoardState::closed) staging_.fill(Staging{});
  simulation_.completions().wake_blocked();   // a close ends their tickets
  return {};
}

result<void> SimBoard::close() {
  drive();
  return finish_reset(core_.begin_close(chip_now()));
}

result<void> SimBoard::reset_configuration() {
  drive();
  return finish_reset(core_.begin_reset_configuration(chip_now()));
}

result<void> SimBoard::reset(device::ResetScope scope, std::uint32_t chip) {
  drive();
  return finish_reset(core_.begin_reset(scope, chip, chip_now()));
}

result<std::vector<device::LoadedGraph>> SimBoard::load_package(
    const std::filesystem::path& /*directory*/) {
  auto image = std::make_unique<SimImage>(package_);
  auto graphs = with_core(
      [&](Core& core) { return core.load(image->manifest(), image->hash(), chip_now()); });
  if (graphs) image_ = std::move(image);
  return graphs;
}

result<void> SimBoard::configure() {
  if (auto begun = with_core([&](Core& core) { return core.begin_configure(chip_now()); });
      !begun) {
    return begun;
  }
  auto made_up = emulator::MadeUpPackage::build(*image_, core_.plan());
  if (!made_up) {
    core_.abort_configure();
    return made_up.error();
  }
  made_up_ = std::move(made_up).value();
  core_.finish_configure();
  image_.reset();
  return {};
}

result<std::string> SimBoard::current_hash() {
  return with_core([](Core& core) { return core.current_hash(); });
}

result<device::IoBuffers> SimBoard::allocate_io(device::GraphHandle graph) {
  auto id = with_core([graph](Core& core) { return core.allocate_io(graph); });
  if (!id) return id.error();
  const emulator::GraphPlan& plan = core_.plan().graphs[graph];
  Staging& staging = staging_[Core::io_index(*id)];
  staging.id = *id;
  staging.tokens.assign(plan.tokens_max, 0);
  staging.logits.assign(plan.vocabulary, 0.0F);
  staging.made_up = 0;
  device::IoBuffers buffers;
  buffers.id = *id;
  buffers.graph = plan.kind;
  buffers.tokens = staging.tokens;
  buffers.logits = staging.logits;
  return buffers;
}

result<void> SimBoard::release_io(std::uint64_t buffers) {
  auto released = with_core([buffers](Core& core) { return core.release_io(buffers); });
  if (released) staging_[Core::io_index(buffers)] = Staging{};
  return released;
}

result<void> SimBoard::kv_reserve(std::uint32_t chip, device::Generation generation,
                                  device::SequenceId sequence, std::uint32_t tokens) {
  return with_core([&](Core& core) { return core.kv_reserve(chip, generation, sequence, tokens); });
}

result<void> SimBoard::kv_commit(std::uint32_t chip, device::Generation generation,
                                 device::SequenceId sequence, std::uint32_t tokens) {
  return with_core([&](Core& core) { return core.kv_commit(chip, generation, sequence, tokens); });
}

result<void> SimBoard::kv_rollback(std::uint32_t chip, device::Generation generation,
                                   device::SequenceId sequence) {
  return with_core([&](Core& core) { return core.kv_rollback(chip, generation, sequence); });
}

result<void> SimBoard::kv_release(std::uint32_t chip, device::Generation generation,
                                  device::SequenceId sequence) {
  return with_core([&](Core& core) { return core.kv_release(chip, generation, sequence); });
}

result<device::JobTicket> SimBoard::submit(const device::VendorJob& job) {
  std::span<const std::uint32_t> tokens;
  const std::uint32_t index = Core::io_index(job.buffers);
  if (index < staging_.size() && staging_[index].id == job.buffers) {
    tokens = staging_[index].tokens;
  }
  return with_core([&](Core& core) { return core.submit(job, tokens, chip_now()); });
}

result<device::VendorJobEnd> SimBoard::wait(device::JobTicket ticket, device::TimePoint deadline) {
  const auto begun = with_core([&](Core& core) { return core.begin_wait(ticket, chip_now()); });
  if (!begun) return begun.error();
  std::optional<result<device::VendorJobEnd>> answer;
  const auto ready = [&] {
    auto end = core_.take_end(ticket);
    if (!end) {
      answer = end.error();
    } else if (end->has_value()) {
      answer = **end;
    }
    return answer.has_value();
  };
  if (simulation_.completions().block_until(ready, deadline)) return *std::move(answer);
  return Failure{errc::wait_timeout, "the deadline has passed"};
}

result<device::CancelEffect> SimBoard::cancel(device::JobTicket ticket) {
  return with_core([&](Core& core) { return core.cancel(ticket, chip_now()); });
}

result<device::MemoryUsage> SimBoard::memory_usage(std::uint32_t chip) {
  return with_core([chip](Core& core) { return core.memory_usage(chip); });
}

result<device::Health> SimBoard::health(std::uint32_t chip) {
  return with_core([chip](Core& core) { return core.health(chip); });
}

result<device::Trace> SimBoard::take_trace(std::uint32_t chip) {
  return with_core([chip](Core& core) { return core.take_trace(chip); });
}

}   // namespace duet::tools
