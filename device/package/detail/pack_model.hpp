// pack_model.hpp: the steps that turn one model file into sections. Internal to device/package/.
#pragma once

#include "device/package/golden.hpp"
#include "device/package/manifest.hpp"
#include "device/package/model_source.hpp"
#include "device/package/package_files.hpp"
#include "device/package/packer.hpp"
#include "device/package/sha256.hpp"
#include "device/program/elf.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device::detail {

inline constexpr std::uint32_t packer_version = 1;

/// What was read of one model before anything is written.
struct ModelInput {
  PackModel options;
  std::unique_ptr<Gguf> gguf;   ///< keeps the tensors' bytes.
  ModelSource source;
  std::string tokenizer;          ///< the document.
  std::string sha256;             ///< of the model file.
  std::optional<Golden> golden;   ///< imported, if a file was given.
  std::string golden_sha256;
  std::uint32_t context = 0;   ///< positions: the wanted number or the model's own limit.
  std::uint32_t kv_slots = 0;
};

using Step = std::function<void(const char* step, std::uint64_t done, std::uint64_t total)>;

/// Opens and hashes the model file, its tokenizer and its golden file and checks all but the
/// weights, which write_parameters() does.
[[nodiscard]] Result<ModelInput> read_input(const PackModel& options, std::uint32_t context,
                                            std::uint32_t kv_slots, const Step& step);

/// A directory that is being written: files by path, with their hashes. The first error stays. With
/// an empty directory nothing is written or hashed: only sizes are told.
class OutputTree {
 public:
  explicit OutputTree(std::string directory) : directory_(std::move(directory)) {}

  struct Written {
    std::string sha256;
    std::uint64_t bytes = 0;
  };
  /// Creates the folders of `path` and the file.
  [[nodiscard]] Result<Written> put(const std::string& path, std::span<const std::byte> bytes);
  [[nodiscard]] Result<Written> put(const std::string& path, std::string_view text);
  [[nodiscard]] bool dry() const { return directory_.empty(); }
  [[nodiscard]] std::string absolute(const std::string& path) const {
    return directory_ + "/" + path;
  }
  [[nodiscard]] Result<void> make_folders(const std::string& path) const;
  /// Notes a file that was written by other means.
  void add(const std::string& path, const Written& written) { hashes_[path] = written.sha256; }
  /// What was written, by path.
  [[nodiscard]] const Checksums& hashes() const { return hashes_; }

 private:
  std::string directory_;
  Checksums hashes_;
};

/// Names, types and places of the packed tensors, in ModelSource's order; each at a multiple of 64.
/// `bytes` becomes the size of the parameters section.
[[nodiscard]] std::vector<Tensor> plan_tensors(const ModelSource& source, std::uint64_t& bytes);

/// Writes the parameters section: matrices as Q8_0, vectors as F32, each at a multiple of 64. Fills
/// `tensors`. Refuses weights and scales that are not finite.
[[nodiscard]] Result<OutputTree::Written> write_parameters(const ModelInput& input, OutputTree& out,
                                                           const std::string& path,
                                                           std::vector<Tensor>& tensors,
                                                           const Step& step);

/// Adds the model with its graphs, sections and routes to `manifest` (addresses still 0) and writes
/// parameters, map, programs, tokenizer and golden. With a dry `out` the sections get their sizes
/// only, and neither tokenizer nor golden is looked at.
[[nodiscard]] Result<void> add_model(const ModelInput& input, const BuildId& build_id,
                                     OutputTree& out, Manifest& manifest, const Step& step);

/// Gives every section its address: one after the other on each chip, above the guard. Fails beyond
/// the DRAM.
[[nodiscard]] Result<void> place_sections(Manifest& manifest);

/// Writes command lists and register words, which need the addresses, and fills in their sections'
/// hashes.
[[nodiscard]] Result<void> write_command_files(const BuildId& build_id, OutputTree& out,
                                               Manifest& manifest);

/// Four prompts of 16 tokens chosen by `seed` and the greedy answers of the F32 reference over the
/// packed weights.
[[nodiscard]] Result<Golden> compute_golden(const Model& model, const std::vector<Program>& prefill,
                                            const std::vector<Program>& decode,
                                            std::span<const std::byte> parameters,
                                            const BuildId& seed, const Step& step);

}   // namespace duet::device::detail
