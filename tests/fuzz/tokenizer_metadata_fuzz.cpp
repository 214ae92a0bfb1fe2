// tokenizer_metadata_fuzz.cpp: any GGUF as a tokenizer; any text as a tokenizer document or golden
// file.
#include "device/package/golden.hpp"
#include "device/package/tokenizer_metadata.hpp"
#include "device/program/byte_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace duet::device;
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)check_tokenizer_document(as_text(bytes), 1000, "fuzz");
  if (const auto golden = read_golden(as_text(bytes), "fuzz"))
    (void)check_golden(*golden, 1000, 1000, "fuzz");
  (void)import_golden(as_text(bytes), "q8_0", "fuzz");
  const auto gguf = Gguf::parse(bytes, "fuzz");
  if (gguf.has_error()) return 0;
  const auto document = tokenizer_document(*gguf);
  // What the converter writes, a package must take.
  if (document.has_value() &&
      check_tokenizer_document(*document, ~std::uint64_t{0}, "fuzz").has_error())
    std::abort();
  return 0;
}
