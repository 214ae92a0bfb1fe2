// package_image.hpp: what the emulated board reads of a package directory.
#pragma once

#include "device/contract/types.hpp"
#include "device/package/manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace duet::device::emulator {

/// One opened package. Immutable; its bytes live as long as it does.
class PackageImage {
 public:
  virtual ~PackageImage() = default;
  [[nodiscard]] virtual const Manifest& manifest() const = 0;
  /// SHA-256 of the bytes of checksums.sha256, 64 lower-case hex digits.
  [[nodiscard]] virtual const std::string& hash() const = 0;
  /// The graph's programs in the order of their cores. Errors: package_invalid.
  [[nodiscard]] virtual result<std::vector<Program>> programs(const Graph& graph) const = 0;
  /// The bytes of a section's file. Errors: package_invalid.
  [[nodiscard]] virtual result<std::span<const std::byte>> file(const Section& section) const = 0;
  /// The ids of the model's tokens that are plain text, ascending: no control, unknown, byte or
  /// unused ones. Asked by boards that make tokens up. Errors: package_invalid.
  [[nodiscard]] virtual result<std::vector<std::uint32_t>> ordinary_tokens(
      const Model& model) const = 0;
};

/// Opens a directory. Errors: package_invalid.
using OpenPackage =
    std::function<result<std::unique_ptr<PackageImage>>(const std::filesystem::path& directory)>;

}   // namespace duet::device::emulator
