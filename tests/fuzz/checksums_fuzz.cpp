// checksums_fuzz.cpp: any text as a checksum list; what is read must be written alike, byte for
// byte.
#include "device/package/file_tree.hpp"
#include "device/package/package_files.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace duet::device;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto list = read_checksums(text);
  if (list.has_error()) {
    if (list.error().message.empty()) std::abort();
    return 0;
  }
  // There is one way to write a list: what a signature covers has no second spelling.
  if (write_checksums(*list) != text) std::abort();
  for (const auto& [path, hash] : *list) {
    if (!is_tree_path(path) || hash.size() != 64) std::abort();
  }
  return 0;
}
