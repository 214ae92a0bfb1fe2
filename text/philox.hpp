// philox.hpp: the counter-based random numbers of sampling.
// Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011: Philox4x32-10.
#pragma once

#include <array>
#include <cstdint>

namespace duet::text {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

[[nodiscard]] constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// The one random number of a token: k / 2^24 with k of 0 to 2^24 - 1. This is public behaviour: a
/// seed gives the same answer in every version. Key: the seed's low half and the choice's index;
/// counter: the position of the token in the answer, 0, 0, the seed's high half.
[[nodiscard]] constexpr double token_uniform(std::uint64_t seed, std::uint32_t choice,
                                             std::uint32_t position) noexcept {
  const PhiloxCounter word = philox({position, 0, 0, static_cast<std::uint32_t>(seed >> 32U)},
                                    {static_cast<std::uint32_t>(seed), choice});
  return static_cast<double>(word[0] >> 8U) / 16777216.0;
}

}   // namespace duet::text
