// elf.cpp: writes and reads the ELF container of a program.
#include "device/program/elf.hpp"

#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace duet::device {
namespace {

struct ElfHeader {
  std::array<std::uint8_t, 16> ident;
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, program_offset, section_offset;
  std::uint32_t flags;
  std::uint16_t header_bytes, program_entry_bytes, programs, section_entry_bytes, sections, names;
};
static_assert(sizeof(ElfHeader) == 64);

struct SectionHeader {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, bytes;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_bytes;
};
static_assert(sizeof(SectionHeader) == 64);

/// The descriptor of the note, followed by the graph's name, padded with zeros to a multiple of 4.
struct NoteWords {
  BuildId build_id;
  std::uint32_t kind, chip, core, cores, numerics, logits, graph_bytes;
};
static_assert(sizeof(NoteWords) == 44);

constexpr std::array<std::uint8_t, 16> ident = {0x7f, 'E', 'L', 'F',
                                                2,    1,   1,   255};   // 64 bit, LE, standalone
constexpr std::string_view note_name{"DUETPRG1\0\0\0\0", 12};   // 8 characters, NUL, padded to 4
constexpr std::uint32_t note_name_bytes = 9;
constexpr std::uint32_t note_type = 1;
constexpr std::uint16_t type_executable = 2;
constexpr std::uint32_t type_progbits = 1;
constexpr std::uint32_t type_strings = 3;
constexpr std::uint32_t type_note = 7;

struct Kind {
  std::string_view name;
  std::uint32_t type;
  std::uint64_t alignment;
  std::uint64_t entry_bytes;
};
constexpr std::array<Kind, 4> kinds = {{
    {".note.duet", type_note, 4, 0},
    {".duet.prog", type_progbits, 64, sizeof(Op)},
    {".duet.buf", type_progbits, 8, sizeof(BufferDecl)},
    {".shstrtab", type_strings, 1, 0},
}};
constexpr std::size_t names_index = 3;   // in `kinds`; section header 4

template <typename T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void append_text(std::vector<std::byte>& out, std::string_view text) {
  const auto bytes = as_byte_span(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void pad_to(std::vector<std::byte>& out, std::uint64_t alignment) {
  while (out.size() % alignment != 0) out.push_back(std::byte{0});
}

std::vector<std::byte> note_section(const Program& program, const BuildId& build_id) {
  NoteWords words = {build_id,       static_cast<std::uint32_t>(program.kind),
                     program.chip,   program.core,
                     program.cores,  program.numerics,
                     program.logits, static_cast<std::uint32_t>(program.graph.size())};
  std::vector<std::byte> description;
  append(description, words);
  append_text(description, program.graph);
  pad_to(description, 4);
  std::vector<std::byte> out;
  append(out, note_name_bytes);
  append(out, static_cast<std::uint32_t>(description.size()));
  append(out, note_type);
  append_text(out, note_name);
  out.insert(out.end(), description.begin(), description.end());
  return out;
}

std::vector<std::byte> names_section() {
  std::vector<std::byte> out(1, std::byte{0});
  for (const Kind& kind : kinds) {
    append_text(out, kind.name);
    out.push_back(std::byte{0});
  }
  return out;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& items) {
  std::vector<std::byte> out(items.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), items.data(), out.size());
  return out;
}

/// Reads one file; a failed step leaves its sentence in error_.
class ElfReader {
 public:
  ElfReader(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {}

  Result<ElfFile> run() {
    if (!read_header() || !read_sections() || !check_layout() || !read_note()) return error_;
    file_.program.ops = items<Op>(1);
    file_.program.buffers = items<BufferDecl>(2);
    return std::move(file_);
  }

 private:
  template <typename... T>
  bool fail(const T&... parts) {
    error_ = failure(name_, ": ", parts...);
    return false;
  }

  bool read_header() {
    if (bytes_.size() > elf_limits::file_bytes_max) {
      return fail("is larger than a program can be (", bytes_.size(), " bytes)");
    }
    if (bytes_.size() < sizeof header_) {
      return fail("is cut short: ", bytes_.size(), " bytes hold no ELF header");
    }
    header_ = load_le<ElfHeader>(bytes_);
    if (!std::equal(ident.begin(), ident.begin() + 4, header_.ident.begin())) {
      return fail("is no ELF file");
    }
    if (header_.ident != ident || header_.version != 1) {
      return fail("ELF identification is not that of a 64-bit little-endian Duet program");
    }
    if (header_.machine != elf_machine || header_.type != type_executable) {
      return fail("ELF machine ", header_.machine, ", type ", header_.type,
                  ": not a Duet program; rebuild the package with duet-pack");
    }
    if (header_.entry != 0 || header_.program_offset != 0 || header_.programs != 0 ||
        header_.program_entry_bytes != 0 || header_.flags != 0) {
      return fail("has an entry point, program headers or flags; a Duet program has none");
    }
    if (header_.header_bytes != sizeof(ElfHeader) ||
        header_.section_entry_bytes != sizeof(SectionHeader)) {
      return fail("ELF header sizes are wrong");
    }
    return true;
  }

  bool read_sections() {
    const std::uint64_t table = std::uint64_t{header_.sections} * sizeof(SectionHeader);
    if (header_.sections < 2 || header_.sections > elf_limits::sections_max) {
      return fail(header_.sections, " sections are not 2 to ", elf_limits::sections_max);
    }
    if (header_.section_offset % 8 != 0 || !inside(header_.section_offset, table)) {
      return fail("the section table lies outside the file; it is cut short or damaged");
    }
    if (header_.names >= header_.sections || header_.names == 0) {
      return fail("section ", header_.names, " (the names) does not exist");
    }
    const auto at = [&](std::uint64_t index) {
      return load_le<SectionHeader>(bytes_, header_.section_offset + index * sizeof(SectionHeader));
    };
    const SectionHeader names = at(header_.names);
    if (names.type != type_strings || !inside(names.offset, names.bytes)) {
      return fail("the table of section names lies outside the file");
    }
    names_ = as_text(bytes_.subspan(names.offset, names.bytes));
    if (!zero(header_.section_offset, sizeof(SectionHeader))) {
      return fail("section 0 is not empty");
    }
    for (std::uint64_t i = 1; i < header_.sections; ++i) {
      if (!take_section(at(i))) return false;
    }
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (!found_[k]) return fail("section ", kinds[k].name, " is missing");
    }
    return true;
  }

  bool take_section(const SectionHeader& section) {
    const std::size_t end =
        section.name < names_.size() ? names_.find('\0', section.name) : std::string_view::npos;
    if (end == std::string_view::npos) return fail("a section's name leaves the string table");
    const std::string_view name = names_.substr(section.name, end - section.name);
    const auto* kind = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const Kind& known) { return known.name == name; });
    if (kind == kinds.end()) return fail("section ", in_quotes(name), " is not known");
    const auto index = static_cast<std::size_t>(kind - kinds.begin());
    if (found_[index]) return fail("section ", name, " is there twice");
    if (section.type != kind->type || section.flags != 0 || section.address != 0 ||
        section.link != 0 || section.info != 0 || section.alignment != kind->alignment ||
        section.entry_bytes != kind->entry_bytes) {
      return fail("section ", name, " has a wrong type, flag, alignment or entry size");
    }
    if (!inside(section.offset, section.bytes)) {
      return fail("section ", name, " ends outside the file (offset ", section.offset, ", ",
                  section.bytes, " bytes); the file is cut short or damaged");
    }
    if (section.offset % kind->alignment != 0) return fail("section ", name, " is not aligned");
    if (kind->entry_bytes != 0 && section.bytes % kind->entry_bytes != 0) {
      return fail("section ", name, " holds no whole number of entries");
    }
    found_[index] = section;
    return true;
  }

