// golden_check.hpp: judges a model on its chip by the package's golden file and rule.
#pragma once

#include "device/package/golden_verdict.hpp"
#include "tools/model_client.hpp"

#include <cstddef>

namespace duet::tools {

/// Runs prompts [first, last) of the golden. Errors: those of the device.
device::result<device::GoldenVerdict> check_golden_on(ModelClient& model,
                                                      const device::Golden& golden,
                                                      std::size_t first, std::size_t last);

}   // namespace duet::tools
