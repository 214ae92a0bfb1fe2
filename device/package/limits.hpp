// limits.hpp: the numbers of a package, each with its reason.
#pragma once

#include <cstdint>

namespace duet::device::package_limits {

inline constexpr std::uint32_t models_max = 2;       // one a chip of a board with two
inline constexpr std::uint32_t graphs_max = 16;      // two a model
inline constexpr std::uint32_t sections_max = 256;   // a model has about 24
inline constexpr std::uint32_t routes_max = 64;      // two a model
inline constexpr std::uint32_t chips_max = 2;        // the board
inline constexpr std::uint32_t cores_max = 2;        // CalCores of a chip

inline constexpr std::uint64_t section_alignment =
    4096;                                               // a page of the chip's address translation
inline constexpr std::uint64_t tensor_alignment = 64;   // a cache line and the widest vector
inline constexpr std::uint64_t guard_bytes =
    1U << 20;   // [0, 1 MiB) is never mapped: a null address faults

inline constexpr std::uint32_t sync_units_per_graph = 4;   // two an engine: started, done
inline constexpr std::uint64_t sequence_ids_per_model = std::uint64_t{1} << 32;
inline constexpr std::uint64_t dram_bytes_max = std::uint64_t{64} << 30;   // a chip has 16 GiB
inline constexpr std::uint32_t kv_slots_max = 4096;   // sequences of one model at a time
inline constexpr std::uint32_t golden_prompts_min = 4;
inline constexpr std::uint32_t tile_tokens = 256;   // tokens that a prefill computes together

// A file that no section declares this large is not read at all: a sparse file costs nothing to
// make.
inline constexpr std::uint64_t undeclared_file_bytes_max = std::uint64_t{64} << 20;

}   // namespace duet::device::package_limits
