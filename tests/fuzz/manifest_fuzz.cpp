// manifest_fuzz.cpp: any text as a manifest; what is read must be written and read again alike.
#include "device/package/manifest_yaml.hpp"
#include "device/package/package_files.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace duet::device;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  Findings findings;
  const auto manifest = read_manifest(text, findings);
  for (const Finding& finding : findings.list()) (void)finding_text(finding);
  (void)read_checksums(text);
  (void)read_provenance(text);
  unsigned code = 0;
  (void)check_compatibility(text, code);
  if (!manifest) return 0;
  const auto written = write_manifest(*manifest);
  Findings none;
  const auto again = read_manifest(written, none);
  if (!again || write_manifest(*again) != written) std::abort();
  return 0;
}
