// signature.hpp: Ed25519 keys and signatures of a package's checksum list (OpenSSL).
//
// A signature is the raw 64 bytes over the exact bytes of checksums.sha256, so that
// `openssl pkeyutl -verify -rawin -pubin` can check a package too.
#pragma once

#include "device/program/message.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::device {

using PublicKey = std::array<std::byte, 32>;
using Signature = std::array<std::byte, 64>;

inline constexpr std::size_t key_list_max = 1000;   // each costs a verification a package

/// The 32-byte seed of an Ed25519 key; wiped when destroyed.
class PrivateKey {
 public:
  explicit PrivateKey(std::span<const std::byte, 32> seed);
  ~PrivateKey();
  PrivateKey(PrivateKey&& other) noexcept;
  PrivateKey& operator=(PrivateKey&&) = delete;

  [[nodiscard]] std::span<const std::byte, 32> seed() const { return seed_; }

 private:
  std::array<std::byte, 32> seed_;
};

/// A fresh key from the operating system's random source, by OpenSSL.
[[nodiscard]] Result<PrivateKey> generate_key();
[[nodiscard]] Result<PublicKey> public_key(const PrivateKey& key);

/// PEM ("BEGIN PRIVATE KEY", PKCS#8, not encrypted; "BEGIN PUBLIC KEY") or 64 hex digits. `file`
/// begins every error, which never holds key material.
[[nodiscard]] Result<PrivateKey> parse_private_key(std::string_view text, const std::string& file);
[[nodiscard]] Result<PublicKey> parse_public_key(std::string_view text, const std::string& file);
[[nodiscard]] Result<PrivateKey> read_private_key(const std::string& path);
[[nodiscard]] Result<PublicKey> read_public_key(const std::string& path);

/// Public keys for a list of revoked or trusted ones: one key of 64 hex digits a line, `#` begins a
/// comment, blank lines are skipped; or a single key as parse_public_key() takes it. At least one,
/// at most key_list_max: an empty list is more likely a mistake.
[[nodiscard]] Result<std::vector<PublicKey>> parse_key_list(std::string_view text,
                                                            const std::string& file);
[[nodiscard]] Result<std::vector<PublicKey>> read_key_list(const std::string& path);

[[nodiscard]] Result<std::string> private_key_pem(const PrivateKey& key);
[[nodiscard]] Result<std::string> public_key_pem(const PublicKey& key);

[[nodiscard]] Result<Signature> sign(std::span<const std::byte> message, const PrivateKey& key);
[[nodiscard]] bool verify(std::span<const std::byte> message, const Signature& signature,
                          const PublicKey& key);

}   // namespace duet::device
