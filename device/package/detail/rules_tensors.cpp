// rules_tensors.cpp: a model's hyper-parameters, tensors and weights (P5xx).
#include "device/package/detail/rules.hpp"
#include "device/package/limits.hpp"
#include "device/package/model_source.hpp"
#include "device/package/parameter_map.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>
#include <tuple>

namespace duet::device::detail {
namespace {

std::string tensor_key(const Model& model, const Tensor& tensor) {
  return key_of(model, "tensors.") + in_quotes(tensor.name);
}

/// True if the set, the shapes and the types are those of a whole model of this configuration.
bool check_set(const Subject& subject, const Model& model) {
  std::map<std::string_view, const Tensor*> given;
  bool sound = true;
  const auto fail = [&](Code code, const std::string& key, const std::string& message) {
    subject.report(code, key, message);
    sound = false;
  };
  for (const Tensor& tensor : model.tensors) {
    if (!given.emplace(tensor.name, &tensor).second) {
      fail(Code::tensor_set_wrong, tensor_key(model, tensor), "the tensor is there twice");
    }
  }
  for (const TensorSpec& spec : expected_tensors(model.config)) {
    const auto found = given.find(spec.name);
    if (found == given.end()) {
      fail(Code::tensor_set_wrong, key_of(model, "tensors"),
           "the tensor " + in_quotes(spec.name) + " is missing");
      continue;
    }
    const Tensor& tensor = *found->second;
    given.erase(found);
    if (tensor.shape != spec.shape) {
      fail(Code::tensor_shape_wrong, tensor_key(model, tensor),
           "the shape is not the one of a whole model of this configuration");
    }
    const DType wanted = spec.shape.size() == 2 ? DType::q8_0 : DType::f32;
    if (tensor.dtype != wanted) {
      fail(
          Code::tensor_type_wrong, tensor_key(model, tensor),
          concat("the type is ", dtype_name(tensor.dtype), ", W8A8 asks for ", dtype_name(wanted)));
    }
  }
  for (const auto& [name, tensor] : given) {
    fail(Code::tensor_set_wrong, tensor_key(model, *tensor),
         "the tensor is not part of a " + model.config.architecture + " model");
  }
  return sound;
}

/// True if every tensor lies inside the section, aligned, with the bytes of its shape, alone.
bool check_places(const Subject& subject, const Model& model, std::uint64_t section_bytes) {
  bool sound = true;
  const auto fail = [&](const Tensor& tensor, const std::string& message) {
    subject.report(Code::tensor_place_wrong, tensor_key(model, tensor), message);
    sound = false;
  };
  std::vector<const Tensor*> order;
  for (const Tensor& tensor : model.tensors) {
    std::uint64_t elements = 1;   // shapes were compared with the configuration: no overflow
    for (const std::uint64_t length : tensor.shape) elements *= length;
    const auto end = checked_add(tensor.offset, tensor.bytes);
    if (tensor.bytes != dtype_bytes(tensor.dtype, elements)) {
      fail(tensor, concat(tensor.bytes, " bytes are not those of the shape"));
    } else if (tensor.offset % package_limits::tensor_alignment != 0) {
      fail(tensor, concat("the offset ", tensor.offset, " is not a multiple of ",
                          package_limits::tensor_alignment));
    } else if (!end || *end > section_bytes) {
      fail(tensor, concat("ends outside of its section of ", section_bytes, " bytes"));
    } else {
      order.push_back(&tensor);
    }
  }
  std::sort(order.begin(), order.end(),
            [](const Tensor* a, const Tensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
      fail(*order[i], "overlaps the tensor " + in_quotes(order[i - 1]->name));
    }
  }
  return sound;
}

void check_map(const Subject& subject, const Model& model) {
  const Section* section =
      owned(subject.manifest, model.parameter_map, SectionKind::parameter_map, model.name);
  const auto bytes = section == nullptr ? std::nullopt : subject.bytes(section->path);
  if (!bytes) return;
  const auto map = read_parameter_map(*bytes, section->path);
  if (map.has_error()) {
    return subject.report_file(Code::file_malformed, section->path, map.error().message);
  }
  if (build_id_text(map->build_id) != subject.manifest.build_id) {
    subject.report_file(Code::build_id_mismatch, section->path, "is of another build");
  }
  const auto values = [](const Tensor& t) {
    return std::tie(t.name, t.dtype, t.shape, t.offset, t.bytes);
  };
  const bool equal = std::equal(
      map->tensors.begin(), map->tensors.end(), model.tensors.begin(), model.tensors.end(),
      [&](const Tensor& a, const Tensor& b) { return values(a) == values(b); });
  if (!equal) {
    subject.report_file(Code::parameter_map_wrong, section->path,
                        "differs from the tensors in the manifest");
  }
}

void check_finite(const Subject& subject, const Model& model, const std::string& path,
                  std::span<const std::byte> parameters) {
  for (const Tensor& tensor : model.tensors) {
    const auto type = weight_type(tensor.dtype);
    if (!type) continue;   // P504
    const SourceTensor source{tensor.name, *type, tensor.shape,
                              parameters.subspan(tensor.offset, tensor.bytes)};
    const auto sound = check_weights(source, path);
    if (sound.has_error()) {
      subject.report_file(Code::weight_not_finite, path, sound.error().message);
    }
  }
}

}   // namespace

void check_tensors(const Subject& subject) {
  for (const Model& model : subject.manifest.models) {
    if (model.quantization != "W8A8" || model.kv.dtype != "bf16") {
      subject.report(Code::quantization_unknown, key_of(model, "quantization"),
                     concat("the quantisation ", in_quotes(model.quantization), " with KV ",
                            in_quotes(model.kv.dtype), " is not W8A8 with bf16"));
    }
    const auto config = check_config(model.config, "model " + in_quotes(model.name));
    const std::string& architecture = model.config.architecture;
    if (architecture != "llama" && architecture != "qwen2" && architecture != "qwen3") {
      subject.report(Code::config_wrong, key_of(model, "config.architecture"),
                     in_quotes(architecture) + " is none of llama, qwen2, qwen3");
    } else if (config.has_error()) {
      subject.report(Code::config_wrong, key_of(model, "config"), config.error().message);
    } else if (check_set(subject, model)) {
      check_map(subject, model);
      const Section* section =
          owned(subject.manifest, model.parameters, SectionKind::parameters, model.name);
      const auto bytes = section == nullptr ? std::nullopt : subject.bytes(section->path);
      if (bytes && check_places(subject, model, bytes->size())) {
        check_finite(subject, model, section->path, *bytes);
      }
    }
  }
}

}   // namespace duet::device::detail
