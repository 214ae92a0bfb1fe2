// validator.hpp: judges a package before any device is opened.
#pragma once

#include "device/package/finding.hpp"
#include "device/package/package.hpp"
#include "device/package/signature.hpp"

#include <memory>
#include <string>
#include <vector>

namespace duet::device {

struct ValidateOptions {
  std::vector<PublicKey> trusted_keys;
  /// A missing signature, or one that no key is there to verify, is then a warning. A signature
  /// that fits none of the trusted keys stays an error: such a package was changed, or signed by a
  /// stranger.
  bool allow_unsigned = false;
};

struct ValidationReport {
  Findings findings;                        ///< sorted.
  std::shared_ptr<const Package> package;   ///< null if there is an error.
};

/// Reads every file once (mapped, hashed in a stream), so memory stays bounded whatever the sizes.
/// All findings come at once; only where the manifest itself cannot be read do the checks that need
/// it stay out. Opens no device. Any thread.
[[nodiscard]] ValidationReport validate_package(const std::string& directory,
                                                const ValidateOptions& options);

}   // namespace duet::device
