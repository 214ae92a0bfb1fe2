// gguf_fuzz.cpp: any bytes as a model file: header, metadata, model source, weights.
#include "device/package/gguf.hpp"
#include "device/package/model_source.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace duet::device;
  const auto gguf = Gguf::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (gguf.has_error()) return 0;
  for (const GgufTensor& tensor : gguf->tensors()) (void)gguf->data(tensor);
  for (const auto key : gguf->keys()) {
    (void)gguf->get_unsigned(key);
    (void)gguf->get_real(key);
    (void)gguf->get_strings(key);
    (void)gguf->get_integers(key);
    (void)gguf->get_reals(key);
  }
  const auto source = read_model_source(*gguf);
  if (source.has_error()) return 0;
  (void)check_weights(*source, "fuzz");
  for (const SourceTensor& tensor : source->tensors) {
    const GgmlType& layout = layout_of(tensor.type);
    std::vector<float> block(layout.block_elements);
    dequantize(tensor.type, tensor.data.first(layout.block_bytes), block);
  }
  return 0;
}
