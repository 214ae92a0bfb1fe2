// random_model.hpp: model files with random weights in the shapes of real models, for tests and for
// trying what only size shows.
#pragma once

#include "device/package/dequantize.hpp"
#include "device/package/manifest.hpp"
#include "device/program/message.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace duet::tools {

/// A shape that has a name. `real` ones are those of published models; the others have the heads
/// and the feed-forward of one, but a single layer and few tokens.
struct ModelShape {
  const char* name;   ///< "llama-1b".
  bool real;
  device::ModelConfig config;
};
[[nodiscard]] std::span<const ModelShape> model_shapes();
/// Null if there is none of this name.
[[nodiscard]] const ModelShape* find_model_shape(std::string_view name);

struct RandomModel {
  /// A vocabulary of at least 260: bytes, pairs of tokens that are merged, an end of text.
  device::ModelConfig config;
  /// Of matrices. Where a row is no whole number of its blocks, Q8_0 is taken, as converters do.
  device::WeightType type = device::WeightType::q8_0;
  std::uint64_t seed = 1;
  /// The weights are a hole in the file, all zeros: for what reads only the header.
  bool hollow = false;
};

/// Writes a GGUF file (version 3). Weights are spread evenly with the mean 0 and a width that keeps
/// the sums of a layer near 1, norms near 1. Memory: one megabyte and the vocabulary. The same
/// model gives the same bytes. Blocking. Errors: the file cannot be written; a shape that no model
/// has.
[[nodiscard]] device::Result<void> write_random_model(const RandomModel& model,
                                                      const std::string& path);

}   // namespace duet::tools
