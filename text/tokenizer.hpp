// tokenizer.hpp: text to token ids and back, for the models we serve.
#pragma once

#include "text/error.hpp"
#include "text/templated_text.hpp"
#include "text/tokenizer_json.hpp"
#include "text/vocabulary.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::text {

/// Whether encode() adds the BOS and EOS that the tokenizer asks for.
enum class AddSpecial : bool { no, yes };

/// One model's tokenizer. Immutable after creation and free of hidden state: any thread, any number
/// at once. A copy is cheap and shares the tables.
class Tokenizer {
 public:
  /// Reads the document described in tokenizer_json.hpp. Errors: tokenizer_invalid.
  [[nodiscard]] static Result<Tokenizer> from_json(std::string_view document);
  [[nodiscard]] static Result<Tokenizer> create(TokenizerData data);

  /// Appends the tokens of `text` to `out`. Special tokens are found in markup runs only, whole
  /// within one run. SentencePiece models with add_space_prefix get a blank before each stretch of
  /// text at the start or behind a special token, as in llama.cpp. AddSpecial::yes puts BOS first
  /// (unless the markup begins with it) and EOS last, where the document says so.
  /// On error `out` is as it was. Errors: text_not_utf8, text_too_long, pattern_limit. Time n log
  /// n.
  [[nodiscard]] Result<void> encode(const TemplatedText& text, AddSpecial add,
                                    std::vector<TokenId>& out) const;
  /// The same for text of a client, all content.
  [[nodiscard]] Result<void> encode(std::string_view content, AddSpecial add,
                                    std::vector<TokenId>& out) const;

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept;
  [[nodiscard]] TokenizerModel model() const noexcept;
  [[nodiscard]] std::optional<TokenId> bos() const noexcept;
  [[nodiscard]] std::optional<TokenId> eos() const noexcept;
  [[nodiscard]] std::optional<TokenId> padding() const noexcept;
  /// Tokens that end an answer: eos, eot, and control tokens spelled like a known end marker
  /// (`<|endoftext|>`, `<|im_end|>`, `<|eot_id|>`, `<|end|>`, `<end_of_turn>`, ...). Sorted.
  [[nodiscard]] const std::vector<TokenId>& stop_tokens() const noexcept;
  [[nodiscard]] bool is_stop_token(TokenId id) const noexcept;
  [[nodiscard]] bool adds_bos() const noexcept;
  /// Whether encode() puts a blank before text, which a decoder of whole texts takes away again.
  [[nodiscard]] bool adds_space_prefix() const noexcept;
  /// The Jinja source, for chat_template.hpp.
  [[nodiscard]] const std::optional<std::string>& chat_template() const noexcept;

 private:
  struct State;
  struct Work;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  [[nodiscard]] Result<void> encode_plain(std::string_view text, bool after_special, Work& work,
                                          std::vector<TokenId>& out) const;
  [[nodiscard]] Result<void> encode_runs(std::string_view text,
                                         const std::vector<TemplatedText::Run>& runs,
                                         std::vector<TokenId>& out) const;
  [[nodiscard]] Result<void> encode_all(std::string_view text,
                                        const std::vector<TemplatedText::Run>& runs, AddSpecial add,
                                        std::vector<TokenId>& out) const;

  std::shared_ptr<const State> state_;
};

}   // namespace duet::text