  /// Headers and sections must follow one another without overlap, with zeros between them, up to
  /// the end of the file.
  bool check_layout() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces = {
        {0, sizeof(ElfHeader)},
        {header_.section_offset, std::uint64_t{header_.sections} * sizeof(SectionHeader)}};
    for (const auto& section : found_) {
      if (section->bytes != 0) pieces.emplace_back(section->offset, section->bytes);
    }
    std::sort(pieces.begin(), pieces.end());
    std::uint64_t end = 0;
    for (const auto& [offset, size] : pieces) {
      if (offset < end) return fail("headers or sections overlap at byte ", offset);
      if (!zero(end, offset - end)) return fail("there is data between sections at byte ", end);
      end = offset + size;
    }
    if (end != bytes_.size()) return fail("there is data after the last section at byte ", end);
    if (found_[1]->bytes / sizeof(Op) > elf_limits::ops_max || found_[1]->bytes == 0) {
      return fail("the program has no operation or more than ", elf_limits::ops_max);
    }
    if (found_[2]->bytes / sizeof(BufferDecl) > elf_limits::buffers_max) {
      return fail("the program has more than ", elf_limits::buffers_max, " buffers");
    }
    return true;
  }

  bool read_note() {
    ByteReader reader{bytes_.subspan(found_[0]->offset, found_[0]->bytes)};
    std::uint32_t name_bytes = 0;
    std::uint32_t description_bytes = 0;
    std::uint32_t type = 0;
    std::span<const std::byte> name;
    NoteWords words = {};
    std::span<const std::byte> graph;
    if (!reader.take(name_bytes) || !reader.take(description_bytes) || !reader.take(type) ||
        !reader.take(note_name.size(), name)) {
      return fail("the note is cut short");
    }
    if (name_bytes != note_name_bytes || type != note_type || as_text(name) != note_name) {
      return fail("the note is not of the kind DUETPRG1; rebuild the package with duet-pack");
    }
    if (description_bytes != reader.left() || !reader.take(words) ||
        words.graph_bytes > elf_limits::graph_name_bytes_max ||
        !reader.take(words.graph_bytes, graph)) {
      return fail("the note's sizes are wrong");
    }
    if (reader.left() != (4 - words.graph_bytes % 4) % 4 ||
        !zero(found_[0]->offset + reader.position(), reader.left())) {
      return fail("the note is not padded with zeros to 4 bytes");
    }
    if (!is_plain_name(as_text(graph))) {
      return fail("graph name ", in_quotes(as_text(graph)), " is not a plain name");
    }
    if (words.kind > 1) return fail("graph kind ", words.kind, " is not known");
    Program& program = file_.program;
    file_.build_id = words.build_id;
    program.graph = std::string(as_text(graph));
    program.kind = static_cast<GraphKind>(words.kind);
    program.chip = words.chip;
    program.core = words.core;
    program.cores = words.cores;
    program.numerics = words.numerics;
    program.logits = words.logits;
    return true;
  }

  template <typename T>
  std::vector<T> items(std::size_t section) const {
    std::vector<T> out(found_[section]->bytes / sizeof(T));
    if (!out.empty()) {
      std::memcpy(out.data(), bytes_.data() + found_[section]->offset, out.size() * sizeof(T));
    }
    return out;
  }

  [[nodiscard]] bool inside(std::uint64_t offset, std::uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  [[nodiscard]] bool zero(std::uint64_t offset, std::uint64_t size) const {
    const auto part = bytes_.subspan(offset, size);
    return std::all_of(part.begin(), part.end(), [](std::byte b) { return b == std::byte{0}; });
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  ElfHeader header_ = {};
  std::string_view names_;
  std::array<std::optional<SectionHeader>, kinds.size()> found_;
  ElfFile file_;
  Error error_;
};

}   // namespace

