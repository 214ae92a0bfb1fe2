// device_client.hpp: waits for the completions of a device, for programs that do one thing after
// another.
#pragma once

#include "device/contract/device.hpp"

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace duet::tools {

/// Turns the asynchronous contract into calls that wait. Any number of threads, one client; it
/// outlives its calls.
class DeviceClient {
 public:
  using Value = device::CallDone::Value;
  using Start = std::function<void(std::uint64_t tag, device::Sink sink)>;

  explicit DeviceClient(device::Device& device);

  /// Makes one call: start(tag, sink) must pass both on. Returns its outcome.
  device::result<Value> call(const Start& start);

  /// Submits a job and waits until it has completed. A refusal comes back as it is.
  device::result<device::JobResult> run(const device::JobRequest& job);

  /// The sink that sessions must be created with for run() to work.
  [[nodiscard]] device::Sink sink() const;
  [[nodiscard]] device::Device& device() const { return device_; }

 private:
  struct Waiting;
  device::Device& device_;
  std::shared_ptr<Waiting> waiting_;
};

/// "configure: already_configured sentence: detail".
[[nodiscard]] std::string failure_text(const device::Failure& failure);

}   // namespace duet::tools
