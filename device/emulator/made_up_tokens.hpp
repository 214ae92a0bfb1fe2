// made_up_tokens.hpp: the answers of a board that does not compute. They mean nothing, but each is
// the only right one for its prompt, so that a test can foretell it at any load.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace duet::device::emulator {

/// All tokens of one sequence of one model, in 64 bits. Two models never share one, whatever their
/// tokens are (up to a collision).
using SequenceHash = std::uint64_t;

/// Of a sequence without tokens. `model`: its name in the manifest; it is the key of the hash.
[[nodiscard]] SequenceHash empty_sequence(std::string_view model) noexcept;
[[nodiscard]] SequenceHash append_token(SequenceHash sequence, std::uint32_t token) noexcept;

/// What comes next: one of `ordinary`, the model's tokens that are plain text. So an answer never
/// ends by itself: its length limit, its stop strings or a script end it. `ordinary` is not empty.
[[nodiscard]] std::uint32_t made_up_token(SequenceHash sequence,
                                          std::span<const std::uint32_t> ordinary) noexcept;

/// The whole greedy answer to `prompt`.
[[nodiscard]] std::vector<std::uint32_t> made_up_answer(std::string_view model,
                                                        std::span<const std::uint32_t> prompt,
                                                        std::span<const std::uint32_t> ordinary,
                                                        std::size_t tokens);

/// The logit of the chosen token; all others are 0. Far enough away that sampling at any
/// temperature up to 2 takes it.
inline constexpr float made_up_logit = 100.0F;

}   // namespace duet::device::emulator