std::string build_id_text(const BuildId& id) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : id) {
    out += digits[std::to_integer<unsigned>(byte) >> 4];
    out += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

Result<BuildId> parse_build_id(std::string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  BuildId id = {};
  if (text.size() != id.size() * 2)
    return failure("build id ", in_quotes(text), " has not 32 digits");
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = digits.find(text[i]);
    if (digit == std::string_view::npos) {
      return failure("build id ", in_quotes(text), " is not lower-case hex");
    }
    id[i / 2] = static_cast<std::byte>(std::to_integer<std::size_t>(id[i / 2]) * 16 + digit);
  }
  return id;
}

std::vector<std::byte> write_elf(const Program& program, const BuildId& build_id) {
  DUET_ASSERT(!program.ops.empty() && program.ops.size() <= elf_limits::ops_max,
              program.ops.size());
  DUET_ASSERT(program.buffers.size() <= elf_limits::buffers_max, program.buffers.size());
  DUET_ASSERT(
      is_plain_name(program.graph) && program.graph.size() <= elf_limits::graph_name_bytes_max,
      program.graph);
  const std::array<std::vector<std::byte>, kinds.size()> contents = {
      note_section(program, build_id), bytes_of(program.ops), bytes_of(program.buffers),
      names_section()};
  std::vector<std::byte> out(sizeof(ElfHeader));
  std::vector<SectionHeader> headers(1);
  std::uint32_t name = 1;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    pad_to(out, kinds[i].alignment);
    headers.push_back({name, kinds[i].type, 0, 0, out.size(), contents[i].size(), 0, 0,
                       kinds[i].alignment, kinds[i].entry_bytes});
    out.insert(out.end(), contents[i].begin(), contents[i].end());
    name += static_cast<std::uint32_t>(kinds[i].name.size() + 1);
  }
  pad_to(out, 8);
  ElfHeader header = {};
  header.ident = ident;
  header.type = type_executable;
  header.machine = elf_machine;
  header.version = 1;
  header.section_offset = out.size();
  header.header_bytes = sizeof(ElfHeader);
  header.section_entry_bytes = sizeof(SectionHeader);
  header.sections = static_cast<std::uint16_t>(headers.size());
  header.names = names_index + 1;
  std::memcpy(out.data(), &header, sizeof header);
  const auto table = bytes_of(headers);
  out.insert(out.end(), table.begin(), table.end());
  return out;
}

Result<ElfFile> read_elf(std::span<const std::byte> bytes, const std::string& name) {
  return ElfReader{bytes, name}.run();
}

}   // namespace duet::device
