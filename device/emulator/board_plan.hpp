// board_plan.hpp: what the board needs to know of a package, checked against the board itself.
#pragma once

#include "device/emulator/profile.hpp"
#include "device/package/manifest.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace duet::device::emulator {

struct GraphPlan {
  std::string name;
  GraphKind kind = GraphKind::decode;
  std::uint32_t chip = 0;
  std::uint32_t pool = 0;         ///< index into BoardPlan::pools.
  std::uint32_t tokens_max = 0;   ///< of one job.
  std::uint32_t context = 0;      ///< positions of a sequence.
  std::uint32_t vocabulary = 0;
  bool split_prefill = false;
  // For the time of a timed job.
  std::uint64_t weight_bytes = 0;           ///< read once a job.
  std::uint64_t kv_bytes_per_token = 0;     ///< read once a position of the sequence.
  std::uint64_t operations_per_token = 0;   ///< two a weight.
};

/// The key/value slots of one model.
struct PoolPlan {
  std::string model;
  std::uint32_t chip = 0;
  std::uint32_t slots = 0;
  std::uint32_t tokens_per_slot = 0;
  std::uint64_t bytes_per_slot = 0;
  SequenceId sequence_first = 0;
  SequenceId sequence_last = 0;
};

struct SectionPlan {
  std::string name;
  std::string owner;   ///< the model.
  SectionKind kind = SectionKind::program;
  std::uint32_t chip = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

struct BoardPlan {
  std::string hash;                ///< of the package, 64 hex digits.
  std::vector<GraphPlan> graphs;   ///< in the manifest's order: the index is the GraphHandle.
  std::vector<PoolPlan> pools;     ///< one a model, in the manifest's order.
  std::vector<SectionPlan> sections;
};

/// True for memory that load fills from a file; the rest is reserved by configure.
[[nodiscard]] bool filled_at_load(SectionKind kind) noexcept;

/// Bytes of one BF16 key/value slot: 2 (K and V) · layers · kv_heads · head_dim · tokens · 2.
/// The lower bound of. Saturates instead of overflowing.
[[nodiscard]] std::uint64_t kv_slot_bytes(const ModelConfig& config, std::uint32_t tokens) noexcept;

/// Checks all that the board relies on, whatever a validator said before: names, chips, masks,
/// kinds, sizes, sequence ranges, staging. Addresses are checked when the sections are placed.
/// Errors: package_invalid, out_of_memory (the package was made for a larger chip).
[[nodiscard]] result<BoardPlan> plan_board(const Manifest& manifest, std::string hash,
                                           const Profile& profile);

}   // namespace duet::device::emulator
