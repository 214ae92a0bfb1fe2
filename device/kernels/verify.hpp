// verify.hpp: proves that a graph's programs stay within their memory and that its cores never
// race.
#pragma once

#include "device/kernels/executor.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace duet::device {

/// What the executor needs to know beyond the programs.
struct VerifiedGraph {
  std::uint32_t vocabulary = 0;   ///< width of the logits = rows of the embedding table.
  std::vector<std::uint32_t>
      meetings;   ///< op numbers of `sync`, ascending; the same in every core's program.
  std::uint32_t last_token = 0;   ///< op number of `last_token`, or of `end` if there is none.
  std::vector<bool> one_row;   ///< by buffer: only used for the last token, so one row is enough.
};

/// Bounds that keep verification and its answer small; each is far above any model that fits the
/// board.
inline constexpr std::uint32_t program_ops_max =
    16384;   ///< 128 layers of 30 operations, four times.
inline constexpr std::uint32_t program_buffers_max = 64;
inline constexpr std::uint32_t buffer_width_max = 1U << 22;   ///< a vocabulary of four million.
inline constexpr std::uint32_t segment_ops_max = 256;   ///< between two meetings; 12 are usual.
inline constexpr std::uint32_t kv_tokens_max = 1U << 20;

/// Pure. Checks, in this order: the heads of the programs; every operation's flags, buffers,
/// tensors, ranges and numbers; that both cores run the same operations on different shares; that
/// between two meetings no core writes what the other reads or writes; that nothing is read before
/// it has been written in the same pass; that the logits are complete.
[[nodiscard]] boost::system::result<VerifiedGraph, std::string> verify_graph(
    std::span<const Program> cores, std::span<const TensorView> tensors, const KvLayout& kv,
    Arithmetic arithmetic);

}   // namespace duet::device
