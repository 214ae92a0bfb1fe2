// model_client.hpp: one model on its chip, token by token, for programs that do one thing after
// another.
#pragma once

#include "device/package/manifest.hpp"
#include "tools/device_client.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace duet::tools {

/// Owns one sequence at a time of one session. One thread at a time; two clients run side by side
/// on two threads.
class ModelClient {
 public:
  /// `session` has the model loaded; the buffers are its own.
  ModelClient(DeviceClient& client, const device::Model& model, device::SessionState session,
              device::IoBuffers prefill, device::IoBuffers decode);

  /// Starts a new sequence with `prompt` and returns the logits of its last position, valid until
  /// the next call. A sequence that was begun before is released.
  device::result<std::span<const float>> begin(std::span<const std::uint32_t> prompt);

  /// Appends one token and returns the logits behind it.
  device::result<std::span<const float>> next(std::uint32_t token);

  /// Frees the slot.
  device::result<void> end();

  [[nodiscard]] const device::Model& model() const { return model_; }
  [[nodiscard]] const device::SessionState& session() const { return session_; }
  [[nodiscard]] std::uint32_t length() const { return past_; }
  [[nodiscard]] std::uint64_t jobs() const { return jobs_; }

 private:
  device::result<std::span<const float>> run(device::GraphKind graph,
                                             std::span<const std::uint32_t> tokens);

  DeviceClient& client_;
  const device::Model& model_;
  const device::SessionState session_;
  device::IoBuffers prefill_;
  device::IoBuffers decode_;
  device::SequenceId sequence_ = 0;
  bool open_ = false;
  std::uint32_t past_ = 0;
  std::uint64_t jobs_ = 0;
};

}   // namespace duet::tools
