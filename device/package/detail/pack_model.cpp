// pack_model.cpp: a model's sections, programs, commands and address plan.
#include "device/package/detail/pack_model.hpp"

#include "device/package/limits.hpp"
#include "device/package/manifest_yaml.hpp"
#include "device/package/package.hpp"
#include "device/package/parameter_map.hpp"
#include "device/program/command.hpp"
#include "device/program/lower.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>

namespace duet::device::detail {
namespace {

constexpr std::uint64_t command_header_bytes = 168;
constexpr std::uint64_t csr_word_bytes = 16;
constexpr std::uint64_t csr_words = 8;
constexpr std::uint64_t cpu_commands = 5;
constexpr std::uint64_t pld_commands = 4;

std::uint64_t round_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Adds one model to the manifest, step by step; keeps what the steps share.
class ModelBuilder {
 public:
  ModelBuilder(const ModelInput& input, const BuildId& build_id, OutputTree& out,
               Manifest& manifest, const Step& step)
      : input_(input),
        build_id_(build_id),
        out_(out),
        manifest_(manifest),
        step_(step),
        index_(manifest.models.size()) {}

  Result<void> run() {
    describe();
    for (const auto action :
         {&ModelBuilder::add_weights, &ModelBuilder::add_map, &ModelBuilder::add_graphs,
          &ModelBuilder::add_memory, &ModelBuilder::add_tokenizer, &ModelBuilder::add_golden}) {
      const bool outside = action == &ModelBuilder::add_tokenizer ||   // of the chip's memory
                           action == &ModelBuilder::add_golden;
      if (out_.dry() && outside) continue;
      const Result<void> done = (this->*action)();
      if (done.has_error()) return done.error();
    }
    add_routes();
    manifest_.models.push_back(std::move(model_));
    return {};
  }

  ~ModelBuilder() {
    if (mapped_ != nullptr || parameters_.empty()) return;
    ::munmap(const_cast<std::byte*>(parameters_.data()), parameters_.size());
  }
  ModelBuilder(const ModelBuilder&) = delete;
  ModelBuilder& operator=(const ModelBuilder&) = delete;

 private:
  void describe() {
    model_.name = input_.options.name;
    model_.alias = input_.options.alias;
    model_.chip = input_.options.chip;
    model_.config = input_.source.config;
    model_.quantization = "W8A8";
    model_.source_sha256 = input_.sha256;
    std::string base = model_.name;
    std::replace(base.begin(), base.end(), '-', '_');
    model_.prefill = base + "_prefill";
    model_.decode = base + "_decode";
  }

  Section& add_section(const std::string& name, SectionKind kind, const std::string& graph = {}) {
    Section section;
    section.name = model_.name + "." + name;
    section.kind = kind;
    section.model = model_.name;
    section.graph = graph;
    section.chip_mask = 1U << model_.chip;
    return manifest_.sections.emplace_back(std::move(section));
  }
  void fill(Section& section, const std::string& path, const OutputTree::Written& written) {
    section.path = path;
    section.sha256 = written.sha256;
    section.bytes = written.bytes;
  }

  Result<void> add_weights() {
    const std::string path = model_.name + "/params/parameters.bin";
    const auto written = write_parameters(input_, out_, path, model_.tensors, step_);
    if (written.has_error()) return written.error();
    Section& section = add_section("params", SectionKind::parameters);
    fill(section, path, *written);
    model_.parameters = section.name;
    if (out_.dry()) return reserve_parameters(written->bytes);
    auto mapped = MappedFile::open(out_.absolute(path));
    if (mapped.has_error()) return mapped.error();
    mapped_ = std::move(*mapped);
    parameters_ = mapped_->bytes();
    return {};
  }

  /// Addresses without memory: measuring looks at where weights lie, never at the weights.
  Result<void> reserve_parameters(std::uint64_t bytes) {
    void* address =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) {
      return failure(input_.options.gguf, ": ", bytes,
                     " bytes of weights cannot be laid out: ", std::strerror(errno));
    }
    parameters_ = {static_cast<const std::byte*>(address), bytes};
    return {};
  }

