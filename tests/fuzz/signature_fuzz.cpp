// signature_fuzz.cpp: any bytes as keys, as a list of keys, and as a signature with its message.
#include "device/package/signature.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

namespace {

using namespace duet::device;

/// The key that signed the corpus (RFC 8032, section 7.1, test 1).
const PublicKey& corpus_key() {
  static const PublicKey key =
      parse_public_key("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "k")
          .value();
  return key;
}

/// Ed25519 allows one signature of a message and key: any other 64 bytes must be refused.
void check_signature(std::span<const std::byte> input) {
  Signature signature = {};
  if (input.size() < signature.size()) return;
  std::copy_n(input.begin(), signature.size(), signature.begin());
  const auto message = input.subspan(signature.size());
  if (!verify(message, signature, corpus_key())) return;
  for (std::size_t at = 0; at < signature.size(); at += 9) {
    Signature other = signature;
    other[at] ^= std::byte{1};
    if (verify(message, other, corpus_key())) std::abort();
  }
}

}   // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  check_signature(std::as_bytes(std::span(data, size)));
  const auto key = parse_public_key(text, "f");
  if (key.has_value()) {
    const auto pem = public_key_pem(*key);
    if (pem.has_value() && parse_public_key(*pem, "f").value() != *key) std::abort();
  }
  const auto list = parse_key_list(text, "f");
  if (list.has_value() && (list->empty() || list->size() > key_list_max)) std::abort();
  if (list.has_error() && list.error().message.rfind("f: ", 0) != 0) std::abort();
  const auto secret = parse_private_key(text, "f");
  // An error about a private key never shows what stood in its file.
  if (secret.has_error() && secret.error().message.size() > 100) std::abort();
  return 0;
}
