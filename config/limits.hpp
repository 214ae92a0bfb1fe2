// limits.hpp: the bounds of configuration files, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

namespace duet::config::limits {

/// A configuration with every key is 4 KiB; the rest is room for comments.
inline constexpr std::size_t file_bytes_max = 256U << 10U;

/// The scanner looks back along a line for each key, so that a line costs its square.
inline constexpr std::size_t line_bytes_max = 4096;

/// Four levels are used.
inline constexpr std::size_t depth_max = 8;

/// Keys and values together; all known keys make about two hundred.
inline constexpr std::size_t nodes_max = 8192;

/// More errors than anybody corrects in one go.
inline constexpr std::size_t findings_max = 100;

/// Longer words are no misspelling of a key of ours; the comparison costs the product of lengths.
inline constexpr std::size_t key_bytes_max = 64;

/// A chip holds one model, and the board has two.
inline constexpr std::size_t models_max = 2;

/// Texts and paths; the longest path that the kernel takes.
inline constexpr std::size_t text_bytes_max = 4095;

/// A socket's path with its null byte fills `sockaddr_un::sun_path`.
inline constexpr std::size_t socket_path_bytes_max = 107;

/// Users of an administration socket, signers of packages.
inline constexpr std::size_t list_items_max = 64;

/// Of a scripted answer; a board's vocabularies are below 2^24.
inline constexpr std::uint64_t token_id_max = (1U << 24U) - 1;

/// Keys are compared one by one; a thousand take microseconds.
inline constexpr std::size_t keys_max = 1000;
inline constexpr std::size_t keys_file_bytes_max = 512U << 10U;

/// Sixteen characters of base64 are 96 bits, beyond guessing.
inline constexpr std::size_t secret_bytes_min = 16;
inline constexpr std::size_t secret_bytes_max = 256;

}   // namespace duet::config::limits