  Result<void> add_map() {
    const std::string path = model_.name + "/params/parameter_map.bin";
    const auto written = out_.put(path, write_parameter_map({build_id_, model_.tensors}));
    if (written.has_error()) return written.error();
    Section& section = add_section("params.map", SectionKind::parameter_map);
    fill(section, path, *written);
    model_.parameter_map = section.name;
    return {};
  }

  Result<void> add_graphs() {
    const std::string workspace = model_.name + ".workspace";
    for (const GraphKind kind : {GraphKind::prefill, GraphKind::decode}) {
      const bool prefill = kind == GraphKind::prefill;
      auto programs = lower(model_.config, model_.tensors, prefill ? model_.prefill : model_.decode,
                            kind, model_.chip, manifest_.cores_per_chip);
      if (programs.has_error()) return failure(input_.options.gguf, ": ", programs.error());
      const auto measured = measure(*programs);
      if (measured.has_error()) return measured.error();
      Graph graph;
      graph.name = prefill ? model_.prefill : model_.decode;
      graph.kind = kind;
      graph.target_chips = {model_.chip};
      graph.context = input_.context;
      graph.tokens_max = prefill ? input_.context : 1;
      graph.split_prefill = prefill;
      graph.inputs = {{"tokens", DType::i32, {1, graph.tokens_max}}};
      graph.outputs = {{"logits", DType::f32, {1, model_.config.vocabulary}}};
      graph.workspace = workspace;
      const auto added = add_programs(*programs, graph);
      if (added.has_error()) return added.error();
      add_commands(graph);
      (prefill ? prefill_ : decode_) = std::move(*programs);
      manifest_.graphs.push_back(std::move(graph));
    }
    return {};
  }

  /// Verifies the programs as a board would and learns how much workspace they need.
  Result<void> measure(const std::vector<Program>& programs) {
    const auto executable =
        Executable::create(programs, tensor_views(model_, parameters_),
                           kv_layout_of(model_.config, input_.context), Arithmetic::w8a8);
    if (executable.has_error()) return failure(input_.options.gguf, ": ", executable.error());
    workspace_bytes_ = std::max(
        workspace_bytes_, (*executable)->make_workspace(package_limits::tile_tokens)->bytes());
    return {};
  }

  Result<void> add_programs(const std::vector<Program>& programs, Graph& graph) {
    const std::string kind{name_of(graph.kind)};
    for (const Program& program : programs) {
      const std::string path =
          concat(model_.name, "/", kind, "/ccu", program.core, "_chip", model_.chip, ".elf");
      const auto written = out_.put(path, write_elf(program, build_id_));
      if (written.has_error()) return written.error();
      Section& section =
          add_section(concat(kind, ".ccu", program.core), SectionKind::program, graph.name);
      fill(section, path, *written);
      section.core = program.core;
      graph.programs.push_back(section.name);
    }
    return {};
  }

  /// Sections of known size; the files come when the addresses are known.
  void add_commands(Graph& graph) {
    const std::string kind{name_of(graph.kind)};
    for (const Processor processor : {Processor::cpu, Processor::pld}) {
      for (const Engine engine : {Engine::ping, Engine::pong}) {
        const std::string who{name_of(processor)};
        const std::string how{name_of(engine)};
        Section& section =
            add_section(kind + "." + who + "." + how, SectionKind::command, graph.name);
        section.path = model_.name + "/" + kind + "/" + who + "_" + how + ".cmd";
        section.bytes =
            command_header_bytes +
            sizeof(Command) * (processor == Processor::cpu ? cpu_commands : pld_commands);
        section.engine = engine;
        section.processor = processor;
        graph.commands.push_back(section.name);
      }
    }
    Section& csr = add_section(kind + ".csr", SectionKind::csr, graph.name);
    csr.path = model_.name + "/" + kind + "/csr.bin";
    csr.bytes = command_header_bytes + csr_words * csr_word_bytes;
    graph.csr = csr.name;
    const auto first =
        static_cast<std::uint32_t>(manifest_.graphs.size()) * package_limits::sync_units_per_graph;
    for (std::uint32_t i = 0; i < package_limits::sync_units_per_graph; ++i) {
      graph.sync_units.push_back(first + i);
    }
  }

