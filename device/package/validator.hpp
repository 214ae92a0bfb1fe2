// validator.hpp: judges a package before any device is opened.
#pragma once

#include "device/package/finding.hpp"
#include "device/package/package.hpp"
#include "device/package/signature.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

struct ValidateOptions {
  std::vector<PublicKey> trusted_keys;
  /// Keys that must no longer be believed, trusted or not: what they signed is refused even where
  /// unsigned packages are allowed.
  std::vector<PublicKey> revoked_keys;
  /// A missing signature, or one that no key is there to verify, is then a warning. A signature
  /// that fits none of the trusted keys stays an error: such a package was changed, or signed by a
  /// stranger.
  bool allow_unsigned = false;
};

/// What the signature is worth, whatever else is wrong with the package.
enum class SignatureVerdict : std::uint8_t {
  missing,        ///< there is none (P406), or the package could not be read.
  malformed,      ///< not a signature (P408).
  unverifiable,   ///< no key was given to verify it (P409).
  stranger,       ///< of none of the trusted keys, or the list was changed (P407).
  revoked,        ///< of a revoked key (P410).
  verified,       ///< of a trusted key, over the very list that is there.
};

struct ValidationReport {
  SignatureVerdict signature = SignatureVerdict::missing;
  std::optional<PublicKey> signer;          ///< whose signature it is: if verified or revoked.
  Findings findings;                        ///< sorted.
  std::shared_ptr<const Package> package;   ///< null if there is an error.
};

/// Reads every file once (mapped, hashed in a stream), so memory stays bounded whatever the sizes.
/// All findings come at once; only where the manifest itself cannot be read do the checks that need
/// it stay out. Opens no device. Any thread.
[[nodiscard]] ValidationReport validate_package(const std::string& directory,
                                                const ValidateOptions& options);

/// "missing", "malformed", "unverifiable", "stranger", "revoked", "verified".
[[nodiscard]] std::string_view name_of(SignatureVerdict verdict);
/// For a log: "signature verified, signed by KEY (64 hex digits)", "signature missing".
[[nodiscard]] std::string signature_text(const ValidationReport& report);

}   // namespace duet::device
