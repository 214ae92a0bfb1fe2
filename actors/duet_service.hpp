// duet_service.hpp: the application behind Service: its actors, made and ended together.
#pragma once

#include "actors/administration.hpp"
#include "actors/device_supervisor.hpp"
#include "actors/model_board.hpp"
#include "actors/options.hpp"
#include "actors/router.hpp"
#include "actors/service.hpp"
#include "device/contract/device.hpp"
#include "device/package/package.hpp"
#include "runtime/system.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace duet::actors {

/// What the application tells its host.
struct ServiceHooks {
  std::function<void(const RequestRecord&)> on_request;   ///< on the request's strand.
  std::function<void(const std::string& event, const std::string& detail)> on_life_cycle;
  std::function<void()> restart_process;
};

/// Spawns one worker a model, the router and the supervisor, which begins to bring the board up at
/// once.
class DuetService final : public Service, public Administration {
 public:
  /// `system` and `device` outlive it. `package` is validated and has the models of `options`;
  /// throws std::invalid_argument naming the model if it has not.
  DuetService(runtime::System& system, device::Device& device,
              std::shared_ptr<const device::Package> package, ServiceOptions options,
              ServiceHooks hooks);

  void submit(GenerateRequest request, std::shared_ptr<OutputStream> stream) override;
  void cancel(const std::string& id, const std::string& key, bool any_key,
              std::function<void(CancelResult)> done) override;
  [[nodiscard]] std::vector<ModelStatus> models() const override;
  [[nodiscard]] std::vector<ModelMetrics> metrics() const override;

  void take_traces(std::function<void(std::vector<ChipTrace>)> done) override;
  void measure_memory(std::function<void(std::vector<ChipMemory>)> done) override;

  /// Refuses new requests, lets running answers finish within the drain deadline, releases the
  /// board. `done` is called once, on the supervisor's strand or from here; false: the board could
  /// not be released cleanly.
  void shut_down(std::function<void(bool)> done);

 private:
  std::vector<std::shared_ptr<ModelBoard>> boards_;
  std::vector<ChipMemory> plans_;   ///< one a model, nothing measured yet.
  runtime::System& system_;
  device::Device& device_;
  const std::chrono::seconds stop_deadline_;
  runtime::Ref<RouterMessage> router_;
  runtime::Ref<DeviceSupervisorMessage> supervisor_;
};

}   // namespace duet::actors