  Result<void> add_memory() {
    const auto reserve = [&](const std::string& name, SectionKind kind,
                             std::uint64_t bytes) -> Section& {
      Section& section = add_section(name, kind);
      section.bytes = round_up(bytes, package_limits::section_alignment);
      section.writable = true;
      return section;
    };
    reserve("workspace", SectionKind::workspace, workspace_bytes_);
    for (const Engine engine : {Engine::ping, Engine::pong}) {
      const std::string how{name_of(engine)};
      reserve("input." + how, SectionKind::input, std::uint64_t{4} * input_.context).engine =
          engine;
      reserve("output." + how, SectionKind::output, std::uint64_t{4} * model_.config.vocabulary)
          .engine = engine;
    }
    KvRegion& kv = model_.kv;
    kv.slots = input_.kv_slots;
    kv.tokens_per_slot = input_.context;
    kv.bytes_per_slot = kv_layout_of(model_.config, input_.context).bytes(Arithmetic::w8a8);
    kv.sequence_id_first = index_ * package_limits::sequence_ids_per_model;
    kv.sequence_id_last = kv.sequence_id_first + package_limits::sequence_ids_per_model - 1;
    kv.section = reserve("kv", SectionKind::kv, kv.bytes_per_slot * kv.slots).name;
    return {};
  }

  Result<void> add_tokenizer() {
    model_.tokenizer = "tokenizer/" + model_.alias + "/tokenizer.json";
    const auto written = out_.put(model_.tokenizer, input_.tokenizer);
    if (written.has_error()) return written.error();
    model_.tokenizer_sha256 = written->sha256;
    return {};
  }

  Result<void> add_golden() {
    auto golden = input_.golden
                      ? Result<Golden>(*input_.golden)
                      : compute_golden(model_, prefill_, decode_, parameters_, build_id_, step_);
    if (golden.has_error()) return golden.error();
    model_.golden_rule = golden->rule;
    model_.golden = model_.name + "/golden/golden.json";
    const auto written = out_.put(model_.golden, write_golden(*golden));
    if (written.has_error()) return written.error();
    model_.golden_sha256 = written->sha256;
    return {};
  }

  void add_routes() {
    const std::string chip = concat("chip", model_.chip);
    const std::string window = model_.name + ".window";
    manifest_.dma_routes.push_back({model_.name + ".in", model_.name, "host", chip, window});
    manifest_.dma_routes.push_back({model_.name + ".out", model_.name, chip, "host", window});
  }

  const ModelInput& input_;
  const BuildId& build_id_;
  OutputTree& out_;
  Manifest& manifest_;
  const Step& step_;
  std::uint64_t index_;
  Model model_;
  std::shared_ptr<const MappedFile> mapped_;   // null in a dry run
  std::span<const std::byte> parameters_;
  std::vector<Program> prefill_;
  std::vector<Program> decode_;
  std::uint64_t workspace_bytes_ = 0;
};

}   // namespace

Result<void> add_model(const ModelInput& input, const BuildId& build_id, OutputTree& out,
                       Manifest& manifest, const Step& step) {
  return ModelBuilder{input, build_id, out, manifest, step}.run();
}

Result<void> place_sections(Manifest& manifest) {
  std::vector<std::uint64_t> next(manifest.chips, package_limits::guard_bytes);
  for (Section& section : manifest.sections) {
    const Model* model = find_model(manifest, section.model);
    DUET_ASSERT(model != nullptr && model->chip < manifest.chips, section.model);
    std::uint64_t& at = next[model->chip];
    section.address = at;
    if (section.bytes > manifest.dram_bytes_per_chip ||
        at > manifest.dram_bytes_per_chip - section.bytes) {
      return failure("model ", in_quotes(model->name), " does not fit the ",
                     manifest.dram_bytes_per_chip, " bytes of chip ", model->chip, ": section ",
                     in_quotes(section.name), " of ", section.bytes, " bytes would begin at ", at,
                     "; take fewer KV slots or less context");
    }
    at = round_up(at + section.bytes, package_limits::section_alignment);
  }
  return {};
}

}   // namespace duet::device::detail
