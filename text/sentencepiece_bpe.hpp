// sentencepiece_bpe.hpp: SentencePiece's BPE with byte fallback, of one stretch of text.
// Source: Kudo and Richardson, "SentencePiece", 2018: again and again the adjacent pair whose
// joined text is the token with the highest score is merged, of equal ones the leftmost.
#pragma once

#include "text/vocabulary.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

/// Immutable after creation; any thread. It keeps no reference to the vocabulary.
class SentencePieceBpe {
 public:
  /// Working memory, kept by the caller.
  struct Scratch {
    struct Symbol {
      std::uint32_t begin;
      std::uint32_t size;            // bytes of `escaped`; 0: merged away
      std::int32_t previous, next;   // -1: none
    };
    struct Candidate {
      float score;
      std::uint32_t left;
      std::uint32_t right;
      std::uint32_t size;   // of both; another size means that the candidate is stale
    };
    std::string escaped;
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  explicit SentencePieceBpe(const TokenizerData& data) : scores_(data.scores) {}

  /// Appends the tokens of `text` (UTF-8), of which blanks become U+2581. `blank_first`: put one
  /// before the text. Time n log n.
  void encode(std::string_view text, bool blank_first, const Vocabulary& vocabulary,
              Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  void push(const Vocabulary& vocabulary, Scratch& scratch, std::int32_t left,
            std::int32_t right) const;
  void merge(const Vocabulary& vocabulary, Scratch& scratch) const;

  std::vector<float> scores_;
};

}   // namespace duet::text
