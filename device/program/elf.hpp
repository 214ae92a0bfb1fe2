// elf.hpp: the ELF container of one CalCore's program: writer and bounded reader.
//
// ELF64, little-endian, e_machine `elf_machine`, e_type ET_EXEC, no program headers, nothing in it
// is native code.
//   .note.duet   one note, name "DUETPRG1", type 1: what the program is for (see elf.cpp for the
//   words) .duet.prog   the operations, 64 bytes each (op.hpp) .duet.buf    the buffer
//   declarations, 8 bytes each .shstrtab    the section names
#pragma once

#include "device/program/message.hpp"
#include "device/program/op.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

inline constexpr std::uint16_t elf_machine = 0xd7e7;   // not assigned by any registry

namespace elf_limits {
inline constexpr std::uint64_t file_bytes_max = 16U << 20;   // ops_max operations are 4 MiB
inline constexpr std::uint64_t ops_max = 1U << 16;           // 512 layers of below 40 operations
inline constexpr std::uint64_t buffers_max = 1024;           // a graph needs about ten
inline constexpr std::uint64_t sections_max = 16;            // five are used
inline constexpr std::uint64_t graph_name_bytes_max = 128;
}   // namespace elf_limits

/// Names one build of a package; the same in every file of it.
using BuildId = std::array<std::byte, 16>;

/// 32 lower-case hex digits, and back; nothing if `text` is not that.
[[nodiscard]] std::string build_id_text(const BuildId& id);
[[nodiscard]] Result<BuildId> parse_build_id(std::string_view text);

struct ElfFile {
  Program program;
  BuildId build_id = {};
};

/// The same program gives the same bytes. The program must be within elf_limits (asserted: the
/// compiler makes it).
[[nodiscard]] std::vector<std::byte> write_elf(const Program& program, const BuildId& build_id);

/// Reads headers, string table, section bounds, overlaps and padding; refuses whatever write_elf
/// would not have written. Operations are copied as they are: whether they make sense is the
/// verifier's question. `name` begins every error.
[[nodiscard]] Result<ElfFile> read_elf(std::span<const std::byte> bytes, const std::string& name);

}   // namespace duet::device
