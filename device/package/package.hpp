// package.hpp: a package that was validated: manifest, programs, goldens and mapped parameters.
// Immutable.
#pragma once

#include "device/kernels/executor.hpp"
#include "device/package/golden.hpp"
#include "device/package/manifest.hpp"
#include "device/package/mapped_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

enum class Trust : std::uint8_t {
  unsigned_,    ///< no signature; allowed by the options.
  unverified,   ///< a signature, but no key was trusted; allowed by the options.
  verified,     ///< signed by a trusted key.
};

/// Only validate_package() makes one, and only of a package without errors. Any thread may read;
/// views live as long as the object. The parameters are mapped, not copied.
class Package {
 public:
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const Manifest& manifest() const { return *manifest_; }
  [[nodiscard]] std::shared_ptr<const Manifest> shared_manifest() const { return manifest_; }
  /// SHA-256 of the bytes of checksums.sha256, 64 lower-case hex digits: names the exact content of
  /// every file.
  [[nodiscard]] const std::string& hash() const { return hash_; }
  /// The first 8 bytes of that hash, the first one most significant: the first 16 digits read as a
  /// number.
  [[nodiscard]] std::uint64_t hash_number() const { return hash_number_; }
  [[nodiscard]] Trust trust() const { return trust_; }

  /// The programs of a graph, core 0 first. The name must be one of the manifest's (asserted), as
  /// below.
  [[nodiscard]] const std::vector<Program>& programs(const std::string& graph) const;
  /// The tensors of a model in the order that Op::tensor indexes.
  [[nodiscard]] std::vector<TensorView> tensors(const std::string& model) const;
  /// The bytes of the model's parameters section.
  [[nodiscard]] std::span<const std::byte> parameters(const std::string& model) const;
  /// The model's tokenizer document (JSON).
  [[nodiscard]] std::string_view tokenizer(const std::string& model) const;
  [[nodiscard]] const Golden& golden(const std::string& model) const;
  /// The bytes of any file that the manifest names by its path (command lists, register words,
  /// maps).
  [[nodiscard]] std::span<const std::byte> file(const std::string& path) const;
  /// Shape of one sequence's KV memory.
  [[nodiscard]] KvLayout kv_layout(const std::string& model) const;

 private:
  friend class Validator;
  Package() = default;

  std::string directory_;
  std::shared_ptr<const Manifest> manifest_;
  std::string hash_;
  std::uint64_t hash_number_ = 0;
  Trust trust_ = Trust::unsigned_;
  std::map<std::string, std::vector<Program>> programs_;             // by graph
  std::map<std::string, Golden> goldens_;                            // by model
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;   // by path
};

/// Views of `model`'s tensors in its parameters; each tensor must lie inside them.
[[nodiscard]] std::vector<TensorView> tensor_views(const Model& model,
                                                   std::span<const std::byte> parameters);

/// Shape of one sequence's KV memory for graphs of `context` positions.
[[nodiscard]] KvLayout kv_layout_of(const ModelConfig& config, std::uint32_t context);

}   // namespace duet::device
