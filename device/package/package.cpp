// package.cpp: access to the parts of a validated package.
#include "device/package/package.hpp"

#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

namespace duet::device {

const std::vector<Program>& Package::programs(const std::string& graph) const {
  const auto found = programs_.find(graph);
  DUET_ASSERT(found != programs_.end(), graph);
  return found->second;
}

std::vector<TensorView> Package::tensors(const std::string& model) const {
  const Model* found = find_model(*manifest_, model);
  DUET_ASSERT(found != nullptr, model);
  return tensor_views(*found, parameters(model));
}

std::span<const std::byte> Package::parameters(const std::string& model) const {
  const Model* found = find_model(*manifest_, model);
  DUET_ASSERT(found != nullptr, model);
  const Section* section = find_section(*manifest_, found->parameters);
  DUET_ASSERT(section != nullptr, found->parameters);
  return file(section->path);
}

std::string_view Package::tokenizer(const std::string& model) const {
  const Model* found = find_model(*manifest_, model);
  DUET_ASSERT(found != nullptr, model);
  return as_text(file(found->tokenizer));
}

const Golden& Package::golden(const std::string& model) const {
  const auto found = goldens_.find(model);
  DUET_ASSERT(found != goldens_.end(), model);
  return found->second;
}

std::span<const std::byte> Package::file(const std::string& path) const {
  const auto found = files_.find(path);
  DUET_ASSERT(found != files_.end(), path);
  return found->second->bytes();
}

KvLayout Package::kv_layout(const std::string& model) const {
  const Model* found = find_model(*manifest_, model);
  DUET_ASSERT(found != nullptr, model);
  return kv_layout_of(found->config, found->kv.tokens_per_slot);
}

std::vector<TensorView> tensor_views(const Model& model, std::span<const std::byte> parameters) {
  std::vector<TensorView> out;
  out.reserve(model.tensors.size());
  for (const Tensor& tensor : model.tensors) {
    DUET_ASSERT(
        tensor.offset <= parameters.size() && tensor.bytes <= parameters.size() - tensor.offset,
        tensor.name);
    const bool matrix = tensor.shape.size() == 2;
    out.push_back({tensor.dtype, matrix ? tensor.shape[0] : 1, tensor.shape[matrix ? 1 : 0],
                   parameters.data() + tensor.offset});
  }
  return out;
}

KvLayout kv_layout_of(const ModelConfig& config, std::uint32_t context) {
  return {config.layers, context, config.kv_heads, config.head_dim};
}

}   // namespace duet::device
