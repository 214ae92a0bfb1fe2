// command.hpp: command lists and register words of a graph: what drives a job on the board besides
// the CalCores.
//
// A job of one engine runs two lists side by side: the CPU list moves the input in and the output
// out, the PLD list starts the CalCores; they meet at two of the graph's sync units. Ping uses
// staging slot 0, pong slot 1.
#pragma once

#include "device/package/manifest.hpp"
#include "device/program/elf.hpp"
#include "device/program/message.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

enum class CommandOpcode : std::uint16_t {
  dma_in = 1,      ///< host -> chip: `bytes` bytes into `address` (an upper bound: the job says how
                   ///< many it has).
  run_cores = 2,   ///< starts the CalCores of `core_mask` and goes on when all have ended.
  wait = 3,        ///< until `sync_unit` is signalled; clears it.
  dma_out = 4,     ///< chip -> host: `bytes` bytes from `address`.
  signal = 5,      ///< signals `sync_unit`.
  complete = 6,    ///< writes the job's completion record; the last command of the CPU list.
  end = 7,         ///< the last command of the PLD list.
};

/// One command: 32 bytes, little-endian. Fields without meaning for the opcode are 0.
struct Command {
  CommandOpcode opcode = CommandOpcode::end;
  std::uint16_t flags = 0;       ///< 0.
  std::uint32_t sync_unit = 0;   ///< wait, signal: device-wide number.
  std::uint32_t core_mask = 0;   ///< run_cores: bit n is CalCore n of the graph's chip.
  std::uint32_t route = 0;       ///< dma: index into the manifest's dma_routes.
  std::uint64_t address = 0;     ///< dma: in the chip's local DRAM.
  std::uint64_t bytes = 0;       ///< dma.
};
static_assert(sizeof(Command) == 32 && std::is_trivially_copyable_v<Command>);

struct CommandList {
  std::string graph;
  std::uint32_t chip = 0;
  Engine engine = Engine::ping;   ///< ping or pong.
  Processor processor = Processor::cpu;
  BuildId build_id = {};
  std::vector<Command> commands;
};

/// Registers that a graph's start writes. All values are 64 bit.
enum class CsrRegister : std::uint32_t {
  parameters_base = 1,
  workspace_base = 2,
  kv_base = 3,
  kv_slots = 4,
  kv_bytes_per_slot = 5,
  context = 6,
  tokens_max = 7,
  batch = 8,
};

struct CsrWord {
  CsrRegister number = CsrRegister::parameters_base;
  std::uint64_t value = 0;
};

struct CsrList {
  std::string graph;
  std::uint32_t chip = 0;
  BuildId build_id = {};
  std::vector<CsrWord> words;
};

namespace command_limits {
inline constexpr std::uint64_t commands_max = 64;   // a list has below ten
inline constexpr std::uint64_t words_max = 64;      // there are eight registers
}   // namespace command_limits

/// The same list gives the same bytes. Lists are within command_limits (asserted).
[[nodiscard]] std::vector<std::byte> write_commands(const CommandList& list);
[[nodiscard]] std::vector<std::byte> write_csr(const CsrList& list);

/// Strict: exact size, known opcodes and registers, zero padding. `name` begins every error.
[[nodiscard]] Result<CommandList> read_commands(std::span<const std::byte> bytes,
                                                const std::string& name);
[[nodiscard]] Result<CsrList> read_csr(std::span<const std::byte> bytes, const std::string& name);

}   // namespace duet::device
