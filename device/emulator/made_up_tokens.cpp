// made_up_tokens.cpp: a keyed hash of a sequence, and a token from it.
#include "device/emulator/made_up_tokens.hpp"

#include "runtime/assert.hpp"

namespace duet::device::emulator {
namespace {

/// A bijection in which each bit of the input changes half of the output's (the finaliser of
/// SplitMix64, Steele, Lea and Flood 2014).
std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15U;

}   // namespace

SequenceHash empty_sequence(std::string_view model) noexcept {
  std::uint64_t hash = golden_ratio;
  for (const char letter : model) hash = mix(hash + static_cast<unsigned char>(letter) + 1);
  return hash;
}

SequenceHash append_token(SequenceHash sequence, std::uint32_t token) noexcept {
  // The sum is a bijection of the old hash and mix is one, so only different tokens at one place
  // can ever lead two sequences together.
  return mix(sequence * 5 + (std::uint64_t{token} + 1) * golden_ratio);
}

std::uint32_t made_up_token(SequenceHash sequence,
                            std::span<const std::uint32_t> ordinary) noexcept {
  DUET_ASSERT(!ordinary.empty());
  DUET_ASSERT(ordinary.size() <= std::uint64_t{1} << 32U, ordinary.size());
  // The upper half, scaled to the size: no division on the way of a token.
  return ordinary[((mix(sequence) >> 32U) * ordinary.size()) >> 32U];
}

std::vector<std::uint32_t> made_up_answer(std::string_view model,
                                          std::span<const std::uint32_t> prompt,
                                          std::span<const std::uint32_t> ordinary,
                                          std::size_t tokens) {
  SequenceHash sequence = empty_sequence(model);
  for (const std::uint32_t token : prompt) sequence = append_token(sequence, token);
  std::vector<std::uint32_t> answer;
  answer.reserve(tokens);
  while (answer.size() < tokens) {
    answer.push_back(made_up_token(sequence, ordinary));
    sequence = append_token(sequence, answer.back());
  }
  return answer;
}

}   // namespace duet::device::emulator
