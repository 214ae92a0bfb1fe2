// limits.hpp: the bounds of the application, each with its reason.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace duet::actors::limits {

/// A client's own id goes into logs and answers; a UUID with a prefix fits twice.
inline constexpr std::size_t request_id_bytes_max = 128;

/// An alias as long as a file name.
inline constexpr std::size_t alias_bytes_max = 256;

/// OpenAI's own bound of `n` is 128; each choice takes a key/value slot in turn.
inline constexpr std::uint32_t choices_max = 128;

/// Prompts of one completions request; each becomes sequences of its own.
inline constexpr std::size_t prompts_max = 128;

/// OpenAI's bound is 4; other servers take more.
inline constexpr std::size_t stops_max = 16;

/// OpenAI's bound of top_logprobs.
inline constexpr std::uint32_t logprobs_top_max = 20;

/// Running requests of the whole server; each is an actor of a few KiB.
inline constexpr std::size_t requests_max = 10000;

/// Between two tries to bring a board back; a client's patience ends long before.
inline constexpr std::chrono::minutes recovery_pause_max{5};

/// Orders that wait for a buffer or a place in flight: the worker's two and the supervisor's one,
/// twice.
inline constexpr std::size_t orders_max = 6;

/// Seconds. From a null device's half millisecond to a long prefill behind a queue.
inline constexpr std::array<double, 14> latency_buckets_seconds = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};

/// Tokenizing more than this on the loop would hold other requests up for milliseconds.
inline constexpr std::size_t offload_text_bytes_min = 64U << 10U;

}   // namespace duet::actors::limits
