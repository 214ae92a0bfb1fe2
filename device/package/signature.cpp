// signature.cpp: Ed25519 by OpenSSL's EVP interface.
#include "device/package/signature.hpp"

#include "device/package/file_tree.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace duet::device {
namespace {

constexpr std::uint64_t key_file_bytes_max = 4096;                 // a PEM key has about 120 bytes
constexpr std::uint64_t key_list_bytes_max = key_list_max * 256;   // a key and a comment a line

template <auto function>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    function(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Context = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;

const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}

Key private_of(const PrivateKey& key) {
  return Key{EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(key.seed().data()),
                                          key.seed().size())};
}

Key public_of(const PublicKey& key) {
  return Key{EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(key.data()), key.size())};
}

Bio memory_of(std::string_view text) {
  return Bio{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(size));
}

/// 64 hex digits with white space around them; nothing if it is not that.
std::optional<std::array<std::byte, 32>> parse_hex(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  if (text.size() != 64) return {};
  std::array<std::byte, 32> out = {};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return {};
    out[i / 2] = static_cast<std::byte>(std::to_integer<int>(out[i / 2]) * 16 + digit);
  }
  return out;
}

/// PEM_read_bio_* would ask the terminal for the password of an encrypted key.
int no_password(char*, int, int, void*) {
  return -1;
}

}   // namespace

PrivateKey::PrivateKey(std::span<const std::byte, 32> seed) : seed_{} {
  std::copy(seed.begin(), seed.end(), seed_.begin());
}

PrivateKey::~PrivateKey() {
  OPENSSL_cleanse(seed_.data(), seed_.size());
}

PrivateKey::PrivateKey(PrivateKey&& other) noexcept : seed_(other.seed_) {
  OPENSSL_cleanse(other.seed_.data(), other.seed_.size());
}

Result<PrivateKey> generate_key() {
  const Key key{EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")};
  std::array<std::byte, 32> seed = {};
  std::size_t size = seed.size();
  if (!key || EVP_PKEY_get_raw_private_key(key.get(), raw(seed.data()), &size) != 1) {
    return failure("no Ed25519 key could be made by OpenSSL");
  }
  PrivateKey out{seed};
  OPENSSL_cleanse(seed.data(), seed.size());
  return out;
}

Result<PublicKey> public_key(const PrivateKey& key) {
  const Key handle = private_of(key);
  PublicKey out = {};
  std::size_t size = out.size();
  if (!handle || EVP_PKEY_get_raw_public_key(handle.get(), raw(out.data()), &size) != 1) {
    return failure("OpenSSL does not take the private key");
  }
  return out;
}

Result<PrivateKey> parse_private_key(std::string_view text, const std::string& file) {
  if (auto hex = parse_hex(text)) return PrivateKey{*hex};
  const Bio bio = memory_of(text);
  const Key key{PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr)};
  std::array<std::byte, 32> seed = {};
  std::size_t size = seed.size();
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_private_key(key.get(), raw(seed.data()), &size) != 1) {
    return failure(file, ": holds no unencrypted Ed25519 private key (PEM or 64 hex digits)");
  }
  PrivateKey out{seed};
  OPENSSL_cleanse(seed.data(), seed.size());
  return out;
}

Result<PublicKey> parse_public_key(std::string_view text, const std::string& file) {
  if (auto hex = parse_hex(text)) return *hex;
  const Bio bio = memory_of(text);
  const Key key{PEM_read_bio_PUBKEY(bio.get(), nullptr, no_password, nullptr)};
  PublicKey out = {};
  std::size_t size = out.size();
  if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_public_key(key.get(), raw(out.data()), &size) != 1) {
    return failure(file, ": holds no Ed25519 public key (PEM or 64 hex digits)");
  }
  return out;
}

Result<PrivateKey> read_private_key(const std::string& path) {
  auto text = read_small_file(path, key_file_bytes_max);
  if (text.has_error()) return text.error();
  auto key = parse_private_key(*text, path);
  OPENSSL_cleanse(text->data(), text->size());
  return key;
}

Result<PublicKey> read_public_key(const std::string& path) {
  const auto text = read_small_file(path, key_file_bytes_max);
  if (text.has_error()) return text.error();
  return parse_public_key(*text, path);
}

Result<std::vector<PublicKey>> parse_key_list(std::string_view text, const std::string& file) {
  std::vector<PublicKey> out;
  if (text.substr(0, 11) == "-----BEGIN ") {
    const auto key = parse_public_key(text, file);
    if (key.has_error()) return key.error();
    out.push_back(*key);
    return out;
  }
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view entry = whole.substr(0, whole.find('#'));
    if (entry.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto key = parse_hex(entry);
    if (!key) return failure(file, ": line ", line, " is not a public key of 64 hex digits");
    if (out.size() == key_list_max) return failure(file, ": has more than ", key_list_max, " keys");
    out.push_back(*key);
  }
  if (out.empty()) return failure(file, ": holds no public key");
  return out;
}

Result<std::vector<PublicKey>> read_key_list(const std::string& path) {
  const auto text = read_small_file(path, key_list_bytes_max);
  if (text.has_error()) return text.error();
  return parse_key_list(*text, path);
}

Result<std::string> private_key_pem(const PrivateKey& key) {
  const Key handle = private_of(key);
  const Bio bio{BIO_new(BIO_s_secmem())};
  if (!handle || PEM_write_bio_PrivateKey(bio.get(), handle.get(), nullptr, nullptr, 0, nullptr,
                                          nullptr) != 1) {
    return failure("the private key cannot be written as PEM");
  }
  return text_of(bio.get());
}

Result<std::string> public_key_pem(const PublicKey& key) {
  const Key handle = public_of(key);
  const Bio bio{BIO_new(BIO_s_mem())};
  if (!handle || PEM_write_bio_PUBKEY(bio.get(), handle.get()) != 1) {
    return failure("the public key cannot be written as PEM");
  }
  return text_of(bio.get());
}

Result<Signature> sign(std::span<const std::byte> message, const PrivateKey& key) {
  const Key handle = private_of(key);
  const Context context{EVP_MD_CTX_new()};
  Signature out = {};
  std::size_t size = out.size();
  if (!handle || !context ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, handle.get()) != 1 ||
      EVP_DigestSign(context.get(), raw(out.data()), &size, raw(message.data()), message.size()) !=
          1 ||
      size != out.size()) {
    return failure("OpenSSL could not sign");
  }
  return out;
}

bool verify(std::span<const std::byte> message, const Signature& signature, const PublicKey& key) {
  const Key handle = public_of(key);
  const Context context{EVP_MD_CTX_new()};
  return handle && context &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, handle.get()) == 1 &&
         EVP_DigestVerify(context.get(), raw(signature.data()), signature.size(),
                          raw(message.data()), message.size()) == 1;
}

}   // namespace duet::device
