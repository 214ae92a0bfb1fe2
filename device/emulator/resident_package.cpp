// resident_package.cpp: copies weights, maps key/value memory, builds executables, runs jobs.
#include "device/emulator/resident_package.hpp"

#include "device/package/sha256.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace duet::device::emulator {
namespace {

Failure invalid(std::string sentence) {
  return {errc::package_invalid, std::move(sentence)};
}

/// Bytes of a tensor, or nothing if its shape or type cannot be.
std::optional<std::uint64_t> tensor_bytes(DType dtype, std::uint64_t rows, std::uint64_t columns) {
  constexpr std::uint64_t block = 32;   // Q8_0: an f16 scale and 32 int8.
  std::uint64_t row_bytes = 0;
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      if (__builtin_mul_overflow(columns, std::uint64_t{4}, &row_bytes)) return std::nullopt;
      break;
    case DType::f16:
    case DType::bf16:
      if (__builtin_mul_overflow(columns, std::uint64_t{2}, &row_bytes)) return std::nullopt;
      break;
    case DType::q8_0:
      if (columns % block != 0 || __builtin_mul_overflow(columns / block, block + 2, &row_bytes)) {
        return std::nullopt;
      }
      break;
    default:
      return std::nullopt;
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(row_bytes, rows, &bytes)) return std::nullopt;
  return bytes;
}

result<TensorView> view_tensor(const Tensor& tensor, std::span<const std::byte> parameters,
                               const std::string& model) {
  const std::string where = "model \"" + model + "\": tensor \"" + tensor.name + "\": ";
  if (tensor.shape.empty() || tensor.shape.size() > 2) return invalid(where + "bad shape");
  TensorView view;
  view.dtype = tensor.dtype;
  view.rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  view.columns = tensor.shape.back();
  const auto bytes = tensor_bytes(view.dtype, view.rows, view.columns);
  if (!bytes || *bytes == 0 || *bytes > tensor.bytes) return invalid(where + "bad size");
  if (tensor.offset % 64 != 0 || tensor.offset > parameters.size() ||
      tensor.bytes > parameters.size() - tensor.offset) {
    return invalid(where + "it lies outside the parameters");
  }
  view.data = parameters.data() + tensor.offset;
  return view;
}

}   // namespace

bool all_finite(std::span<const float> values) noexcept {
  constexpr std::uint32_t exponent = 0x7f800000U;
  std::uint32_t bad = 0;
  for (const float value : values) {
    bad |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & exponent) == exponent);
  }
  return bad == 0;
}

result<ResidentPackage::ResidentModel> ResidentPackage::load_model(const PackageImage& image,
                                                                   const Model& model) {
  const Section* section = find_section(image.manifest(), model.parameters);
  if (section == nullptr || section->kind != SectionKind::parameters ||
      section->model != model.name) {
    return invalid("model \"" + model.name + "\": its parameters section is missing");
  }
  const auto file = image.file(*section);
  if (file.has_error()) return file.error();
  if (file->size() > section->bytes) {
    return invalid("section \"" + section->name + "\": its file is larger than the section");
  }
  ResidentModel resident;
  resident.parameters = HostMemory{file->size()};
  const std::span<std::byte> copy = resident.parameters.bytes();
  if (!file->empty()) std::memcpy(copy.data(), file->data(), file->size());
  const Digest digest = sha256(copy);
  if (hex_text(digest) != section->sha256) {
    return invalid("section \"" + section->name + "\": its file has changed since it was checked");
  }
  resident.parameters.make_read_only();
  for (const Tensor& tensor : model.tensors) {
    auto view = view_tensor(tensor, copy, model.name);
    if (view.has_error()) return view.error();
    resident.tensors.push_back(view.value());
  }
  resident.layout.layers = model.config.layers;
  resident.layout.tokens = model.kv.tokens_per_slot;
  resident.layout.kv_heads = model.config.kv_heads;
  resident.layout.head_dim = model.config.head_dim;
  resident.bytes_per_slot = model.kv.bytes_per_slot;
  resident.bytes_used_per_slot = kv_slot_bytes(model.config, model.kv.tokens_per_slot);
  // The slots begin where the kernels can read whole vectors.
  if (resident.bytes_per_slot % 64 != 0) {
    return invalid("model \"" + model.name + "\": kv bytes_per_slot is not a multiple of 64");
  }
  resident.kv = HostMemory{model.kv.bytes_per_slot * model.kv.slots};
  return resident;
}

