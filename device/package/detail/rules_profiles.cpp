// rules_profiles.cpp: graphs against their model, goldens, tokenizers, and the files about the
// build.
#include "device/package/detail/rules.hpp"
#include "device/package/limits.hpp"
#include "device/package/package_files.hpp"
#include "device/package/tokenizer_metadata.hpp"
#include "device/program/byte_reader.hpp"

#include <algorithm>

namespace duet::device::detail {
namespace {

bool is_port(const std::vector<Port>& ports, const char* name, DType dtype, std::uint64_t width) {
  return ports.size() == 1 && ports[0].name == name && ports[0].dtype == dtype &&
         ports[0].shape == std::vector<std::uint64_t>{1, width};
}

void check_graph_profile(const Subject& subject, const Graph& graph, const Model& model) {
  const auto fail = [&](const char* field, const std::string& message) {
    subject.report(Code::profile_wrong, key_of(graph, field), message);
  };
  if (graph.batch != 1) fail("batch", concat("a batch of ", graph.batch, "; jobs are single"));
  if (graph.context == 0 || graph.context > model.config.context ||
      graph.context != model.kv.tokens_per_slot) {
    fail("context",
         concat("the context ", graph.context, " is not that of the KV slots (",
                model.kv.tokens_per_slot, ") or above the model's ", model.config.context));
  }
  const bool prefill = graph.kind == GraphKind::prefill;
  if (graph.tokens_max == 0 || graph.tokens_max > graph.context ||
      (!prefill && graph.tokens_max != 1)) {
    fail("tokens_max", concat(graph.tokens_max, " tokens a job are not possible"));
  }
  if (!prefill && graph.split_prefill) fail("split_prefill", "a decode graph has no prompts");
  if (!is_port(graph.inputs, "tokens", DType::i32, graph.tokens_max)) {
    fail("inputs", concat("the input is not tokens, I32, [1, ", graph.tokens_max, "]"));
  }
  if (!is_port(graph.outputs, "logits", DType::f32, model.config.vocabulary)) {
    fail("outputs", concat("the output is not logits, F32, [1, ", model.config.vocabulary, "]"));
  }
}

/// Verifies the programs of a graph against its model's tensors, and its workspace against what
/// they need.
void check_executable(const Subject& subject, const Graph& graph, const Model& model) {
  if (graph.programs.size() != subject.manifest.cores_per_chip) return;   // P208
  std::vector<Program> programs(graph.programs.size());
  for (const std::string& name : graph.programs) {
    const auto found = subject.programs.find(name);
    if (found == subject.programs.end() || found->second.program.core >= programs.size()) return;
    programs[found->second.program.core] = found->second.program;
  }
  const Section* parameters =
      owned(subject.manifest, model.parameters, SectionKind::parameters, model.name);
  const auto bytes = parameters == nullptr ? std::nullopt : subject.bytes(parameters->path);
  if (!bytes) return;
  auto executable = Executable::create(std::move(programs), tensor_views(model, *bytes),
                                       kv_layout_of(model.config, graph.context), Arithmetic::w8a8);
  if (executable.has_error()) {
    return subject.report(Code::program_wrong, key_of(graph, "programs"), executable.error());
  }
  const Section* workspace = find_section(subject.manifest, graph.workspace);
  const std::uint64_t needed = (*executable)->make_workspace(package_limits::tile_tokens)->bytes();
  if (workspace != nullptr && workspace->bytes < needed) {
    subject.report(Code::workspace_wrong, key_of(*workspace, "bytes"),
                   concat(workspace->bytes, " bytes are fewer than the ", needed, " that graph ",
                          in_quotes(graph.name), " needs"));
  }
}

void check_tokenizer(const Subject& subject, const Model& model) {
  const auto bytes = subject.bytes(model.tokenizer);
  if (!bytes) return;
  const auto sound =
      check_tokenizer_document(as_text(*bytes), model.config.vocabulary, model.tokenizer);
  if (sound.has_error()) {
    subject.report_file(Code::tokenizer_wrong, model.tokenizer, sound.error().message);
  }
}

bool same_rule(const GoldenRule& a, const GoldenRule& b) {
  return a.kind == b.kind && a.margin_min == b.margin_min &&
         a.logprob_mean_max == b.logprob_mean_max && a.logprob_p99_max == b.logprob_p99_max;
}

void check_golden_file(Subject& subject, const Model& model) {
  const auto bytes = subject.bytes(model.golden);
  if (!bytes) return;
  const auto fail = [&](const std::string& message) {
    subject.report_file(Code::golden_wrong, model.golden, message);
  };
  auto golden = read_golden(as_text(*bytes), model.golden);
  if (golden.has_error()) return fail(golden.error().message);
  const auto sound =
      check_golden(*golden, model.config.vocabulary, model.kv.tokens_per_slot, model.golden);
  if (sound.has_error()) return fail(sound.error().message);
  if (golden->model != model.name || !same_rule(golden->rule, model.golden_rule)) {
    fail("is for model " + in_quotes(golden->model) + " or has another rule than the manifest");
  }
  if (golden->prompts.size() < package_limits::golden_prompts_min) {
    fail(concat("has ", golden->prompts.size(), " prompts, at least ",
                package_limits::golden_prompts_min, " are needed"));
  }
  subject.goldens.emplace(model.name, std::move(*golden));
}

void check_provenance(const Subject& subject) {
  const auto bytes = subject.bytes(provenance_file);
  if (!bytes) return;
  const auto fail = [&](Code code, const std::string& message) {
    subject.report_file(code, provenance_file, message);
  };
  if (bytes->size() > small_file_bytes_max) return fail(Code::provenance_wrong, "is too large");
  const auto provenance = read_provenance(as_text(*bytes));
  if (provenance.has_error()) return fail(Code::provenance_wrong, provenance.error().message);
  if (provenance->build_id != subject.manifest.build_id) {
    fail(Code::build_id_mismatch, concat("names build ", in_quotes(provenance->build_id),
                                         ", the manifest ", in_quotes(subject.manifest.build_id)));
  }
  if (provenance->packer != "duet-pack") {
    fail(Code::provenance_wrong,
         "the packer is " + in_quotes(provenance->packer) + ", not duet-pack");
  }
  const auto& models = subject.manifest.models;
  const auto& sources = provenance->sources;
  const bool equal =
      std::equal(models.begin(), models.end(), sources.begin(), sources.end(),
                 [](const Model& model, const Provenance::Source& source) {
                   return model.name == source.model && model.source_sha256 == source.sha256;
                 });
  if (!equal) fail(Code::provenance_wrong, "the sources are not those of the manifest's models");
}

}   // namespace

void check_profiles(Subject& subject) {
  // Programs are verified only against sound tensors: the views must lie inside the parameters.
  const bool tensors_sound =
      !subject.findings.has_any(Code::config_wrong, Code::tensor_place_wrong);
  for (const Graph& graph : subject.manifest.graphs) {
    const Model* model = owner_of(subject.manifest, graph);
    if (model == nullptr) continue;
    check_graph_profile(subject, graph, *model);
    if (tensors_sound) check_executable(subject, graph, *model);
  }
  for (const Model& model : subject.manifest.models) {
    check_tokenizer(subject, model);
    check_golden_file(subject, model);
  }
}

void check_compatibility_files(const Subject& subject) {
  if (const auto bytes = subject.bytes(compatibility_file)) {
    unsigned code = 0;
    const auto sound = bytes->size() <= small_file_bytes_max
                           ? check_compatibility(as_text(*bytes), code)
                           : Result<void>(failure("is too large"));
    if (sound.has_error()) {
      subject.report_file(code == 0 ? Code::compatibility_malformed : static_cast<Code>(code),
                          compatibility_file, sound.error().message);
    }
  }
  if (subject.manifest.numerics != 1) {
    subject.report(Code::numerics_unsupported, "numerics",
                   concat("numerics ", subject.manifest.numerics, "; this program has 1"));
  }
  if (parse_build_id(subject.manifest.build_id).has_error()) {
    subject.report(Code::value_wrong, "build_id", "is not 32 lower-case hex digits");
  }
  check_provenance(subject);
  const auto report = subject.bytes(memory_report_file);
  if (report && as_text(*report) != memory_report(subject.manifest)) {
    subject.report_file(Code::memory_report_wrong, memory_report_file,
                        "differs from the memory lines of the manifest");
  }
}

}   // namespace duet::device::detail
