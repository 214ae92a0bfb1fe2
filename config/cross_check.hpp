// cross_check.hpp: compares a configuration with the manifest of the package that it names.
#pragma once

#include "config/config.hpp"
#include "device/package/manifest.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace duet::config {

/// Every model of the configuration against the package that holds them all: alias →
/// model → chip → graphs exactly, never by a part of a name; chips, context, batch, jobs in flight,
/// sequences, tokenizer. Findings name the configuration's file, line and key. A manifest with more
/// models than the configuration is fine; the idle chip stays idle.
///
/// The manifest should have passed the package's own validation, but anything is taken.
[[nodiscard]] std::vector<Finding> cross_check(const Config& config,
                                               const device::Manifest& manifest);

/// models[index] alone against its own package. Asserts the index.
[[nodiscard]] std::vector<Finding> cross_check(const Config& config, std::size_t index,
                                               const device::Manifest& manifest);

/// The manifest's model that `options` binds to: by name if it has one, else by alias. nullptr if
/// there is none.
[[nodiscard]] const device::Model* bound_model(const actors::ModelOptions& options,
                                               const device::Manifest& manifest);

}   // namespace duet::config
