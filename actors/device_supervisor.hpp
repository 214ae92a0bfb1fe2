// device_supervisor.hpp: the one owner of the board's life cycle.
#pragma once

#include "actors/messages.hpp"
#include "actors/model_board.hpp"
#include "actors/options.hpp"
#include "device/contract/device.hpp"
#include "device/package/package.hpp"
#include "runtime/behaviour.hpp"
#include "runtime/self.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace duet::actors {

/// One model under the supervisor's care.
struct SupervisedModel {
  ModelOptions options;
  runtime::Ref<ModelWorkerMessage> worker;
  std::shared_ptr<ModelBoard> board;
  const device::Model* model = nullptr;   ///< of the package's manifest.
};

struct SupervisorSetup {
  SupervisorSetup() = default;
  device::Device* device = nullptr;                 ///< outlives the actor.
  std::shared_ptr<const device::Package> package;   ///< validated.
  DeviceOptions options;
  std::vector<SupervisedModel> models;
  runtime::Ref<RouterMessage> router;
  std::function<void(const std::string& event, const std::string& detail)> log;   ///< life cycle.
  std::function<void()> restart_process;   ///< the board cannot be mended from here.
};

/// Brings the board up (open with reset, load, compare, configure once, hash, sessions, goldens,
/// warm-up), then waits for faults. At a fault both models share one health state (F0: every fault
/// counts as polluting the board, R-11.4): both are withdrawn, the device is reset and brought up
/// again, at most DeviceOptions::recovery_attempts times in a row, then Failed.
runtime::Behaviour device_supervisor(runtime::Self<DeviceSupervisorMessage> self,
                                     SupervisorSetup setup);

}   // namespace duet::actors
