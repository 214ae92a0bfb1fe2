// manifest.hpp: what manifest.yaml says, as plain values. Nothing is found by name patterns: all is
// written out here.
#pragma once

#include "device/program/op.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace duet::device {

/// Element types of tensors, with GGUF's numbers for those that GGUF has.
enum class DType : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8, i32 = 26, bf16 = 30 };

enum class SectionKind : std::uint8_t {
  program,         ///< an ELF file for one CalCore.
  parameters,      ///< the tensors of one model.
  parameter_map,   ///< where each tensor lies in the parameters (binary copy of Model::tensors, for
                   ///< the device).
  command,         ///< a command list of one graph, one processor (CPU or PLD) and one engine.
  csr,             ///< register words of one graph.
  kv,              ///< reserved memory: the key/value slots of one model.
  workspace,       ///< reserved memory: may be shared by the prefill and decode of one model.
  input,           ///< reserved memory: staging of a job's input (one a engine).
  output,          ///< reserved memory: staging of a job's output (one a engine).
};

enum class Engine : std::uint8_t {
  automatic,
  ping,
  pong
};                                                     ///< job engine; never a core affinity.
enum class Processor : std::uint8_t { cpu, pld };      ///< who executes a command list.
enum class ChipMode : std::uint8_t { schip, mchip };   ///< compiled for one chip, for several.
enum class TaskKind : std::uint8_t { single_chip, multiple_chip };

/// A piece of device memory, filled from a file or only reserved.
struct Section {
  std::string name;   ///< unique in the package.
  SectionKind kind = SectionKind::program;
  std::string model;    ///< the model that owns it.
  std::string graph;    ///< empty unless it belongs to one graph.
  std::string path;     ///< relative to the package; empty for reserved memory.
  std::string sha256;   ///< 64 lower-case hex digits of the file; empty for reserved memory.
  std::uint32_t chip_mask =
      0;                       ///< bit n: chip n. A legal single-chip section has exactly one bit.
  std::uint64_t address = 0;   ///< in the chip's local DRAM.
  std::uint64_t bytes = 0;
  bool writable = false;
  std::optional<std::uint32_t> core;    ///< program: the CalCore.
  std::optional<Engine> engine;         ///< command, input, output: ping or pong.
  std::optional<Processor> processor;   ///< command.
};

struct Tensor {
  std::string name;   ///< GGUF name, e.g. "blk.0.attn_q.weight".
  DType dtype = DType::f32;
  std::vector<std::uint64_t> shape;   ///< outermost first: [rows, columns] or [elements].
  std::uint64_t offset = 0;           ///< in the model's parameters section; a multiple of 64.
  std::uint64_t bytes = 0;
};

/// A tensor at a graph's border.
struct Port {
  std::string name;   ///< "tokens", "logits".
  DType dtype = DType::f32;
  std::vector<std::uint64_t> shape;
};

struct Graph {
  std::string name;   ///< exact and unique in the package.
  GraphKind kind = GraphKind::prefill;
  std::vector<std::uint32_t> target_chips;   ///< tarChipN.
  ChipMode mode = ChipMode::schip;
  TaskKind task = TaskKind::single_chip;
  bool calc_mchip = false;
  std::uint32_t batch = 1;
  std::uint32_t context = 0;      ///< positions of a sequence.
  std::uint32_t tokens_max = 1;   ///< tokens of one job: prefill = context, decode = 1.
  bool split_prefill = false;     ///< a prompt may be given in several prefill jobs.
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::string> programs;       ///< section names, one a CalCore.
  std::vector<std::string> commands;       ///< section names.
  std::string csr;                         ///< section name.
  std::string workspace;                   ///< section name.
  std::vector<std::uint32_t> sync_units;   ///< device-wide numbers; not shared between models.
};

/// The hyper-parameters from which the programs were compiled.
struct ModelConfig {
  std::string architecture;   ///< "llama", "qwen2" or "qwen3".
  std::uint32_t layers = 0;
  std::uint32_t embedding = 0;   ///< elements of the residual stream.
  std::uint32_t feed_forward = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t rope_dims = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;   ///< the model file's own limit.
  float norm_epsilon = 0;
  float rope_base = 0;
  bool rope_neox = false;
  bool qk_norm = false;
  bool qkv_bias = false;
  bool tied_output = false;
};

struct KvRegion {
  std::string section;
  std::string dtype = "bf16";
  std::uint32_t slots = 0;             ///< sequences that fit at the same time.
  std::uint32_t tokens_per_slot = 0;   ///< = context.
  std::uint64_t bytes_per_slot = 0;
  std::uint64_t sequence_id_first = 0;   ///< the model's own range of sequence ids.
  std::uint64_t sequence_id_last = 0;
};

struct DmaRoute {
  std::string name;
  std::string model;
  std::string from;   ///< "host" or "chip0"…
  std::string to;
  std::string window;   ///< host mapping it uses; not shared between models.
};

struct GoldenRule {
  std::string kind = "tokens";   ///< "tokens": teacher-forced, see docs/package.md.
  double margin_min =
      0.1;   ///< the best token must agree where the golden's margin is at least this.
  double logprob_mean_max =
      0.002;   ///< mean |difference of log-probability| of the golden's token, natural log.
  double logprob_p99_max = 0.03;
};

struct Model {
  std::string name;    ///< "model-a": the folder and the owner name in sections.
  std::string alias;   ///< the public name.
  std::uint32_t chip = 0;
  ModelConfig config;
  std::string quantization;    ///< "W8A8".
  std::string source_sha256;   ///< of the model file it was built from.
  std::string parameters;      ///< section name.
  std::string parameter_map;   ///< section name.
  std::vector<Tensor> tensors;
  std::string prefill;   ///< graph name.
  std::string decode;    ///< graph name.
  KvRegion kv;
  std::string tokenizer;   ///< path relative to the package.
  std::string tokenizer_sha256;
  std::string golden;   ///< path relative to the package.
  std::string golden_sha256;
  GoldenRule golden_rule;
};

/// One line of the memory report (model_memory_reserved_info.txt), per chip.
struct MemoryLine {
  std::uint32_t chip = 0;
  std::string what;   ///< weights, kv, workspace, code, io, metadata, fragmentation, guard.
  std::uint64_t bytes = 0;
};

struct Manifest {
  std::string schema;     ///< "duet-package/v1".
  std::string kind;       ///< "dual" or "single".
  std::string build_id;   ///< 32 lower-case hex digits, the same in every section's provenance.
  std::uint32_t numerics = 1;
  std::uint32_t chips = 2;
  std::uint32_t cores_per_chip = 2;
  std::uint64_t dram_bytes_per_chip = 0;   ///< the capacity that the address plan was made for.
  std::vector<Model> models;
  std::vector<Graph> graphs;
  std::vector<Section> sections;
  std::vector<DmaRoute> dma_routes;
  std::vector<MemoryLine> memory;
};

[[nodiscard]] const Model* find_model(const Manifest& manifest, const std::string& name);
[[nodiscard]] const Graph* find_graph(const Manifest& manifest, const std::string& name);
[[nodiscard]] const Section* find_section(const Manifest& manifest, const std::string& name);

}   // namespace duet::device
