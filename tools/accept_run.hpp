// accept_run.hpp: the runner of the specification, section 6.4, step by step.
#pragma once

#include "device/calrt/vendor_runtime.hpp"
#include "device/package/validator.hpp"
#include "tools/accept_report.hpp"
#include "tools/ask.hpp"
#include "tools/device_client.hpp"
#include "tools/model_client.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace duet::tools {

struct AcceptOptions {
  std::string package;
  device::ValidateOptions validate;
  std::vector<std::pair<std::string, std::string>> asks;   ///< alias, question.
  std::uint32_t answer_tokens_max = 400;
  std::size_t terminal_columns = 0;   ///< 0: not a terminal.
};

/// Validates the files, opens (lock, reset), loads, validates what was loaded, configures once,
/// makes buffers, runs golden A and golden B, both at once, verifies output and trace, asks,
/// drains, resets the configuration, releases. The first failure ends it, after everything that was
/// taken has been given back.
class AcceptRun {
 public:
  AcceptRun(AcceptOptions options, AcceptReport& report);

  /// Files and questions; opens nothing. False: the report says why.
  bool validate();

  /// The rest, on `device`. False: the report says why.
  bool run(device::Device& device);

  /// For a message before the device is opened.
  [[nodiscard]] const device::Package& package() const { return *package_; }

 private:
  struct Chip {
    const device::Model* model = nullptr;
    device::SessionState session;
    std::vector<device::IoBuffers> buffers;
    std::unique_ptr<ModelClient> client;
  };
  struct Asked {
    std::size_t chip = 0;   // index into chips_
    std::string message;
    Question question;
  };

  bool open(DeviceClient& client);
  bool load(DeviceClient& client);
  bool configure(DeviceClient& client);
  bool make_sessions(DeviceClient& client);
  bool make_session(DeviceClient& client, Chip& chip);
  bool goldens(DeviceClient& client);
  bool both_at_once(DeviceClient& client);
  std::vector<device::TraceEvent> take_trace(DeviceClient& client, const Chip& chip,
                                             std::uint64_t& dropped);
  /// Runs body(chip index) on all chips at once and verifies that every job computed on its own
  /// chip and nothing else did.
  std::vector<device::TraceEvent> traced(DeviceClient& client,
                                         const std::function<void(std::size_t)>& body);
  bool report_overlap(const std::string& what, std::span<const device::TraceEvent> trace,
                      bool required);
  bool answer(DeviceClient& client);
  bool hash_is_ours(DeviceClient& client, const std::string& before);
  void tear_down(DeviceClient& client);

  /// One call of the contract as a step. Null if it failed.
  std::optional<DeviceClient::Value> step(DeviceClient& client, const std::string& what,
                                          const DeviceClient::Start& start,
                                          const std::string& detail = "");

  const AcceptOptions options_;
  AcceptReport& report_;
  std::shared_ptr<const device::Package> package_;
  std::vector<Asked> asked_;
  std::vector<Chip> chips_;   // one a model, in the manifest's order
  device::PackageId loaded_ = 0;
  bool opened_ = false;
  bool configured_ = false;
};

}   // namespace duet::tools
