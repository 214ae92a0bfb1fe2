// command.cpp: writes and reads command lists and register words.
#include "device/program/command.hpp"

#include "device/program/byte_reader.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace duet::device {
namespace {

constexpr std::size_t graph_bytes = 128;

/// Both kinds of file begin with this.
struct Header {
  std::array<char, 8> magic;
  BuildId build_id;
  std::array<char, graph_bytes> graph;   ///< padded with zeros.
  std::uint32_t chip, engine, processor, count;
};
static_assert(sizeof(Header) == 168);

struct StoredWord {
  std::uint32_t number, reserved;
  std::uint64_t value;
};
static_assert(sizeof(StoredWord) == 16);

constexpr std::array<char, 8> commands_magic = {'D', 'U', 'E', 'T', 'C', 'M', 'D', '1'};
constexpr std::array<char, 8> csr_magic = {'D', 'U', 'E', 'T', 'C', 'S', 'R', '1'};

template <typename T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void set_graph(Header& header, const std::string& graph) {
  DUET_ASSERT(is_plain_name(graph) && graph.size() <= graph_bytes, graph);
  std::copy(graph.begin(), graph.end(), header.graph.begin());
}

/// Checks everything about the header but its meaning; the graph's name comes out.
Result<Header> read_header(std::span<const std::byte> bytes, const std::array<char, 8>& magic,
                           std::uint64_t count_max, std::uint64_t entry_bytes,
                           const std::string& name, std::string& graph) {
  if (bytes.size() < sizeof(Header)) {
    return failure(name, ": is cut short: ", bytes.size(), " bytes hold no header");
  }
  const auto header = load_le<Header>(bytes);
  if (header.magic != magic) {
    return failure(name, ": does not begin with ", std::string_view{magic.data(), magic.size()},
                   "; rebuild the package with duet-pack");
  }
  if (header.count == 0 || header.count > count_max) {
    return failure(name, ": ", header.count, " entries are not 1 to ", count_max);
  }
  if (bytes.size() != sizeof(Header) + header.count * entry_bytes) {
    return failure(name, ": ", bytes.size(), " bytes do not fit ", header.count,
                   " entries; the file is cut short or damaged");
  }
  const auto* end = std::find(header.graph.begin(), header.graph.end(), '\0');
  graph.assign(header.graph.begin(), end);
  const bool padded = std::all_of(end, header.graph.end(), [](char c) { return c == '\0'; });
  if (!is_plain_name(graph) || !padded) {
    return failure(name, ": graph name ", in_quotes(graph), " is not a plain name");
  }
  return header;
}

}   // namespace

std::vector<std::byte> write_commands(const CommandList& list) {
  DUET_ASSERT(!list.commands.empty() && list.commands.size() <= command_limits::commands_max);
  Header header = {commands_magic,
                   list.build_id,
                   {},
                   list.chip,
                   static_cast<std::uint32_t>(list.engine),
                   static_cast<std::uint32_t>(list.processor),
                   static_cast<std::uint32_t>(list.commands.size())};
  set_graph(header, list.graph);
  std::vector<std::byte> out;
  append(out, header);
  for (const Command& command : list.commands) append(out, command);
  return out;
}

std::vector<std::byte> write_csr(const CsrList& list) {
  DUET_ASSERT(!list.words.empty() && list.words.size() <= command_limits::words_max);
  Header header = {
      csr_magic, list.build_id, {}, list.chip, 0, 0, static_cast<std::uint32_t>(list.words.size())};
  set_graph(header, list.graph);
  std::vector<std::byte> out;
  append(out, header);
  for (const CsrWord& word : list.words) {
    append(out, StoredWord{static_cast<std::uint32_t>(word.number), 0, word.value});
  }
  return out;
}

Result<CommandList> read_commands(std::span<const std::byte> bytes, const std::string& name) {
  CommandList list;
  const auto header = read_header(bytes, commands_magic, command_limits::commands_max,
                                  sizeof(Command), name, list.graph);
  if (header.has_error()) return header.error();
  const bool known_engine = header->engine == static_cast<std::uint32_t>(Engine::ping) ||
                            header->engine == static_cast<std::uint32_t>(Engine::pong);
  if (!known_engine || header->processor > static_cast<std::uint32_t>(Processor::pld)) {
    return failure(name, ": engine ", header->engine, " or processor ", header->processor,
                   " is not known");
  }
  list.chip = header->chip;
  list.engine = static_cast<Engine>(header->engine);
  list.processor = static_cast<Processor>(header->processor);
  list.build_id = header->build_id;
  for (std::uint64_t i = 0; i < header->count; ++i) {
    const auto command = load_le<Command>(bytes, sizeof(Header) + i * sizeof(Command));
    const auto opcode = static_cast<std::uint16_t>(command.opcode);
    if (opcode < static_cast<std::uint16_t>(CommandOpcode::dma_in) ||
        opcode > static_cast<std::uint16_t>(CommandOpcode::end) || command.flags != 0) {
      return failure(name, ": command ", i, ": opcode ", opcode, " with flags ", command.flags,
                     " is not known");
    }
    list.commands.push_back(command);
  }
  return list;
}

Result<CsrList> read_csr(std::span<const std::byte> bytes, const std::string& name) {
  CsrList list;
  const auto header = read_header(bytes, csr_magic, command_limits::words_max, sizeof(StoredWord),
                                  name, list.graph);
  if (header.has_error()) return header.error();
  if (header->engine != 0 || header->processor != 0) {
    return failure(name, ": register words belong to no engine or processor");
  }
  list.chip = header->chip;
  list.build_id = header->build_id;
  for (std::uint64_t i = 0; i < header->count; ++i) {
    const auto word = load_le<StoredWord>(bytes, sizeof(Header) + i * sizeof(StoredWord));
    if (word.number < static_cast<std::uint32_t>(CsrRegister::parameters_base) ||
        word.number > static_cast<std::uint32_t>(CsrRegister::batch) || word.reserved != 0) {
      return failure(name, ": word ", i, ": register ", word.number, " is not known");
    }
    const auto number = static_cast<CsrRegister>(word.number);
    for (const CsrWord& earlier : list.words) {
      if (earlier.number == number)
        return failure(name, ": register ", word.number, " is set twice");
    }
    list.words.push_back({number, word.value});
  }
  return list;
}

}   // namespace duet::device
