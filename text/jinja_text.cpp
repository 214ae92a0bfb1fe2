// jinja_text.cpp: Python's text operations on texts that keep their origin.
#include "text/jinja_text.hpp"

#include "text/limits.hpp"
#include "text/utf8.hpp"

#include <string.h>   // memmem, which is GNU's

#include <algorithm>

namespace duet::text {
namespace {

bool is_lower(char c) noexcept {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}
char lowered(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
char raised(char c) noexcept {
  return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
}

bool add_part(JinjaList& parts, const TemplatedText& text, std::size_t begin, std::size_t end,
              JinjaBudget& budget) {
  if (parts.size() >= limits::template_list_max) static_cast<void>(budget.spend(~0ULL));
  if (!budget.spend_bytes(end - begin + 64)) return false;   // a part is an object of its own
  parts.emplace_back(text.slice(begin, end));
  return true;
}

JinjaList split_blanks(const TemplatedText& text, std::int64_t splits_max, bool from_right,
                       JinjaBudget& budget) {
  JinjaList parts;
  const std::string_view all = text.text();
  std::size_t begin = 0;
  std::size_t end = all.size();
  while (true) {
    const auto rest = all.substr(begin, end - begin);
    const auto [left, right] = strip_offsets(rest, !from_right, from_right);
    if (left == right) break;
    end = begin + right;
    begin += left;
    if (splits_max >= 0 && parts.size() == static_cast<std::size_t>(splits_max)) {
      // What remains is one part, blanks within and at its far end included.
      add_part(parts, text, begin, end, budget);
      break;
    }
    std::size_t cut = from_right ? end : begin;
    while (cut < end && !from_right) {
      const std::size_t size = std::max<std::size_t>(utf8_character_size(all.substr(cut)), 1);
      if (is_python_blank(utf8_decode(all.substr(cut, size)))) break;
      cut += size;
    }
    while (cut > begin && from_right) {
      std::size_t start = cut - 1;
      while (start > begin && (static_cast<unsigned char>(all[start]) & 0xC0U) == 0x80U) --start;
      if (is_python_blank(utf8_decode(all.substr(start, cut - start)))) break;
      cut = start;
    }
    const bool added = from_right ? add_part(parts, text, cut, end, budget)
                                  : add_part(parts, text, begin, cut, budget);
    if (!added) break;
    (from_right ? end : begin) = cut;
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

}   // namespace

TemplatedText jinja_text(const JinjaValue& value, JinjaBudget& budget) {
  TemplatedText out;
  jinja_print(value, budget, out);
  return out;
}

std::vector<std::size_t> character_offsets(std::string_view text) {
  std::vector<std::size_t> offsets;
  offsets.reserve(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    offsets.push_back(at);
    at += std::max<std::size_t>(utf8_character_size(text.substr(at)), 1);
  }
  offsets.push_back(text.size());
  return offsets;
}

std::size_t character_count(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from) noexcept {
  if (from > text.size()) return text.npos;
  if (wanted.empty()) return from;
  // glibc's two-way search; the standard library's takes the product of both lengths at worst.
  const auto* found = static_cast<const char*>(
      ::memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size()));
  return found == nullptr ? text.npos : static_cast<std::size_t>(found - text.data());
}

TemplatedText with_case(const TemplatedText& text, LetterCase letter_case) {
  TemplatedText out = text;
  bool in_word = false;
  for (char& c : out.mutable_text()) {
    const bool letter = is_lower(c) || is_upper(c) || (static_cast<unsigned char>(c) & 0x80U) != 0;
    switch (letter_case) {
      case LetterCase::lower:
        c = lowered(c);
        break;
      case LetterCase::upper:
        c = raised(c);
        break;
      case LetterCase::title:
      case LetterCase::capitalized:
        c = in_word ? lowered(c) : raised(c);
        break;
    }
    in_word = letter_case == LetterCase::capitalized || letter;
  }
  return out;
}

TemplatedText strip(const TemplatedText& text, const TemplatedText* set, bool left, bool right) {
  const std::string_view all = text.text();
  if (set == nullptr) {
    const auto [begin, end] = strip_offsets(all, left, right);
    return text.slice(begin, end);
  }
  const std::string_view unwanted = set->text();
  std::size_t begin = 0;
  std::size_t end = all.size();
  while (left && begin < end) {
    const std::size_t size = std::max<std::size_t>(utf8_character_size(all.substr(begin)), 1);
    if (unwanted.find(all.substr(begin, size)) == unwanted.npos) break;
    begin += size;
  }
  while (right && begin < end) {
    std::size_t start = end - 1;
    while (start > begin && (static_cast<unsigned char>(all[start]) & 0xC0U) == 0x80U) --start;
    if (unwanted.find(all.substr(start, end - start)) == unwanted.npos) break;
    end = start;
  }
  return text.slice(begin, end);
}

JinjaList split(const TemplatedText& text, const TemplatedText* separator, std::int64_t splits_max,
                bool from_right, JinjaBudget& budget) {
  if (separator == nullptr) return split_blanks(text, splits_max, from_right, budget);
  const std::string_view all = text.text();
  const std::string_view wanted = separator->text();
  JinjaList parts;
  std::size_t begin = 0;
  std::size_t end = all.size();
  // The search from the right may compare the whole separator at each place.
  if (from_right && !budget.spend((1 + all.size() / 16) * (1 + wanted.size() / 64))) return parts;
  while (splits_max < 0 || parts.size() < static_cast<std::size_t>(splits_max)) {
    const std::size_t found =
        from_right ? all.substr(begin, end - begin).rfind(wanted) : find_text(all, wanted, begin);
    if (found == all.npos) break;
    const bool added = from_right ? add_part(parts, text, found + wanted.size(), end, budget)
                                  : add_part(parts, text, begin, found, budget);
    if (!added) return parts;
    if (from_right) {
      end = found;
    } else {
      begin = found + wanted.size();
    }
  }
  add_part(parts, text, begin, end, budget);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

JinjaList split_lines(const TemplatedText& text, bool keep_ends, JinjaBudget& budget) {
  JinjaList lines;
  const std::string_view all = text.text();
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    std::size_t mark = 0;
    while (end < all.size() && mark == 0) {
      const std::size_t size = std::max<std::size_t>(utf8_character_size(all.substr(end)), 1);
      const char32_t code = utf8_decode(all.substr(end, size));
      const bool breaks = (code >= 10 && code <= 13) || (code >= 0x1C && code <= 0x1E) ||
                          code == 0x85 || code == 0x2028 || code == 0x2029;
      if (breaks) {
        mark = all.substr(end).starts_with("\r\n") ? 2 : size;
      } else {
        end += size;
      }
    }
    if (!add_part(lines, text, begin, end + (keep_ends ? mark : 0), budget)) break;
    begin = end + mark;
  }
  return lines;
}

TemplatedText replace(const TemplatedText& text, const TemplatedText& from, const TemplatedText& to,
                      std::int64_t count_max, JinjaBudget& budget) {
  TemplatedText out;
  const std::string_view all = text.text();
  const std::string_view wanted = from.text();
  std::size_t done = 0;
  std::size_t at = 0;
  for (std::int64_t count = 0; count_max < 0 || count < count_max; ++count) {
    at = find_text(all, wanted, at);
    if (at == all.npos || !budget.spend_bytes(at - done + to.size())) break;
    out.append(text, done, at);
    out.append(to);
    done = at + wanted.size();
    at = done;
    if (!wanted.empty()) continue;
    // An empty text is found before each character and at the end.
    if (done == all.size()) break;
    at += std::max<std::size_t>(utf8_character_size(all.substr(at)), 1);
  }
  if (budget.spend_bytes(all.size() - done)) out.append(text, done, all.size());
  return out;
}

}   // namespace duet::text
