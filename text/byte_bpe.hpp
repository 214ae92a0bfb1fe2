// byte_bpe.hpp: byte-level byte pair encoding (GPT-2's) of one piece of text.
// Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016:
// again and again the adjacent pair with the best rank is merged, of equal ones the leftmost.
#pragma once

#include "text/vocabulary.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace duet::text {

/// Immutable after creation; any thread. It keeps no reference to the vocabulary.
class ByteBpe {
 public:
  /// Working memory, kept by the caller so that a long text needs it once.
  struct Scratch {
    struct Symbol {
      TokenId id;
      std::int32_t previous, next;   // -1: none
    };
    struct Candidate {
      std::uint32_t rank;
      std::uint32_t left;
      std::uint32_t right;
      TokenId left_id, right_id;   // as they were; another id means that the candidate is stale
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  /// Errors: tokenizer_invalid when a merge is no pair, or names or makes a token that is not
  /// there. Of equal merges the first one counts.
  [[nodiscard]] static Result<ByteBpe> create(const TokenizerData& data,
                                              const Vocabulary& vocabulary);

  /// Appends the tokens of `piece` (any bytes). Time n log n.
  void encode(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
              std::vector<TokenId>& out) const;

 private:
  struct Merge {
    std::uint64_t pair = empty_pair;   // left << 32 | right
    std::uint32_t rank = 0;
    TokenId result = 0;
  };
  static constexpr std::uint64_t empty_pair = ~std::uint64_t{0};

  ByteBpe() = default;
  [[nodiscard]] const Merge* find(TokenId left, TokenId right) const noexcept;
  void insert(Merge merge) noexcept;
  void merge_short(std::vector<Scratch::Symbol>& symbols) const;
  void merge_long(Scratch& scratch) const;
  void push(Scratch& scratch, std::int32_t left, std::int32_t right) const;

  std::vector<Merge> slots_;   // open addressing, linear probing, at most half full
};

}   // namespace duet::text