result<ResidentPackage::ResidentGraph> ResidentPackage::load_graph(
    const Manifest& manifest, const GraphPlan& plan, const ResidentModel& model,
    std::vector<Program> programs, const MakeExecutable& make, std::uint32_t tile) {
  const std::string where = "graph \"" + plan.name + "\": ";
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].graph != plan.name || programs[i].chip != plan.chip ||
        programs[i].kind != plan.kind || programs[i].core != i) {
      return invalid(where + "the program of core " + std::to_string(i) + " is another one's");
    }
  }
  auto made = make(std::move(programs), model.tensors, model.layout, Arithmetic::w8a8);
  if (made.has_error()) return invalid(where + made.error());
  ResidentGraph graph;
  graph.executable = std::move(*made);
  graph.chip = plan.chip;
  graph.vocabulary = plan.vocabulary;
  if (graph.executable->vocabulary() != plan.vocabulary) {
    return invalid(where + "its programs give " + std::to_string(graph.executable->vocabulary()) +
                   " logits, the vocabulary has " + std::to_string(plan.vocabulary));
  }
  const Graph* described = find_graph(manifest, plan.name);
  DUET_ASSERT(described != nullptr);
  const Section* section = find_section(manifest, described->workspace);
  DUET_ASSERT(section != nullptr);
  // A smaller tile gives the same bits in less memory, only slower.
  for (tile = std::clamp(tile, 1U, tile_max);; tile /= 2) {
    graph.workspace = graph.executable->make_workspace(tile);
    if (graph.workspace->bytes() <= section->bytes) return graph;
    if (tile == 1) break;
  }
  return Failure{errc::out_of_memory, where + "needs " + std::to_string(graph.workspace->bytes()) +
                                          " bytes of workspace; section \"" + section->name +
                                          "\" has " + std::to_string(section->bytes)};
}

result<std::unique_ptr<ResidentPackage>> ResidentPackage::build(
    const PackageImage& image, const BoardPlan& plan, std::vector<std::vector<Program>> programs,
    const MakeExecutable& make, std::uint32_t tile) {
  const Manifest& manifest = image.manifest();
  DUET_ASSERT(programs.size() == plan.graphs.size(), programs.size(), plan.graphs.size());
  DUET_ASSERT(manifest.models.size() == plan.pools.size());
  std::unique_ptr<ResidentPackage> resident{new ResidentPackage};
  for (const Model& model : manifest.models) {
    auto loaded = load_model(image, model);
    if (loaded.has_error()) return loaded.error();
    resident->models_.push_back(std::move(loaded).value());
    resident->models_.back().chip = model.chip;
  }
  for (std::size_t i = 0; i < plan.graphs.size(); ++i) {
    const GraphPlan& graph = plan.graphs[i];
    auto loaded = load_graph(manifest, graph, resident->models_[graph.pool], std::move(programs[i]),
                             make, tile);
    if (loaded.has_error()) return loaded.error();
    resident->graphs_.push_back(std::move(loaded).value());
    for (Staging& staging : resident->staging_[graph.chip]) {
      staging.input.resize(std::max<std::size_t>(staging.input.size(), graph.tokens_max));
      staging.output.resize(std::max<std::size_t>(staging.output.size(), graph.vocabulary));
    }
  }
  return resident;
}

std::span<std::uint32_t> ResidentPackage::input(std::uint32_t chip, Engine engine) noexcept {
  return staging_[chip][engine == Engine::pong ? 1 : 0].input;
}

std::span<float> ResidentPackage::output(std::uint32_t chip, Engine engine) noexcept {
  return staging_[chip][engine == Engine::pong ? 1 : 0].output;
}

boost::system::error_code ResidentPackage::compute(const JobView& job, bool spoil,
                                                   CoreRunner& runner) noexcept {
  const ResidentGraph& graph = graphs_[job.graph];
  ResidentModel& model = models_[job.pool];
  const std::span<const std::uint32_t> tokens = input(job.chip, job.engine).first(job.tokens);
  const std::span<float> logits = output(job.chip, job.engine).first(graph.vocabulary);
  // The ids were checked at submission, but the host could have written the buffer since; this copy
  // it cannot reach.
  for (const std::uint32_t token : tokens) {
    if (token >= graph.vocabulary) return errc::bad_argument;
  }
  DUET_ASSERT(job.past + job.tokens <= model.layout.tokens, job.past, job.tokens);
  const std::span<std::byte> kv =
      model.kv.bytes().subspan(job.slot * model.bytes_per_slot, model.bytes_used_per_slot);
  graph.executable->run(tokens, job.past, kv, logits, *graph.workspace, runner);
  if (spoil) logits[0] = std::numeric_limits<float>::quiet_NaN();
  if (!all_finite(logits)) return errc::bad_output;
  return {};
}

std::uint32_t ResidentPackage::vocabulary(GraphHandle graph) const noexcept {
  return graphs_[graph].vocabulary;
}

std::uint64_t ResidentPackage::workspace_peak_bytes(std::uint32_t chip) const noexcept {
  std::uint64_t peak = 0;
  for (const ResidentGraph& graph : graphs_) {
    if (graph.chip == chip) peak = std::max(peak, graph.workspace->bytes());
  }
  return peak;
}

std::uint64_t ResidentPackage::parameter_bytes(std::uint32_t chip) const noexcept {
  std::uint64_t sum = 0;
  for (const ResidentModel& model : models_) {
    if (model.chip == chip) sum += model.parameters.bytes().size();
  }
  return sum;
}

}   // namespace duet::device::emulator
