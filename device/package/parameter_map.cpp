// parameter_map.cpp: writes and reads the device's parameter map.
#include "device/package/parameter_map.hpp"

#include "device/package/model_source.hpp"
#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>

namespace duet::device {
namespace {

constexpr std::array<char, 8> magic = {'D', 'U', 'E', 'T', 'M', 'A', 'P', '1'};
constexpr std::uint32_t tensors_max = 1U << 16;   // as gguf_limits::tensors_max
constexpr std::size_t name_bytes = 64;            // as gguf_limits::name_bytes_max

struct Header {
  std::array<char, 8> magic;
  BuildId build_id;
  std::uint32_t count, reserved;
};
static_assert(sizeof(Header) == 32);

struct Entry {
  std::array<char, name_bytes> name;   ///< padded with zeros.
  std::uint32_t dtype, rank;
  std::array<std::uint64_t, 2> shape;   ///< outermost first; 0 behind the rank.
  std::uint64_t offset, bytes;
};
static_assert(sizeof(Entry) == 104);

template <typename T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

bool is_dtype(std::uint32_t number) {
  for (const DType dtype : {DType::f32, DType::f16, DType::q8_0, DType::bf16}) {
    if (number == static_cast<std::uint32_t>(dtype)) return true;
  }
  return false;
}

}   // namespace

std::vector<std::byte> write_parameter_map(const ParameterMap& map) {
  std::vector<std::byte> out;
  out.reserve(sizeof(Header) + map.tensors.size() * sizeof(Entry));
  append(out, Header{magic, map.build_id, static_cast<std::uint32_t>(map.tensors.size()), 0});
  for (const Tensor& tensor : map.tensors) {
    DUET_ASSERT(tensor.name.size() <= name_bytes, tensor.name);
    DUET_ASSERT(tensor.shape.size() == 1 || tensor.shape.size() == 2, tensor.shape.size());
    Entry entry = {};
    std::copy(tensor.name.begin(), tensor.name.end(), entry.name.begin());
    std::copy(tensor.shape.begin(), tensor.shape.end(), entry.shape.begin());
    entry.dtype = static_cast<std::uint32_t>(tensor.dtype);
    entry.rank = static_cast<std::uint32_t>(tensor.shape.size());
    entry.offset = tensor.offset;
    entry.bytes = tensor.bytes;
    append(out, entry);
  }
  return out;
}

Result<ParameterMap> read_parameter_map(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < sizeof(Header)) return failure(name, ": is cut short");
  const auto header = load_le<Header>(bytes);
  if (header.magic != magic || header.reserved != 0) return failure(name, ": is no parameter map");
  if (header.count == 0 || header.count > tensors_max ||
      bytes.size() != sizeof(Header) + std::uint64_t{header.count} * sizeof(Entry)) {
    return failure(name, ": ", bytes.size(), " bytes do not fit ", header.count, " tensors");
  }
  ParameterMap map;
  map.build_id = header.build_id;
  for (std::uint32_t i = 0; i < header.count; ++i) {
    const auto entry = load_le<Entry>(bytes, sizeof(Header) + i * sizeof(Entry));
    const auto* end = std::find(entry.name.begin(), entry.name.end(), '\0');
    const bool padded = std::all_of(end, entry.name.end(), [](char c) { return c == '\0'; });
    if (end == entry.name.begin() || !padded || entry.rank == 0 || entry.rank > 2 ||
        (entry.rank == 1 && entry.shape[1] != 0) || !is_dtype(entry.dtype)) {
      return failure(name, ": entry ", i, " is malformed");
    }
    Tensor tensor;
    tensor.name.assign(entry.name.begin(), end);
    tensor.dtype = static_cast<DType>(entry.dtype);
    tensor.shape.assign(entry.shape.begin(), entry.shape.begin() + entry.rank);
    tensor.offset = entry.offset;
    tensor.bytes = entry.bytes;
    map.tensors.push_back(std::move(tensor));
  }
  return map;
}

}   // namespace duet::device
