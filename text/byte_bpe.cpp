// byte_bpe.cpp: byte-level byte pair encoding of one piece of text.
#include "text/byte_bpe.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

namespace duet::text {
namespace {

// Below this length a scan for the best pair at each step is faster than a heap; words are short.
constexpr std::size_t scan_bytes_max = 24;

std::uint64_t pair_of(TokenId left, TokenId right) noexcept {
  return std::uint64_t{left} << 32U | right;
}

std::size_t hash_of(std::uint64_t pair) noexcept {
  // Fibonacci hashing; the high half is the well mixed one.
  const std::uint64_t mixed = (pair ^ pair >> 29U) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(mixed ^ mixed >> 32U);
}

Error merge_error(std::size_t index, std::string_view what) {
  return {errc::tokenizer_invalid, "tokenizer.json: key 'merges': entry " + std::to_string(index) +
                                       " " + std::string{what} + "; build the package again"};
}

}   // namespace

Result<ByteBpe> ByteBpe::create(const TokenizerData& data, const Vocabulary& vocabulary) {
  ByteBpe made;
  made.slots_.resize(std::bit_ceil(data.merges.size() * 2 + 1));
  std::string joined;
  for (std::size_t index = 0; index < data.merges.size(); ++index) {
    const std::string_view merge = data.merges[index];
    const auto blank = merge.find(' ', 1);
    if (merge.empty() || blank == merge.npos || blank + 1 == merge.size()) {
      return merge_error(index, "is not two tokens with a blank between");
    }
    const auto left = vocabulary.find_ordinary(merge.substr(0, blank));
    const auto right = vocabulary.find_ordinary(merge.substr(blank + 1));
    if (left == no_token || right == no_token) {
      return merge_error(index, "names a token that is not in the vocabulary");
    }
    joined.assign(merge.substr(0, blank)).append(merge.substr(blank + 1));
    const auto result = vocabulary.find_ordinary(joined);
    if (result == no_token)
      return merge_error(index, "makes a token that is not in the vocabulary");
    if (made.find(left, right) != nullptr) continue;
    made.insert({pair_of(left, right), static_cast<std::uint32_t>(index), result});
  }
  return made;
}

const ByteBpe::Merge* ByteBpe::find(TokenId left, TokenId right) const noexcept {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_of(pair) & mask;; at = (at + 1) & mask) {
    if (slots_[at].pair == pair) return &slots_[at];
    if (slots_[at].pair == empty_pair) return nullptr;
  }
}

void ByteBpe::insert(Merge merge) noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_of(merge.pair) & mask;
  while (slots_[at].pair != empty_pair) at = (at + 1) & mask;
  slots_[at] = merge;
}

void ByteBpe::encode(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                     std::vector<TokenId>& out) const {
  DUET_ASSERT(piece.size() <= std::numeric_limits<std::int32_t>::max(), piece.size());
  auto& symbols = scratch.symbols;
  symbols.clear();
  for (const char byte : piece) {
    const auto at = static_cast<std::int32_t>(symbols.size());
    const TokenId id = vocabulary.byte_token(static_cast<std::uint8_t>(byte));
    if (id != no_token) symbols.push_back({id, at - 1, at + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  if (symbols.size() <= scan_bytes_max) {
    merge_short(symbols);
    for (const auto& symbol : symbols) out.push_back(symbol.id);
    return;
  }
  merge_long(scratch);
  for (std::int32_t at = 0; at >= 0; at = symbols[static_cast<std::size_t>(at)].next) {
    out.push_back(symbols[static_cast<std::size_t>(at)].id);
  }
}

void ByteBpe::merge_short(std::vector<Scratch::Symbol>& symbols) const {
  while (symbols.size() > 1) {
    const Merge* best = nullptr;
    std::size_t best_at = 0;
    for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
      const Merge* merge = find(symbols[at].id, symbols[at + 1].id);
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
        best = merge;
        best_at = at;
      }
    }
    if (best == nullptr) return;
    symbols[best_at].id = best->result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

void ByteBpe::push(Scratch& scratch, std::int32_t left, std::int32_t right) const {
  if (left < 0 || right < 0) return;
  const TokenId left_id = scratch.symbols[static_cast<std::size_t>(left)].id;
  const TokenId right_id = scratch.symbols[static_cast<std::size_t>(right)].id;
  const Merge* merge = find(left_id, right_id);
  if (merge == nullptr) return;
  scratch.heap.push_back({merge->rank, static_cast<std::uint32_t>(left),
                          static_cast<std::uint32_t>(right), left_id, right_id});
}

void ByteBpe::merge_long(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto worse = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  heap.clear();
  for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
    push(scratch, static_cast<std::int32_t>(at), static_cast<std::int32_t>(at + 1));
  }
  std::make_heap(heap.begin(), heap.end(), worse);
  const auto offer = [&](std::int32_t from, std::int32_t to) {
    const std::size_t size = scratch.heap.size();
    push(scratch, from, to);
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
    // A symbol that was merged away has no token; one that grew has another.
    if (left.id != best.left_id || right.id != best.right_id) continue;
    if (left.next != static_cast<std::int32_t>(best.right)) continue;
    left.id = find(best.left_id, best.right_id)->result;
    left.next = right.next;
    right.id = no_token;
    if (left.next >= 0) {
      symbols[static_cast<std::size_t>(left.next)].previous = static_cast<std::int32_t>(best.left);
    }
    offer(left.previous, static_cast<std::int32_t>(best.left));
    offer(static_cast<std::int32_t>(best.left), left.next);
  }
}

}   // namespace duet::text
