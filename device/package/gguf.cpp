// gguf.cpp: parses GGUF headers, metadata and tensor infos under fixed bounds.
#include "device/package/gguf.hpp"

#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace duet::device {
namespace {

constexpr std::uint32_t magic = 0x46554747;   // "GGUF"
constexpr std::uint64_t alignment_default = 32;
constexpr std::uint64_t alignment_max = 1U << 20;

constexpr std::array<GgmlType, 31> ggml_types = {{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},
}};

/// Bytes of one scalar, or 0 for strings, arrays and unknown types.
std::uint64_t scalar_bytes(std::uint32_t type) {
  switch (static_cast<MetaType>(type)) {
    case MetaType::u8:
    case MetaType::i8:
    case MetaType::boolean:
      return 1;
    case MetaType::u16:
    case MetaType::i16:
      return 2;
    case MetaType::u32:
    case MetaType::i32:
    case MetaType::f32:
      return 4;
    case MetaType::u64:
    case MetaType::i64:
    case MetaType::f64:
      return 8;
    case MetaType::string:
    case MetaType::array:
      break;
  }
  return 0;
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}   // namespace

const GgmlType* find_ggml_type(std::uint32_t number) {
  const auto* found = std::find_if(ggml_types.begin(), ggml_types.end(),
                                   [&](const GgmlType& type) { return type.number == number; });
  return found == ggml_types.end() ? nullptr : found;
}

