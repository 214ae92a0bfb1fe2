// pack_input.cpp: reads a model file for packing and writes its weights.
#include "device/package/detail/pack_model.hpp"
#include "device/package/file_tree.hpp"
#include "device/package/limits.hpp"
#include "device/package/quantize.hpp"
#include "device/package/tokenizer_metadata.hpp"
#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace duet::device::detail {
namespace {

/// The golden file's entry that was computed from these weights.
const char* golden_source(const ModelSource& source) {
  static constexpr std::array<std::pair<WeightType, const char*>, 6> names = {{
      {WeightType::q4_0, "q4_0"},
      {WeightType::q4_k, "q4_k"},
      {WeightType::q6_k, "q6_k"},
      {WeightType::q8_0, "q8_0"},
      {WeightType::bf16, "bf16"},
      {WeightType::f16, "f16"},
  }};
  // Files mix types; the coarsest one says what the weights are.
  for (const auto& [type, name] : names) {
    const bool there =
        std::any_of(source.tensors.begin(), source.tensors.end(), [&](const SourceTensor& tensor) {
          return tensor.shape.size() == 2 && tensor.type == type;
        });
    if (there) return name;
  }
  return "f32";
}

Result<void> read_golden_input(ModelInput& input) {
  const std::string& path = input.options.golden;
  const auto file = MappedFile::open(path);
  if (file.has_error()) return file.error();
  const auto bytes = (*file)->bytes();
  auto golden = import_golden(as_text(bytes), golden_source(input.source), path);
  if (golden.has_error()) return golden.error();
  golden->model = input.options.name;
  const auto sound = check_golden(*golden, input.source.config.vocabulary, input.context, path);
  if (sound.has_error()) return sound.error();
  if (golden->prompts.size() < package_limits::golden_prompts_min) {
    return failure(path, ": has ", golden->prompts.size(), " prompts; at least ",
                   package_limits::golden_prompts_min, " are needed");
  }
  input.golden = std::move(*golden);
  input.golden_sha256 = hex_text(sha256(bytes));
  return {};
}

/// Hashes piece by piece, so that a file of any size stays out of memory.
std::string hash_file(const Gguf& gguf, const Step& step) {
  constexpr std::uint64_t piece_bytes = 16U << 20;
  const auto bytes = gguf.file_bytes();
  Sha256 hash;
  for (std::uint64_t at = 0; at < bytes.size(); at += piece_bytes) {
    step("read", at, bytes.size());
    const auto piece = bytes.subspan(at, std::min<std::uint64_t>(piece_bytes, bytes.size() - at));
    hash.update(piece);
    gguf.forget(piece);
  }
  return hex_text(hash.finish());
}

/// Writes a file in pieces and hashes it on the way.
class StreamedFile {
 public:
  explicit StreamedFile(const std::string& path)
      : path_(path), file_(path, std::ios::binary | std::ios::trunc) {}

  void write(std::span<const std::byte> bytes) {
    file_.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    hash_.update(bytes);
    size_ += bytes.size();
  }
  void pad_to(std::uint64_t alignment) {
    static constexpr std::array<std::byte, package_limits::tensor_alignment> zeros = {};
    const std::uint64_t rest = (alignment - size_ % alignment) % alignment;
    write(std::span(zeros).first(rest));
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] bool good() const { return file_.good(); }
  Result<OutputTree::Written> finish() {
    file_.close();
    if (!file_) return failure(path_, ": cannot be written: ", std::strerror(errno));
    return OutputTree::Written{hex_text(hash_.finish()), size_};
  }

 private:
  std::string path_;
  std::ofstream file_;
  Sha256 hash_;
  std::uint64_t size_ = 0;
};

/// Writes one tensor row by row in its packed type.
Result<void> write_tensor(const SourceTensor& source, const std::string& where,
                          StreamedFile& file) {
  if (source.type == WeightType::q8_0) {
    file.write(source.data);
    return {};
  }
  const bool matrix = source.shape.size() == 2;
  const std::uint64_t rows = matrix ? source.shape[0] : 1;
  const std::uint64_t columns = source.shape[matrix ? 1 : 0];
  const std::uint64_t row_bytes = weight_bytes(source.type, columns);
  std::vector<float> values(columns);
  std::vector<std::byte> blocks(matrix ? dtype_bytes(DType::q8_0, columns) : 0);
  for (std::uint64_t row = 0; row < rows; ++row) {
    dequantize(source.type, source.data.subspan(row * row_bytes, row_bytes), values);
    if (!matrix) {
      file.write(std::as_bytes(std::span(values)));
      continue;
    }
    if (!quantize_q8_0(values, blocks)) {
      return failure(where, ": tensor ", in_quotes(source.name), ", row ", row,
                     ": weights are too large for Q8_0");
    }
    file.write(blocks);
  }
  return {};
}

}   // namespace

