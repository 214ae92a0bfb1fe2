// elf_fuzz.cpp: any bytes as a program, command list, register words or parameter map; what is read
// must survive writing.
#include "device/package/parameter_map.hpp"
#include "device/program/command.hpp"
#include "device/program/elf.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace duet::device;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto same = [&](const std::vector<std::byte>& written) {
    if (!std::equal(written.begin(), written.end(), bytes.begin(), bytes.end())) std::abort();
  };
  if (const auto commands = read_commands(bytes, "fuzz")) same(write_commands(*commands));
  if (const auto csr = read_csr(bytes, "fuzz")) same(write_csr(*csr));
  if (const auto map = read_parameter_map(bytes, "fuzz")) same(write_parameter_map(*map));
  const auto elf = read_elf(bytes, "fuzz");
  if (elf.has_error()) return 0;
  // The order of the sections is free, so only the content must come back.
  const auto written = write_elf(elf->program, elf->build_id);
  const auto again = read_elf(written, "fuzz");
  if (again.has_error() || write_elf(again->program, again->build_id) != written) std::abort();
  return 0;
}