/// One pass over the header. A failed step leaves the sentence in error_ and returns false.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string name)
      : reader_(bytes.first(std::min<std::size_t>(bytes.size(), gguf_limits::header_bytes_max))),
        size_(bytes.size()) {
    gguf_.bytes_ = bytes;
    gguf_.name_ = std::move(name);
  }

  Result<Gguf> run(std::shared_ptr<const MappedFile> file) {
    if (!read_header() || !read_metadata() || !read_tensors() || !place_tensors()) return error_;
    gguf_.file_ = std::move(file);
    return std::move(gguf_);
  }

 private:
  template <typename... T>
  bool fail(const T&... parts) {
    error_ = failure(gguf_.name_, ": ", parts...);
    return false;
  }
  /// The file ends, or the header runs past what a header may take.
  bool fail_short(std::string_view what) {
    if (size_ > gguf_limits::header_bytes_max) {
      return fail("offset ", reader_.position(), ": ", what, " lies beyond the first ",
                  gguf_limits::header_bytes_max, " bytes; no sound file has so much metadata");
    }
    return fail("offset ", reader_.position(), ": the file ends inside ", what,
                "; it is cut short (", size_, " bytes): fetch it again");
  }

  bool read_header() {
    std::uint32_t found = 0;
    if (size_ == 0) return fail("the file is empty");
    if (!reader_.take(found)) return fail("is no GGUF file: ", size_, " bytes are too few");
    if (found != magic) return fail("is no GGUF file: it does not begin with the bytes 'GGUF'");
    if (!reader_.take(gguf_.version_)) return fail_short("the header");
    if (gguf_.version_ == 0x03000000 || gguf_.version_ == 0x02000000) {
      return fail("is a big-endian GGUF file; convert it to little-endian first");
    }
    if (gguf_.version_ != 2 && gguf_.version_ != 3) {
      return fail("GGUF version ", gguf_.version_, " is not supported; convert it to version 3");
    }
    if (!reader_.take(tensor_count_) || !reader_.take(key_count_)) return fail_short("the header");
    if (tensor_count_ > gguf_limits::tensors_max) {
      return fail("offset 8: ", tensor_count_, " tensors are more than the ",
                  gguf_limits::tensors_max, " that a model may have; the file is damaged");
    }
    if (key_count_ > gguf_limits::keys_max) {
      return fail("offset 16: ", key_count_, " metadata keys are more than the ",
                  gguf_limits::keys_max, " that a file may have; the file is damaged");
    }
    return true;
  }

  bool read_string(std::string_view what, std::uint64_t bytes_max, std::string_view& out) {
    const std::uint64_t at = reader_.position();
    std::uint64_t length = 0;
    std::span<const std::byte> bytes;
    if (!reader_.take(length)) return fail_short(what);
    if (length > bytes_max) {
      return fail("offset ", at, ": ", what, " of ", length, " bytes is longer than ", bytes_max);
    }
    if (!reader_.take(length, bytes)) return fail_short(what);
    out = as_text(bytes);
    return true;
  }

  bool read_metadata() {
    for (std::uint64_t i = 0; i < key_count_; ++i) {
      const std::uint64_t at = reader_.position();
      std::string_view key;
      if (!read_string("a metadata key", gguf_limits::key_bytes_max, key)) return false;
      if (key.empty() || !is_printable(key)) {
        return fail("offset ", at, ": metadata key ", in_quotes(key), " is not a printable name");
      }
      MetaValue value;
      if (!read_value(key, value)) return false;
      if (!gguf_.metadata_.emplace(key, value).second) {
        return fail("offset ", at, ": metadata key ", in_quotes(key), " is there twice");
      }
    }
    return true;
  }

  bool read_value(std::string_view key, MetaValue& value) {
    std::uint32_t type = 0;
    value.count = 1;
    if (!reader_.take(type)) return fail_short(concat("the value of ", in_quotes(key)));
    if (type == static_cast<std::uint32_t>(MetaType::array)) {
      value.is_array = true;
      if (!reader_.take(type) || !reader_.take(value.count)) {
        return fail_short(concat("the array ", in_quotes(key)));
      }
      if (value.count > gguf_limits::elements_max) {
        return fail("key ", in_quotes(key), ": an array of ", value.count,
                    " elements is larger than ", gguf_limits::elements_max);
      }
    }
    value.type = static_cast<MetaType>(type);
    if (value.type == MetaType::string) return read_strings(key, value);
    const std::uint64_t size = scalar_bytes(type);
    if (size == 0) {
      return fail("key ", in_quotes(key), ": value type ", type,
                  value.is_array ? " cannot be an array's element" : " is not known");
    }
    if (!reader_.take(value.count * size, value.bytes)) {
      return fail_short(concat("the value of ", in_quotes(key)));
    }
    const auto above_one = [](std::byte byte) { return byte > std::byte{1}; };
    if (value.type == MetaType::boolean &&
        std::any_of(value.bytes.begin(), value.bytes.end(), above_one)) {
      return fail("key ", in_quotes(key), ": a bool is neither 0 nor 1");
    }
    return true;
  }

  /// Walks the strings once, so that later readers need no checks; keeps none of them.
  bool read_strings(std::string_view key, MetaValue& value) {
    const std::uint64_t first = reader_.position();
    for (std::uint64_t i = 0; i < value.count; ++i) {
      std::string_view text;
      if (!read_string(concat_key(key), gguf_limits::string_bytes_max, text)) return false;
    }
    value.bytes = gguf_.bytes_.subspan(first, reader_.position() - first);
    return true;
  }
  /// The text is made once a key, not once a string: arrays have a million of them.
  std::string_view concat_key(std::string_view key) {
    if (key.data() != named_key_.data()) {
      named_key_ = key;
      named_what_ = concat("a string of ", in_quotes(key));
    }
    return named_what_;
  }

  bool read_tensors() {
    gguf_.tensors_.reserve(std::min<std::uint64_t>(tensor_count_, 4096));
    for (std::uint64_t i = 0; i < tensor_count_; ++i) {
      GgufTensor tensor;
      if (!read_tensor(tensor)) return false;
      const std::string_view name = tensor.name;
      gguf_.tensors_.push_back(std::move(tensor));
      if (!gguf_.tensor_index_.emplace(name, i).second) {
        return fail("tensor ", in_quotes(name), " is there twice");
      }
    }
    return true;
  }

  bool read_tensor(GgufTensor& tensor) {
    const std::uint64_t at = reader_.position();
    if (!read_string("a tensor's name", gguf_limits::name_bytes_max, tensor.name)) return false;
    if (tensor.name.empty() || !is_printable(tensor.name)) {
      return fail("offset ", at, ": tensor name ", in_quotes(tensor.name),
                  " is not a printable name");
    }
    const std::string what = concat("the description of tensor ", in_quotes(tensor.name));
    std::uint32_t dimensions = 0;
    if (!reader_.take(dimensions)) return fail_short(what);
    if (dimensions == 0 || dimensions > gguf_limits::dimensions_max) {
      return fail("tensor ", in_quotes(tensor.name), " has ", dimensions, " dimensions; 1 to ",
                  gguf_limits::dimensions_max, " are possible");
    }
    tensor.elements = 1;
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      std::uint64_t length = 0;
      if (!reader_.take(length)) return fail_short(what);
      if (length == 0) return fail("tensor ", in_quotes(tensor.name), " has a dimension of 0");
      const auto product = checked_multiply(tensor.elements, length);
      if (!product) return fail("tensor ", in_quotes(tensor.name), ": its size overflows 64 bits");
      tensor.elements = *product;
      tensor.dimensions.push_back(length);
    }
    std::uint32_t type = 0;
    if (!reader_.take(type) || !reader_.take(tensor.offset)) return fail_short(what);
    return size_tensor(type, tensor);
  }

  bool size_tensor(std::uint32_t type, GgufTensor& tensor) {
    tensor.type = find_ggml_type(type);
    if (tensor.type == nullptr) {
      return fail("tensor ", in_quotes(tensor.name), ": tensor type ", type, " is not known");
    }
    if (tensor.dimensions[0] % tensor.type->block_elements != 0) {
      return fail("tensor ", in_quotes(tensor.name), ": rows of ", tensor.dimensions[0],
                  " elements are no whole number of ", tensor.type->name, " blocks of ",
                  tensor.type->block_elements);
    }
    const auto bytes =
        checked_multiply(tensor.elements / tensor.type->block_elements, tensor.type->block_bytes);
    if (!bytes) return fail("tensor ", in_quotes(tensor.name), ": its size overflows 64 bits");
    tensor.bytes = *bytes;
    return true;
  }

  bool read_alignment(std::uint64_t& alignment) {
    auto value = gguf_.get_unsigned("general.alignment", alignment_default);
    if (value.has_error()) {
      error_ = value.error();
      return false;
    }
    alignment = *value;
    if (!std::has_single_bit(alignment) || alignment < 8 || alignment > alignment_max) {
      return fail("key 'general.alignment': ", alignment, " is no power of two from 8 to ",
                  alignment_max);
    }
    return true;
  }

  bool place_tensors() {
    std::uint64_t alignment = 0;
    if (!read_alignment(alignment)) return false;
    const std::uint64_t base = (reader_.position() + alignment - 1) / alignment * alignment;
    for (GgufTensor& tensor : gguf_.tensors_) {
      if (tensor.offset % alignment != 0) {
        return fail("tensor ", in_quotes(tensor.name), ": offset ", tensor.offset,
                    " is not a multiple of the alignment ", alignment);
      }
      const auto start = checked_add(base, tensor.offset);
      const auto end = start ? checked_add(*start, tensor.bytes) : std::nullopt;
      if (!end) return fail("tensor ", in_quotes(tensor.name), ": its place overflows 64 bits");
      if (*end > size_) {
        return fail("tensor ", in_quotes(tensor.name), " ends at byte ", *end,
                    " but the file has only ", size_, "; it is cut short: fetch it again");
      }
      tensor.offset = *start;
    }
    return check_overlap();
  }

  bool check_overlap() {
    std::vector<const GgufTensor*> order;
    order.reserve(gguf_.tensors_.size());
    for (const GgufTensor& tensor : gguf_.tensors_) order.push_back(&tensor);
    std::sort(order.begin(), order.end(),
              [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
        return fail("tensors ", in_quotes(order[i - 1]->name), " and ", in_quotes(order[i]->name),
                    " overlap in the file");
      }
    }
    return true;
  }

  Gguf gguf_;
  ByteReader reader_;
  std::uint64_t size_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
  std::string_view named_key_;
  std::string named_what_;
  Error error_;
};

Result<Gguf> Gguf::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (file.has_error()) return file.error();
  GgufParser parser{(*file)->bytes(), path};
  return parser.run(*file);
}

Result<Gguf> Gguf::parse(std::span<const std::byte> bytes, std::string name) {
  GgufParser parser{bytes, std::move(name)};
  return parser.run(nullptr);
}

}   // namespace duet::device
