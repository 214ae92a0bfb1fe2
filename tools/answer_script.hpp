// answer_script.hpp: the scripted answers of a configuration, for the emulated board.
#pragma once

#include "config/config.hpp"
#include "device/emulator/fault_hook.hpp"
#include "device/package/package.hpp"

#include <memory>

namespace duet::tools {

/// Null if the configuration scripts no answer. Aliases become the package's models, and an answer
/// that ends gets its tokenizer's end token (none: the answer goes on). The configuration was
/// cross-checked with the package.
[[nodiscard]] std::unique_ptr<device::emulator::FaultHook> answer_script(
    const config::Config& config, const device::Package& package);

}   // namespace duet::tools