Result<ModelInput> read_input(const PackModel& options, std::uint32_t context,
                              std::uint32_t kv_slots, const Step& step) {
  ModelInput input;
  input.options = options;
  if (input.options.alias.empty()) input.options.alias = options.name;
  auto gguf = Gguf::open(options.gguf);
  if (gguf.has_error()) return gguf.error();
  input.gguf = std::make_unique<Gguf>(std::move(*gguf));
  auto source = read_model_source(*input.gguf);
  if (source.has_error()) return source.error();
  input.source = std::move(*source);
  auto tokenizer = tokenizer_document(*input.gguf);
  if (tokenizer.has_error()) return tokenizer.error();
  input.tokenizer = std::move(*tokenizer);
  const auto fits =
      check_tokenizer_document(input.tokenizer, input.source.config.vocabulary, options.gguf);
  if (fits.has_error()) return fits.error();
  input.kv_slots = kv_slots;
  input.context = std::min(context, input.source.config.context);
  input.sha256 = hash_file(*input.gguf, step);
  if (!options.golden.empty()) {
    const auto read = read_golden_input(input);
    if (read.has_error()) return read.error();
  }
  return input;
}

Result<void> OutputTree::make_folders(const std::string& path) const {
  std::error_code ec;
  std::filesystem::create_directories(std::filesystem::path(absolute(path)).parent_path(), ec);
  if (ec) return failure(absolute(path), ": its folder cannot be made: ", ec.message());
  return {};
}

Result<OutputTree::Written> OutputTree::put(const std::string& path,
                                            std::span<const std::byte> bytes) {
  if (dry()) return Written{"", bytes.size()};
  const auto folders = make_folders(path);
  if (folders.has_error()) return folders.error();
  const auto written = write_new_file(absolute(path), bytes);
  if (written.has_error()) return written.error();
  const Written out{hex_text(sha256(bytes)), bytes.size()};
  add(path, out);
  return out;
}

Result<OutputTree::Written> OutputTree::put(const std::string& path, std::string_view text) {
  return put(path, as_byte_span(text));
}

std::vector<Tensor> plan_tensors(const ModelSource& source, std::uint64_t& bytes) {
  constexpr std::uint64_t unit = package_limits::tensor_alignment;
  std::vector<Tensor> out;
  bytes = 0;
  for (const SourceTensor& weights : source.tensors) {
    Tensor tensor;
    tensor.name = weights.name;
    tensor.dtype = weights.shape.size() == 2 ? DType::q8_0 : DType::f32;
    tensor.shape = weights.shape;
    tensor.offset = (bytes + unit - 1) / unit * unit;
    std::uint64_t elements = 1;
    for (const std::uint64_t length : weights.shape) elements *= length;
    tensor.bytes = dtype_bytes(tensor.dtype, elements);
    bytes = tensor.offset + tensor.bytes;
    out.push_back(std::move(tensor));
  }
  return out;
}

Result<OutputTree::Written> write_parameters(const ModelInput& input, OutputTree& out,
                                             const std::string& path, std::vector<Tensor>& tensors,
                                             const Step& step) {
  std::uint64_t bytes = 0;
  tensors = plan_tensors(input.source, bytes);
  if (out.dry()) return OutputTree::Written{"", bytes};
  const auto folders = out.make_folders(path);
  if (folders.has_error()) return folders.error();
  StreamedFile file{out.absolute(path)};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SourceTensor& source = input.source.tensors[i];
    step("weights", i, tensors.size());
    file.pad_to(package_limits::tensor_alignment);
    DUET_ASSERT(file.size() == tensors[i].offset, source.name, file.size());
    auto written = check_weights(source, input.options.gguf);
    if (written.has_value()) written = write_tensor(source, input.options.gguf, file);
    if (written.has_error()) return written.error();
    input.gguf->forget(source.data);
    DUET_ASSERT(file.size() - tensors[i].offset == tensors[i].bytes, source.name, file.size());
    if (!file.good()) return failure(out.absolute(path), ": cannot be written (is the disk full?)");
  }
  auto written = file.finish();
  if (written.has_value()) out.add(path, *written);
  return written;
}

}   // namespace duet::device::detail
