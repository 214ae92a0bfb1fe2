// packer.hpp: compiles GGUF models into a package for the emulated board.
#pragma once

#include "device/package/finding.hpp"
#include "device/package/manifest.hpp"
#include "device/package/signature.hpp"
#include "device/program/message.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace duet::device {

struct PackModel {
  std::string name;     ///< "model-a": the folder and owner name; a plain name.
  std::string alias;    ///< the public name; a plain name. Empty: the same as `name`.
  std::string gguf;     ///< path of the model file.
  std::string golden;   ///< path of a golden file of the training scripts; empty: computed by the
                        ///< F32 reference.
  std::uint32_t chip = 0;
  std::string sha256 = {};   ///< of the model file, lower-case hex; empty: not compared.
};

struct PackOptions {
  std::vector<PackModel> models;   ///< one (single) or two (dual), on different chips.
  std::string directory;           ///< is created; must not exist unless `replace`.
  bool replace = false;            ///< an older package in `directory` makes way, at the very end.
  std::uint32_t context = 4096;    ///< positions; a model with fewer keeps its own number.
  std::uint32_t kv_slots = 8;      ///< sequences of a model at a time.
  std::uint64_t dram_bytes_per_chip = std::uint64_t{16} << 30;
  const PrivateKey* key = nullptr;   ///< null: the package stays unsigned. Must outlive the call.
};

/// How far a build is; for a progress line.
struct PackProgress {
  std::string model;
  std::string step;         ///< "weights", "golden", "check".
  std::uint64_t done = 0;   ///< of `total`, in the step's own unit.
  std::uint64_t total = 0;
};

struct PackResult {
  std::string build_id;
  std::string hash;          ///< of the package, as Package::hash().
  std::uint64_t bytes = 0;   ///< of all files.
};

/// Builds beside `directory` and renames at the end: what is there is whole, and nothing half-done
/// stays. The result was validated. The same input (files by content, options) gives the same
/// bytes. Memory: the model files are mapped, one row is widened at a time. Blocking; any thread;
/// `progress` is called on it.
[[nodiscard]] Result<PackResult> build_package(
    const PackOptions& options, const std::function<void(const PackProgress&)>& progress = {});

/// The manifest that build_package() would write for these options, with every section's size and
/// address and the memory lines, but without hashes and build id. Reads the headers of the model
/// files, not the weights; the chips' DRAM limits nothing here, so that what does not fit can be
/// judged too. `directory`, `replace`, `key` and goldens are not looked at. Blocking; any thread.
[[nodiscard]] Result<Manifest> plan_package(const PackOptions& options);

/// Hashes every file of `directory`, writes checksums.sha256 and signs it (or removes the signature
/// if `key` is null).
[[nodiscard]] Result<void> seal_package(const std::string& directory, const PrivateKey* key);

}   // namespace duet::device
