// duet_sim_board.hpp: the emulated board in virtual time: its core, driven by the simulation.
#pragma once

#include "device/calrt/vendor_runtime.hpp"
#include "device/emulator/board_core.hpp"
#include "device/emulator/made_up_package.hpp"
#include "device/package/package.hpp"
#include "runtime/simulation/simulation.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace duet::tools {

/// A package that was read once, and the text tokens of its models.
struct SimPackage {
  std::shared_ptr<const device::Package> package;
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> ordinary;   ///< by model

  [[nodiscard]] const std::vector<std::uint32_t>& ordinary_of(const std::string& model) const;
};

/// Timed, with made-up answers. Its calls are made on lanes of the simulation's completion source,
/// which must let calls block: wait() blocks in virtual time, nothing else does. One thread.
class SimBoard final : public device::VendorRuntime, private runtime::Timer {
 public:
  /// All outlive it; `faults` may be null.
  SimBoard(runtime::simulation::Simulation& simulation, std::shared_ptr<const SimPackage> package,
           device::emulator::FaultHook* faults);
  ~SimBoard() override;

  device::result<device::Topology> open() override;
  device::result<void> close() override;
  device::result<std::vector<device::LoadedGraph>> load_package(
      const std::filesystem::path& directory) override;
  device::result<void> configure() override;
  device::result<std::string> current_hash() override;
  device::result<void> reset_configuration() override;
  device::result<void> reset(device::ResetScope scope, std::uint32_t chip) override;
  device::result<device::IoBuffers> allocate_io(device::GraphHandle graph) override;
  device::result<void> release_io(std::uint64_t buffers) override;
  device::result<void> kv_reserve(std::uint32_t chip, device::Generation generation,
                                  device::SequenceId sequence, std::uint32_t tokens) override;
  device::result<void> kv_commit(std::uint32_t chip, device::Generation generation,
                                 device::SequenceId sequence, std::uint32_t tokens) override;
  device::result<void> kv_rollback(std::uint32_t chip, device::Generation generation,
                                   device::SequenceId sequence) override;
  device::result<void> kv_release(std::uint32_t chip, device::Generation generation,
                                  device::SequenceId sequence) override;
  device::result<device::JobTicket> submit(const device::VendorJob& job) override;
  device::result<device::VendorJobEnd> wait(device::JobTicket ticket,
                                            device::TimePoint deadline) override;
  device::result<device::CancelEffect> cancel(device::JobTicket ticket) override;
  device::result<device::MemoryUsage> memory_usage(std::uint32_t chip) override;
  device::result<device::Health> health(std::uint32_t chip) override;
  device::result<device::Trace> take_trace(std::uint32_t chip) override;

  [[nodiscard]] const device::emulator::BoardCore& core() const noexcept { return core_; }

 private:
  struct Staging {
    std::uint64_t id = 0;
    std::vector<std::uint32_t> tokens;
    std::vector<float> logits;
    std::uint32_t made_up = 0;   ///< the one logit that is not 0
  };
  using Core = device::emulator::BoardCore;

  /// The core's next event is due.
  void expired() noexcept override;
  [[nodiscard]] device::ChipNanoseconds chip_now() const noexcept;
  void drive();
  void make_up(const device::emulator::StartCompute& action);
  device::result<void> finish_reset(device::result<void> begun);
  template <typename Call>
  auto with_core(Call call) {
    drive();
    auto answer = call(core_);
    drive();
    return answer;
  }

  runtime::simulation::Simulation& simulation_;
  const std::shared_ptr<const SimPackage> package_;
  device::emulator::FaultHook* const faults_;
  Core core_;
  runtime::TimePoint opened_at_{};
  std::unique_ptr<device::emulator::PackageImage> image_;
  std::unique_ptr<device::emulator::MadeUpPackage> made_up_;
  std::array<Staging, device::emulator::limits::io_buffers_board_max> staging_;
};

}   // namespace duet::tools
