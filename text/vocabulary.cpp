// vocabulary.cpp: the tokens of a model: text to id for encoding, id to bytes for decoding.
#include "text/vocabulary.hpp"

#include "runtime/assert.hpp"
#include "text/limits.hpp"
#include "text/special_tokens.hpp"
#include "text/utf8.hpp"

#include <bit>
#include <functional>

namespace duet::text {
namespace {

constexpr std::string_view blank_stand_in = "\xE2\x96\x81";   // U+2581

static_assert(limits::document_bytes_max < (1ULL << 32U));   // so offsets fit 32 bits

/// The byte of a stand-in, or nothing for another character.
std::optional<std::uint8_t> byte_of_stand_in(char32_t code) noexcept {
  static const auto table = [] {
    std::array<std::int16_t, 512> bytes{};
    bytes.fill(-1);
    for (unsigned byte = 0; byte < 256; ++byte) {
      bytes[byte_stand_in(static_cast<std::uint8_t>(byte))] = static_cast<std::int16_t>(byte);
    }
    return bytes;
  }();
  if (code >= table.size() || table[code] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(table[code]);
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// The byte of `<0x0A>`.
std::optional<std::uint8_t> byte_of_escape(std::string_view spelling) noexcept {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return {};
  const int high = hex_digit(spelling[3]);
  const int low = hex_digit(spelling[4]);
  if (high < 0 || low < 0) return {};
  return static_cast<std::uint8_t>(high * 16 + low);
}

/// False for bytes that are in no UTF-8 text; vocabularies may lack them.
bool occurs_in_utf8(unsigned byte) noexcept {
  return byte != 0xC0 && byte != 0xC1 && byte < 0xF5;
}

bool may_be_ordinary(TokenType type, std::string_view spelling) noexcept {
  switch (type) {
    case TokenType::normal:
    case TokenType::unused:
      return !spelling.empty();
    case TokenType::user_defined:
      return !spelling.empty() && !looks_like_marker(spelling);
    case TokenType::unknown:
    case TokenType::control:
    case TokenType::byte:
      return false;
  }
  return false;
}

}   // namespace

char32_t byte_stand_in(std::uint8_t byte) noexcept {
  // Printable Latin-1 letters stand for themselves; the n-th of the others is U+0100 + n.
  const auto printable = [](unsigned b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  };
  if (printable(byte)) return byte;
  char32_t rank = 0;
  for (unsigned b = 0; b < byte; ++b) rank += printable(b) ? 0 : 1;
  return 256 + rank;
}

Result<Vocabulary> Vocabulary::create(const TokenizerData& data) {
  DUET_ASSERT(data.tokens.size() == data.types.size(), data.tokens.size(), data.types.size());
  Vocabulary made;
  made.types_ = data.types;
  std::size_t total = 0;
  for (const auto& token : data.tokens) total += token.size();
  made.spellings_.reserve(total);
  made.spelling_ends_.reserve(data.tokens.size());
  made.ordinary_.reserve(data.tokens.size());
  for (std::size_t id = 0; id < data.tokens.size(); ++id) {
    const std::string& token = data.tokens[id];
    made.spellings_ += token;
    made.spelling_ends_.push_back(static_cast<std::uint32_t>(made.spellings_.size()));
    made.spelling_bytes_max_ = std::max(made.spelling_bytes_max_, token.size());
    made.ordinary_.push_back(may_be_ordinary(data.types[id], token));
  }
  made.index_spellings();
  for (std::size_t id = 0; id < data.tokens.size(); ++id) {
    made.add_bytes(data.model, static_cast<TokenId>(id));
  }
  if (auto error = made.map_bytes(data.model, data.unknown)) return std::move(*error);
  return made;
}

void Vocabulary::index_spellings() {
  slots_.assign(std::bit_ceil(types_.size() * 2 + 1), no_token);
  const std::size_t mask = slots_.size() - 1;
  // Ordinary tokens first, so that they hide others of the same spelling.
  for (const bool ordinary : {true, false}) {
    for (TokenId id = 0; id < types_.size(); ++id) {
      if (ordinary_[id] != ordinary) continue;
      const auto text = spelling(id);
      std::size_t at = std::hash<std::string_view>{}(text)&mask;
      while (slots_[at] != no_token && spelling(slots_[at]) != text) at = (at + 1) & mask;
      if (slots_[at] == no_token) slots_[at] = id;
    }
  }
}

std::optional<Error> Vocabulary::map_bytes(TokenizerModel model, std::optional<TokenId> unknown) {
  byte_tokens_.fill(no_token);
  if (model == TokenizerModel::byte_bpe) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::string text;
      utf8_append(text, byte_stand_in(static_cast<std::uint8_t>(byte)));
      byte_tokens_[byte] = find_ordinary(text);
    }
    return {};
  }
  for (TokenId id = 0; id < types_.size(); ++id) {
    if (types_[id] != TokenType::byte) continue;
    const auto byte = byte_of_escape(spelling(id));
    if (!byte) {
      return Error{errc::tokenizer_invalid,
                   "tokenizer.json: key 'tokens': entry " + std::to_string(id) +
                       " is of type byte, but not spelled like <0x0A>; build the package again"};
    }
    if (byte_tokens_[*byte] == no_token) byte_tokens_[*byte] = id;
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (byte_tokens_[byte] != no_token) continue;
    if (!unknown && occurs_in_utf8(byte)) {
      return Error{errc::tokenizer_invalid,
                   "tokenizer.json: key 'tokens': no token for byte " + std::to_string(byte) +
                       " and no 'unknown_id'; build the package again from a complete vocabulary"};
    }
    byte_tokens_[byte] = unknown.value_or(no_token);
  }
  return {};
}

void Vocabulary::add_bytes(TokenizerModel model, TokenId id) {
  std::string_view text = spelling(id);
  const bool plain = !ordinary_[id] && types_[id] != TokenType::byte;
  if (plain) {
    bytes_ += text;
  } else if (model == TokenizerModel::sentencepiece_bpe) {
    if (const auto byte = byte_of_escape(text); byte && types_[id] == TokenType::byte) {
      bytes_.push_back(static_cast<char>(*byte));
    } else {
      for (auto at = text.find(blank_stand_in); at != text.npos; at = text.find(blank_stand_in)) {
        bytes_.append(text.substr(0, at)).push_back(' ');
        text.remove_prefix(at + blank_stand_in.size());
      }
      bytes_ += text;
    }
  } else if (types_[id] == TokenType::user_defined) {
    bytes_ += text;   // added to the vocabulary as plain text, never in stand-ins
  } else {
    while (!text.empty()) {
      const std::size_t size = std::max<std::size_t>(utf8_character_size(text), 1);
      const auto byte = byte_of_stand_in(utf8_decode(text.substr(0, size)));
      if (byte) {
        bytes_.push_back(static_cast<char>(*byte));
      } else {
        bytes_ += text.substr(0, size);   // a letter that stands for no byte means itself
      }
      text.remove_prefix(size);
    }
  }
  byte_ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

TokenType Vocabulary::type(TokenId id) const {
  DUET_ASSERT(id < types_.size(), id, types_.size());
  return types_[id];
}

std::string_view Vocabulary::spelling(TokenId id) const {
  DUET_ASSERT(id < spelling_ends_.size(), id, spelling_ends_.size());
  const std::size_t begin = id == 0 ? 0 : spelling_ends_[id - 1];
  return std::string_view{spellings_}.substr(begin, spelling_ends_[id] - begin);
}

std::string_view Vocabulary::bytes(TokenId id) const {
  DUET_ASSERT(id < byte_ends_.size(), id, byte_ends_.size());
  const std::size_t begin = id == 0 ? 0 : byte_ends_[id - 1];
  return std::string_view{bytes_}.substr(begin, byte_ends_[id] - begin);
}

bool Vocabulary::shown(TokenId id) const {
  const TokenType kind = type(id);
  return kind != TokenType::control && kind != TokenType::unknown && kind != TokenType::unused;
}

TokenId Vocabulary::find_ordinary(std::string_view spelling) const {
  const TokenId id = find(spelling);
  return id != no_token && ordinary_[id] ? id : no_token;
}

TokenId Vocabulary::find(std::string_view text) const {
  if (text.size() > spelling_bytes_max_) return no_token;
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = std::hash<std::string_view>{}(text)&mask;
  while (slots_[at] != no_token && spelling(slots_[at]) != text) at = (at + 1) & mask;
  return slots_[at];
}

}   // namespace duet::text
