// sentencepiece_bpe.cpp: SentencePiece's BPE with byte fallback, of one stretch of text.
#include "text/sentencepiece_bpe.hpp"

#include "runtime/assert.hpp"
#include "text/limits.hpp"
#include "text/utf8.hpp"

#include <algorithm>

namespace duet::text {
namespace {

constexpr std::string_view blank = "\xE2\x96\x81";   // U+2581
// Escaping makes at most three bytes of one, and offsets must fit.
static_assert(3 * (limits::text_bytes_max + 1) < (1ULL << 31U));

}   // namespace

void SentencePieceBpe::encode(std::string_view text, bool blank_first, const Vocabulary& vocabulary,
                              Scratch& scratch, std::vector<TokenId>& out) const {
  DUET_ASSERT(text.size() <= limits::text_bytes_max, text.size());
  std::string& escaped = scratch.escaped;
  auto& symbols = scratch.symbols;
  escaped.clear();
  if (blank_first) escaped += blank;
  for (const char byte : text) {
    if (byte == ' ') {
      escaped += blank;
    } else {
      escaped.push_back(byte);
    }
  }
  symbols.clear();
  const std::string_view all = escaped;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t size = std::max<std::size_t>(utf8_character_size(all.substr(at)), 1);
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back(
        {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(size), index - 1, index + 1});
    at += size;
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  merge(vocabulary, scratch);
  for (std::int32_t at = 0; at >= 0; at = symbols[static_cast<std::size_t>(at)].next) {
    const auto& symbol = symbols[static_cast<std::size_t>(at)];
    const auto spelling = all.substr(symbol.begin, symbol.size);
    const TokenId id = vocabulary.find_ordinary(spelling);
    if (id != no_token) {
      out.push_back(id);
      continue;
    }
    for (const char byte : spelling) {
      const TokenId fallback = vocabulary.byte_token(static_cast<std::uint8_t>(byte));
      DUET_ASSERT(fallback != no_token, static_cast<unsigned>(static_cast<std::uint8_t>(byte)));
      out.push_back(fallback);
    }
  }
}

void SentencePieceBpe::push(const Vocabulary& vocabulary, Scratch& scratch, std::int32_t left,
                            std::int32_t right) const {
  if (left < 0 || right < 0) return;
  const auto& first = scratch.symbols[static_cast<std::size_t>(left)];
  const std::uint32_t size = first.size + scratch.symbols[static_cast<std::size_t>(right)].size;
  const auto joined = std::string_view{scratch.escaped}.substr(first.begin, size);
  const TokenId id = vocabulary.find_ordinary(joined);
  if (id == no_token) return;
  scratch.heap.push_back(
      {scores_[id], static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right), size});
}

void SentencePieceBpe::merge(const Vocabulary& vocabulary, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto worse = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  };
  heap.clear();
  for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
    push(vocabulary, scratch, static_cast<std::int32_t>(at), static_cast<std::int32_t>(at + 1));
  }
  std::make_heap(heap.begin(), heap.end(), worse);
  const auto offer = [&](std::int32_t from, std::int32_t to) {
    const std::size_t size = scratch.heap.size();
    push(vocabulary, scratch, from, to);
    if (scratch.heap.size() > size) {
      std::push_heap(scratch.heap.begin(), scratch.heap.end(), worse);
    }
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), worse);
    const Scratch::Candidate best = heap.back();
    heap.pop_back();
    auto& left = symbols[best.left];
    auto& right = symbols[best.right];
    if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
    DUET_DEBUG_ASSERT(left.next == static_cast<std::int32_t>(best.right), left.next, best.right);
    left.size = best.size;
    left.next = right.next;
    right.size = 0;
    if (left.next >= 0) {
      symbols[static_cast<std::size_t>(left.next)].previous = static_cast<std::int32_t>(best.left);
    }
    offer(left.previous, static_cast<std::int32_t>(best.left));
    offer(static_cast<std::int32_t>(best.left), left.next);
  }
}

}   // namespace duet::text
