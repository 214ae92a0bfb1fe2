// profile.hpp: what an emulated board is made of and what it promises, and the emulator's bounds.
#pragma once

#include "device/contract/limits.hpp"
#include "device/contract/types.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace duet::device::emulator {

namespace limits {

/// A chip mask has 32 bits, but the emulated board is the two-chiplet one.
inline constexpr std::uint32_t chips_max = 2;

/// Jobs of one chip that are queued, running, or ended and not yet waited for. The contract keeps
/// two in flight; the rest is room for a driver that asks for more, and for ends nobody fetched.
inline constexpr std::uint32_t jobs_per_chip_max = 16;

/// Staging buffers of the board: the live ones of both chips, and as many that a reset retired and
/// their owners have not released yet.
inline constexpr std::uint32_t io_buffers_board_max =
    2 * chips_max * ::duet::device::limits::io_buffers_max;

/// Slots are searched one by one for each job, and a first-round package has one or two.
inline constexpr std::uint32_t kv_slots_max = 1024;

/// Each job has at most one transfer and one end waiting to be carried out.
inline constexpr std::size_t actions_max = 4U * chips_max * jobs_per_chip_max;

/// Sections of a package: a few dozen; the overlap check sorts them.
inline constexpr std::size_t sections_max = 4096;

}   // namespace limits

/// The two job engines of a chip: ping is slot 0, pong is slot 1. Neither is a core.
inline constexpr std::uint32_t engines_per_chip = 2;

/// Who gives the time of a transfer on the PCIe link.
enum class TransferTiming : std::uint8_t {
  modelled,    ///< the core, from the link's latency and bandwidth.
  performed,   ///< the driver, which copies the bytes and says when it began and ended.
};

/// Where a job's logits come from.
enum class Compute : std::uint8_t {
  real,    ///< the transformer, on the host's CPU, in the time that takes.
  timed,   ///< made up (made_up_tokens.hpp), in the time that the rates below give.
  null,    ///< made up, and done at once: what is left is the cost of whoever asks.
};

/// One kind of board. `combined` is the default one; others differ in how they compute or in the
/// isolation flags.
struct Profile {
  std::string name = "combined";
  std::uint32_t chips = 2;
  std::uint32_t cores_per_chip = 2;
  std::uint64_t dram_bytes_per_chip = std::uint64_t{16} << 30U;
  TransferTiming transfers = TransferTiming::performed;
  std::uint64_t pcie_bytes_per_second = 8'000'000'000;   ///< one link for both chips; not 0.
  ChipNanoseconds pcie_latency = 1'000;                  ///< of each transfer.

  /// timed and null want modelled transfers; null's take no time.
  Compute compute = Compute::real;
  // Of timed, each chip's own: a job takes job_overhead and the longer of reading its weights and
  // key/values once and of its multiply-adds (a roofline). Assumptions, not a board's figures.
  std::uint64_t dram_bytes_per_second = 100'000'000'000;     ///< not 0.
  std::uint64_t operations_per_second = 8'000'000'000'000;   ///< a multiply-add is two; not 0.
  ChipNanoseconds job_overhead = 20'000;
  std::uint32_t jobs_per_chip_max = limits::jobs_per_chip_max;

  std::size_t trace_events_max = ::duet::device::limits::trace_events_max;   ///< a chip.

  // What is isolated; each flag is the Topology's of that name. Today's board offers the default of
  // the first three only; check_profile refuses the others.
  bool combined = true;
  bool independent_queues = true;
  bool session_reset = false;
  bool ccu_reset = true;
  bool chip_reset = true;
  bool per_chip_memory = true;
};

/// The profiles that programs offer by name: "combined", "timed", "null". Empty: there is none.
[[nodiscard]] std::optional<Profile> find_profile(std::string_view name);

/// Throws std::invalid_argument if a number is 0 or above its limit, or a flag is not offered.
void check_profile(const Profile& profile);

[[nodiscard]] Topology topology_of(const Profile& profile);

}   // namespace duet::device::emulator
