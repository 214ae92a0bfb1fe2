// parameter_map.hpp: where each tensor lies in the parameters, as the device reads it: a binary
// copy of Model::tensors.
#pragma once

#include "device/package/manifest.hpp"
#include "device/program/elf.hpp"
#include "device/program/message.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

struct ParameterMap {
  BuildId build_id = {};
  std::vector<Tensor> tensors;
};

/// Names are at most 64 bytes and shapes have one or two entries (asserted).
[[nodiscard]] std::vector<std::byte> write_parameter_map(const ParameterMap& map);

/// Strict: exact size, zero padding. `name` begins every error.
[[nodiscard]] Result<ParameterMap> read_parameter_map(std::span<const std::byte> bytes,
                                                      const std::string& name);

}   // namespace duet::device
