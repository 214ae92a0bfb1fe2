// limits.hpp: the bounds of http/ that no configuration changes, each with its reason.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace duet::http::limits {

/// One read from a socket; as large as the usual receive of a fast upload, small enough for a
/// stack.
inline constexpr std::size_t read_bytes = 16U << 10U;

/// Reads and pipelined requests a turn of one connection; then the others get theirs.
inline constexpr std::uint32_t reads_a_turn_max = 16;
inline constexpr std::uint32_t requests_a_turn_max = 16;

/// What a client may send ahead while its answer is being made.
inline constexpr std::size_t read_ahead_bytes_max = 64U << 10U;

/// A refused request's body up to this size is read away, so that the connection can go on; a
/// larger one costs the connection.
inline constexpr std::size_t discard_bytes_max = 64U << 10U;

/// After a last answer: what is read away so that the answer arrives before the reset, and for how
/// long.
inline constexpr std::size_t linger_bytes_max = 1U << 20U;

/// A body in one-byte chunks takes six bytes a byte; eight and a header's worth is generous.
inline constexpr std::size_t wire_bytes_a_body_byte_max = 8;

/// No body that we take comes near; a larger chunk size is a malformed one.
inline constexpr std::uint64_t chunk_bytes_max = std::uint64_t{1} << 40U;

/// Text of the client that an error message repeats.
inline constexpr std::size_t echo_bytes_max = 64;

/// The longest contexts of public models hold ten million tokens.
inline constexpr std::uint32_t answer_tokens_max = 1U << 24U;

/// Choices of all prompts of a request together: each is a sequence.
inline constexpr std::size_t choices_a_request_max = 128;

/// OpenAI's bound of the completions API's `logprobs`.
inline constexpr std::uint32_t legacy_logprobs_max = 5;

/// Messages of a conversation; a million tokens hold fewer that say anything.
inline constexpr std::size_t messages_max = 16384;

/// Tool calls of one message.
inline constexpr std::size_t tool_calls_max = 128;

/// JSON above this size is parsed away from the loop, if there is a place for it.
inline constexpr std::size_t offload_body_bytes_min = 64U << 10U;

/// Connections accepted in a row before other handlers get their turn.
inline constexpr std::uint32_t accepts_a_turn_max = 64;

/// A stream whose client writes no more gets a comment after this silence, in case the client is
/// dead: many tokens' time on a fast model, less than one job's on a slow one.
inline constexpr std::chrono::milliseconds half_closed_probe{20};

/// Buffers of an idle connection above this size are given back.
inline constexpr std::size_t idle_buffer_bytes_max = 4U << 10U;

}   // namespace duet::http::limits
