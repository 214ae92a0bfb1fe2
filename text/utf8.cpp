// utf8.cpp: UTF-8 one character at a time, and its incremental repair.
#include "text/utf8.hpp"

#include "runtime/assert.hpp"

namespace duet::text {
namespace {

struct Lead {
  std::uint8_t continuation;   // bytes that follow; 0 for ASCII
  std::uint8_t low, high;      // range of the first of them
  bool valid;
};

Lead classify(std::uint8_t byte) noexcept {
  if (byte < 0x80) return {0, 0, 0, true};
  if (byte < 0xC2) return {0, 0, 0, false};
  if (byte < 0xE0) return {1, 0x80, 0xBF, true};
  if (byte == 0xE0) return {2, 0xA0, 0xBF, true};   // no overlong forms
  if (byte == 0xED) return {2, 0x80, 0x9F, true};   // no surrogates
  if (byte < 0xF0) return {2, 0x80, 0xBF, true};
  if (byte == 0xF0) return {3, 0x90, 0xBF, true};
  if (byte < 0xF4) return {3, 0x80, 0xBF, true};
  if (byte == 0xF4) return {3, 0x80, 0x8F, true};   // nothing above U+10FFFF
  return {0, 0, 0, false};
}

std::uint8_t byte_at(std::string_view text, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(text[at]);
}

}   // namespace

std::size_t utf8_character_size(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const Lead lead = classify(byte_at(text, 0));
  if (!lead.valid) return 0;
  if (lead.continuation == 0) return 1;
  const std::size_t size = std::size_t{lead.continuation} + 1;
  if (text.size() < size) return 0;
  if (byte_at(text, 1) < lead.low || byte_at(text, 1) > lead.high) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80U) return 0;
  }
  return size;
}

std::size_t utf8_valid_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    if (byte_at(text, at) < 0x80) {
      ++at;
      continue;
    }
    const std::size_t size = utf8_character_size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return at;
}

char32_t utf8_decode(std::string_view character) noexcept {
  DUET_DEBUG_ASSERT(utf8_character_size(character) == character.size(), character.size());
  const char32_t first = byte_at(character, 0);
  if (character.size() == 1) return first;
  char32_t code = first & (0x3FU >> (character.size() - 1));
  for (std::size_t i = 1; i < character.size(); ++i) {
    code = code << 6U | (byte_at(character, i) & 0x3FU);
  }
  return code;
}

void utf8_append(std::string& out, char32_t code_point) {
  DUET_DEBUG_ASSERT(code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF));
  const auto byte = [&out](char32_t value) { out.push_back(static_cast<char>(value)); };
  if (code_point < 0x80) {
    byte(code_point);
  } else if (code_point < 0x800) {
    byte(0xC0U | code_point >> 6U);
    byte(0x80U | (code_point & 0x3FU));
  } else if (code_point < 0x10000) {
    byte(0xE0U | code_point >> 12U);
    byte(0x80U | (code_point >> 6U & 0x3FU));
    byte(0x80U | (code_point & 0x3FU));
  } else {
    byte(0xF0U | code_point >> 18U);
    byte(0x80U | (code_point >> 12U & 0x3FU));
    byte(0x80U | (code_point >> 6U & 0x3FU));
    byte(0x80U | (code_point & 0x3FU));
  }
}

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  std::size_t at = 0;
  while (at < bytes.size() && held_size_ > 0) push_byte(byte_at(bytes, at++), out);
  // Between characters whole valid stretches are copied at once.
  while (at < bytes.size()) {
    const std::size_t valid = utf8_valid_prefix(bytes.substr(at));
    out.append(bytes.substr(at, valid));
    at += valid;
    if (at == bytes.size()) return;
    push_byte(byte_at(bytes, at++), out);
    while (at < bytes.size() && held_size_ > 0) push_byte(byte_at(bytes, at++), out);
  }
}

void Utf8Stream::push_byte(std::uint8_t byte, std::string& out) {
  if (held_size_ == 0) return begin(byte, out);
  DUET_ASSERT(missing_ > 0 && held_size_ < held_.size(), missing_, held_size_);
  if (byte < next_low_ || byte > next_high_) {
    // What is held is a maximal subpart; the byte itself may begin a character.
    flush(out);
    return begin(byte, out);
  }
  held_[held_size_++] = static_cast<char>(byte);
  next_low_ = 0x80;
  next_high_ = 0xBF;
  if (--missing_ > 0) return;
  out.append(held_.data(), held_size_);
  held_size_ = 0;
}

void Utf8Stream::begin(std::uint8_t byte, std::string& out) {
  const Lead lead = classify(byte);
  if (!lead.valid) {
    out.append(replacement_character);
  } else if (lead.continuation == 0) {
    out.push_back(static_cast<char>(byte));
  } else {
    held_[0] = static_cast<char>(byte);
    held_size_ = 1;
    missing_ = lead.continuation;
    next_low_ = lead.low;
    next_high_ = lead.high;
  }
}

void Utf8Stream::flush(std::string& out) {
  if (held_size_ > 0) out.append(replacement_character);
  held_size_ = 0;
  missing_ = 0;
}

}   // namespace duet::text
