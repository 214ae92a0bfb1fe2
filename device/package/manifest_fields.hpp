// manifest_fields.hpp: the schema of manifest.yaml, written once for reading and for writing.
//
// An archive offers archive(key, value) for a required key and archive.optional(key, value) for one
// that is left out when it has its default; archive.hex writes an integer in hexadecimal. The order
// here is the order in the file.
#pragma once

#include "device/package/manifest.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace duet::device {

namespace manifest_limits {
inline constexpr std::size_t items_max = 1U << 16;    // of one list; the longest: a model's tensors
inline constexpr std::size_t text_bytes_max = 1024;   // names and paths are shorter
}   // namespace manifest_limits

/// Element types of tensors and ports, and their spellings in the same order.
inline constexpr std::array<DType, 5> dtype_values = {DType::f32, DType::f16, DType::q8_0,
                                                      DType::i32, DType::bf16};
inline constexpr std::array<std::string_view, 5> dtype_spellings = {"F32", "F16", "Q8_0", "I32",
                                                                    "BF16"};

/// Spellings in order of the enumeration's values.
template <typename Enum>
struct EnumNames;

template <>
struct EnumNames<SectionKind> {
  static constexpr std::array<std::string_view, 9> names = {
      "program", "parameters", "parameter_map", "command", "csr",
      "kv",      "workspace",  "input",         "output"};
};
template <>
struct EnumNames<GraphKind> {
  static constexpr std::array<std::string_view, 2> names = {"prefill", "decode"};
};
template <>
struct EnumNames<Engine> {
  static constexpr std::array<std::string_view, 3> names = {"automatic", "ping", "pong"};
};
template <>
struct EnumNames<Processor> {
  static constexpr std::array<std::string_view, 2> names = {"cpu", "pld"};
};
template <>
struct EnumNames<ChipMode> {
  static constexpr std::array<std::string_view, 2> names = {"schip", "mchip"};
};
template <>
struct EnumNames<TaskKind> {
  static constexpr std::array<std::string_view, 2> names = {"single_chip", "multiple_chip"};
};

template <typename Archive>
void fields(Archive& archive, Section& section) {
  archive("name", section.name);
  archive("kind", section.kind);
  archive("model", section.model);
  archive.optional("graph", section.graph);
  archive.optional("path", section.path);
  archive.optional("sha256", section.sha256);
  archive("chip_mask", section.chip_mask);
  archive.hex("address", section.address);
  archive("bytes", section.bytes);
  archive.optional("writable", section.writable);
  archive.optional("core", section.core);
  archive.optional("engine", section.engine);
  archive.optional("processor", section.processor);
}

template <typename Archive>
void fields(Archive& archive, Tensor& tensor) {
  archive("name", tensor.name);
  archive("dtype", tensor.dtype);
  archive("shape", tensor.shape);
  archive("offset", tensor.offset);
  archive("bytes", tensor.bytes);
}

template <typename Archive>
void fields(Archive& archive, Port& port) {
  archive("name", port.name);
  archive("dtype", port.dtype);
  archive("shape", port.shape);
}

template <typename Archive>
void fields(Archive& archive, Graph& graph) {
  archive("name", graph.name);
  archive("kind", graph.kind);
  archive("target_chips", graph.target_chips);
  archive("mode", graph.mode);
  archive("task", graph.task);
  archive("calc_mchip", graph.calc_mchip);
  archive("batch", graph.batch);
  archive("context", graph.context);
  archive("tokens_max", graph.tokens_max);
  archive("split_prefill", graph.split_prefill);
  archive("inputs", graph.inputs);
  archive("outputs", graph.outputs);
  archive("programs", graph.programs);
  archive("commands", graph.commands);
  archive("csr", graph.csr);
  archive("workspace", graph.workspace);
  archive("sync_units", graph.sync_units);
}

template <typename Archive>
void fields(Archive& archive, ModelConfig& config) {
  archive("architecture", config.architecture);
  archive("layers", config.layers);
  archive("embedding", config.embedding);
  archive("feed_forward", config.feed_forward);
  archive("heads", config.heads);
  archive("kv_heads", config.kv_heads);
  archive("head_dim", config.head_dim);
  archive("rope_dims", config.rope_dims);
  archive("vocabulary", config.vocabulary);
  archive("context", config.context);
  archive("norm_epsilon", config.norm_epsilon);
  archive("rope_base", config.rope_base);
  archive("rope_neox", config.rope_neox);
  archive("qk_norm", config.qk_norm);
  archive("qkv_bias", config.qkv_bias);
  archive("tied_output", config.tied_output);
}

template <typename Archive>
void fields(Archive& archive, KvRegion& kv) {
  archive("section", kv.section);
  archive("dtype", kv.dtype);
  archive("slots", kv.slots);
  archive("tokens_per_slot", kv.tokens_per_slot);
  archive("bytes_per_slot", kv.bytes_per_slot);
  archive("sequence_id_first", kv.sequence_id_first);
  archive("sequence_id_last", kv.sequence_id_last);
}

template <typename Archive>
void fields(Archive& archive, GoldenRule& rule) {
  archive("kind", rule.kind);
  archive("margin_min", rule.margin_min);
  archive("logprob_mean_max", rule.logprob_mean_max);
  archive("logprob_p99_max", rule.logprob_p99_max);
}

template <typename Archive>
void fields(Archive& archive, Model& model) {
  archive("name", model.name);
  archive("alias", model.alias);
  archive("chip", model.chip);
  archive("config", model.config);
  archive("quantization", model.quantization);
  archive("source_sha256", model.source_sha256);
  archive("parameters", model.parameters);
  archive("parameter_map", model.parameter_map);
  archive("prefill", model.prefill);
  archive("decode", model.decode);
  archive("kv", model.kv);
  archive("tokenizer", model.tokenizer);
  archive("tokenizer_sha256", model.tokenizer_sha256);
  archive("golden", model.golden);
  archive("golden_sha256", model.golden_sha256);
  archive("golden_rule", model.golden_rule);
  archive("tensors", model.tensors);
}

template <typename Archive>
void fields(Archive& archive, DmaRoute& route) {
  archive("name", route.name);
  archive("model", route.model);
  archive("from", route.from);
  archive("to", route.to);
  archive("window", route.window);
}

template <typename Archive>
void fields(Archive& archive, MemoryLine& line) {
  archive("chip", line.chip);
  archive("what", line.what);
  archive("bytes", line.bytes);
}

template <typename Archive>
void fields(Archive& archive, Manifest& manifest) {
  archive("schema", manifest.schema);
  archive("kind", manifest.kind);
  archive("build_id", manifest.build_id);
  archive("numerics", manifest.numerics);
  archive("chips", manifest.chips);
  archive("cores_per_chip", manifest.cores_per_chip);
  archive("dram_bytes_per_chip", manifest.dram_bytes_per_chip);
  archive("models", manifest.models);
  archive("graphs", manifest.graphs);
  archive("sections", manifest.sections);
  archive("dma_routes", manifest.dma_routes);
  archive("memory", manifest.memory);
}

}   // namespace duet::device
