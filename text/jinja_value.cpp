// jinja_value.cpp: the values that a chat template works with.
// A little long, because each operation here asks for all types of values.
#include "text/jinja_value.hpp"

#include "text/limits.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace duet::text {
namespace {

void append_number(std::string& out, double value, bool json) {
  if (std::isnan(value)) {
    out += json ? "NaN" : "nan";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-" : "";
    out += json ? "Infinity" : "inf";
  } else {
    // Python writes the shortest digits that read back the same, plain from 1e-4 up to 1e16.
    const double size = std::abs(value);
    const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
    std::array<char, 64> digits;
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), value,
                      plain ? std::chars_format::fixed : std::chars_format::scientific);
    const std::string_view text{digits.data(), static_cast<std::size_t>(end.ptr - digits.data())};
    out += text;
    if (plain && text.find('.') == text.npos) out += ".0";
  }
}

void append_hex(std::string& out, char32_t code, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out.push_back("0123456789abcdef"[code >> static_cast<unsigned>(shift) & 15U]);
  }
}

/// Python's repr of a text; characters that are not printable in Latin-1 are escaped, those above
/// are taken as printable.
void append_repr(std::string& out, std::string_view text) {
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = double_quotes ? '"' : '\'';
  out.push_back(quote);
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(utf8_character_size(text), 1);
    const char32_t code = utf8_decode(text.substr(0, size));
    if (code == '\\' || code == static_cast<unsigned char>(quote)) {
      out.append("\\").append(text.substr(0, size));
    } else if (code == '\n' || code == '\t' || code == '\r') {
      out.append(code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r");
    } else if (code < 32 || (code >= 127 && code <= 160) || code == 173) {
      out += "\\x";
      append_hex(out, code, 2);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  out.push_back(quote);
}

void append_json_text(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (byte < 32) {
          out += "\\u";
          append_hex(out, byte, 4);
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
}

/// Appends Python's repr of any value; stops when the budget is used up.
void append_any(const JinjaValue& value, JinjaBudget& budget, std::string& out) {
  if (!budget.spend(1)) return;
  if (const auto* text = value.text()) {
    if (budget.spend_bytes(text->size())) append_repr(out, text->text());
  } else if (const auto* list = value.list()) {
    out.push_back(value.is_tuple() ? '(' : '[');
    for (std::size_t i = 0; i < list->size() && !budget.used_up(); ++i) {
      if (i > 0) out += ", ";
      append_any((*list)[i], budget, out);
    }
    if (value.is_tuple() && list->size() == 1) out.push_back(',');
    out.push_back(value.is_tuple() ? ')' : ']');
  } else if (const auto* dict = value.dict()) {
    out.push_back('{');
    for (std::size_t i = 0; i < dict->entries.size() && !budget.used_up(); ++i) {
      if (i > 0) out += ", ";
      append_repr(out, dict->entries[i].first.text());
      out += ": ";
      append_any(dict->entries[i].second, budget, out);
    }
    out.push_back('}');
  } else if (const auto* flag = value.get<bool>()) {
    out += *flag ? "True" : "False";
  } else if (const auto* integer = value.get<std::int64_t>()) {
    out += std::to_string(*integer);
  } else if (const auto* number = value.get<double>()) {
    append_number(out, *number, false);
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else {
    out.append("<").append(value.type_name()).append(">");
  }
}

class JsonWriter {
 public:
  JsonWriter(std::optional<std::int64_t> indent, JinjaBudget& budget, std::string& out)
      : indent_(indent), budget_(budget), out_(out) {}

  [[nodiscard]] bool write(const JinjaValue& value, std::size_t level) {
    if (!budget_.spend(1)) return false;
    if (const auto* text = value.text()) {
      if (!budget_.spend_bytes(text->size())) return false;
      append_json_text(out_, text->text());
      return true;
    }
    if (const auto* list = value.list()) return write_list(*list, level);
    if (const auto* dict = value.dict()) return write_dict(*dict, level);
    if (const auto* flag = value.get<bool>()) {
      out_ += *flag ? "true" : "false";
    } else if (const auto* integer = value.get<std::int64_t>()) {
      out_ += std::to_string(*integer);
    } else if (const auto* number = value.get<double>()) {
      append_number(out_, *number, true);
    } else if (value.is_none()) {
      out_ += "null";
    } else {
      return false;
    }
    return true;
  }

 private:
  bool write_list(const JinjaList& list, std::size_t level) {
    out_.push_back('[');
    for (std::size_t i = 0; i < list.size(); ++i) {
      separate(i, level + 1);
      if (!write(list[i], level + 1)) return false;
    }
    close(list.empty(), level);
    out_.push_back(']');
    return true;
  }

  bool write_dict(const JinjaDict& dict, std::size_t level) {
    out_.push_back('{');
    for (std::size_t i = 0; i < dict.entries.size(); ++i) {
      separate(i, level + 1);
      append_json_text(out_, dict.entries[i].first.text());
      out_ += ": ";
      if (!write(dict.entries[i].second, level + 1)) return false;
    }
    close(dict.entries.empty(), level);
    out_.push_back('}');
    return true;
  }

  void separate(std::size_t index, std::size_t level) {
    if (index > 0) out_ += indent_ ? "," : ", ";
    if (indent_) break_line(level);
  }
  void close(bool empty, std::size_t level) {
    if (indent_ && !empty) break_line(level);
  }
  void break_line(std::size_t level) {
    const std::size_t blanks = static_cast<std::size_t>(*indent_) * level;
    if (!budget_.spend_bytes(blanks)) return;
    out_.push_back('\n');
    out_.append(blanks, ' ');
  }

  std::optional<std::int64_t> indent_;
  JinjaBudget& budget_;
  std::string& out_;
};

std::optional<JinjaValue> from_json(const boost::json::value& value, std::uint32_t depth) {
  if (depth > limits::template_depth_max) return std::nullopt;
  switch (value.kind()) {
    case boost::json::kind::null:
      return JinjaValue{JinjaValue::None{}};
    case boost::json::kind::bool_:
      return JinjaValue{value.get_bool()};
    case boost::json::kind::int64:
      return JinjaValue{value.get_int64()};
    case boost::json::kind::uint64:
      return JinjaValue{static_cast<double>(value.get_uint64())};
    case boost::json::kind::double_:
      return JinjaValue{value.get_double()};
    case boost::json::kind::string: {
      const std::string_view text{value.get_string().data(), value.get_string().size()};
      if (utf8_valid_prefix(text) != text.size()) return std::nullopt;
      return JinjaValue{TemplatedText{text, Origin::content}};
    }
    case boost::json::kind::array: {
      JinjaList list;
      list.reserve(value.get_array().size());
      for (const auto& item : value.get_array()) {
        auto made = from_json(item, depth + 1);
        if (!made) return std::nullopt;
        list.push_back(std::move(*made));
      }
      return JinjaValue{std::move(list)};
    }
    case boost::json::kind::object: {
      JinjaDict dict;
      dict.entries.reserve(value.get_object().size());
      for (const auto& member : value.get_object()) {
        auto made = from_json(member.value(), depth + 1);
        if (!made) return std::nullopt;
        const std::string_view key{member.key().data(), member.key().size()};
        if (utf8_valid_prefix(key) != key.size()) return std::nullopt;
        dict.entries.emplace_back(TemplatedText{key, Origin::content}, std::move(*made));
      }
      return JinjaValue{std::move(dict)};
    }
  }
  return std::nullopt;
}

template <typename T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}   // namespace

bool JinjaBudget::spend(std::uint64_t units) noexcept {
  used_up_ = used_up_ || units > left_;
  if (used_up_) return false;
  left_ -= units;
  return true;
}

const JinjaValue* JinjaDict::find(std::string_view key) const noexcept {
  for (const auto& entry : entries) {
    if (entry.first.text() == key) return &entry.second;
  }
  return nullptr;
}

void JinjaDict::set(TemplatedText key, JinjaValue value) {
  for (auto& entry : entries) {
    if (entry.first.text() == key.text()) {
      entry.second = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::move(key), std::move(value));
}

JinjaValue::JinjaValue(JinjaList list) {
  for (const auto& item : list) depth_ = std::max(depth_, item.depth());
  ++depth_;
  data_ = std::make_shared<const JinjaList>(std::move(list));
}

JinjaValue::JinjaValue(JinjaDict dict) {
  for (const auto& entry : dict.entries) depth_ = std::max(depth_, entry.second.depth());
  ++depth_;
  data_ = std::make_shared<const JinjaDict>(std::move(dict));
}

JinjaValue JinjaValue::undefined(std::string_view name) {
  JinjaValue value;
  value.data_ = Undefined{std::string{name}};
  return value;
}

JinjaValue JinjaValue::tuple(JinjaList items) {
  JinjaValue value{std::move(items)};
  value.tuple_ = true;
  return value;
}

const TemplatedText* JinjaValue::text() const noexcept {
  const auto* text = get<Text>();
  return text == nullptr ? nullptr : text->get();
}

const JinjaList* JinjaValue::list() const noexcept {
  const auto* list = get<List>();
  return list == nullptr ? nullptr : list->get();
}

const JinjaDict* JinjaValue::dict() const noexcept {
  const auto* dict = get<Dict>();
  return dict == nullptr ? nullptr : dict->get();
}

std::optional<std::int64_t> JinjaValue::integer() const noexcept {
  if (const auto* value = get<std::int64_t>()) return *value;
  if (const auto* flag = get<bool>()) return *flag ? 1 : 0;
  return std::nullopt;
}

std::optional<double> JinjaValue::number() const noexcept {
  if (const auto* value = get<double>()) return *value;
  if (const auto whole = integer()) return static_cast<double>(*whole);
  return std::nullopt;
}

bool JinjaValue::storable() const noexcept {
  return get<NamespaceRef>() == nullptr && get<LoopRef>() == nullptr;
}

std::string_view JinjaValue::type_name() const noexcept {
  constexpr std::array<std::string_view, 12> names = {
      "Undefined", "NoneType", "bool",      "int",         "float",    "str",
      "list",      "dict",     "Namespace", "LoopContext", "function", "Macro"};
  static_assert(names.size() == std::variant_size_v<Data>);
  return tuple_ ? "tuple" : names[data_.index()];
}

bool jinja_true(const JinjaValue& value) noexcept {
  if (const auto number = value.number()) return *number != 0;
  if (const auto* text = value.text()) return !text->empty();
  if (const auto* list = value.list()) return !list->empty();
  if (const auto* dict = value.dict()) return !dict->entries.empty();
  return !value.is_undefined() && !value.is_none();
}

bool jinja_equal(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget) {
  if (!budget.spend(1)) return false;
  if (a.integer() && b.integer()) return *a.integer() == *b.integer();
  if (a.number() && b.number()) return *a.number() == *b.number();
  if (a.text() != nullptr && b.text() != nullptr) {
    return a.text() == b.text() ||
           (budget.spend_bytes(a.text()->size()) && a.text()->text() == b.text()->text());
  }
  if (a.list() != nullptr && b.list() != nullptr) {
    return a.is_tuple() == b.is_tuple() &&
           std::equal(
               a.list()->begin(), a.list()->end(), b.list()->begin(), b.list()->end(),
               [&budget](const auto& x, const auto& y) { return jinja_equal(x, y, budget); });
  }
  if (a.dict() != nullptr && b.dict() != nullptr) {
    if (a.dict()->entries.size() != b.dict()->entries.size()) return false;
    for (const auto& [key, value] : a.dict()->entries) {
      if (!budget.spend(b.dict()->entries.size())) return false;
      const auto* other = b.dict()->find(key.text());
      if (other == nullptr || !jinja_equal(value, *other, budget)) return false;
    }
    return true;
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

std::optional<int> jinja_compare(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget) {
  if (!budget.spend(1)) return std::nullopt;
  if (a.integer() && b.integer()) return order(*a.integer(), *b.integer());
  if (a.number() && b.number()) return order(*a.number(), *b.number());
  if (a.text() != nullptr && b.text() != nullptr) {
    // Code point order, as Python's, equals byte order in UTF-8.
    if (!budget.spend_bytes(a.text()->size())) return std::nullopt;
    return order(a.text()->text(), b.text()->text());
  }
  if (a.list() != nullptr && b.list() != nullptr) {
    const std::size_t common = std::min(a.list()->size(), b.list()->size());
    for (std::size_t i = 0; i < common; ++i) {
      if (jinja_equal((*a.list())[i], (*b.list())[i], budget)) continue;
      return jinja_compare((*a.list())[i], (*b.list())[i], budget);
    }
    return order(a.list()->size(), b.list()->size());
  }
  return std::nullopt;
}

void jinja_print(const JinjaValue& value, JinjaBudget& budget, TemplatedText& out) {
  if (const auto* text = value.text()) {
    if (budget.spend_bytes(text->size())) out.append(*text);
    return;
  }
  if (value.is_undefined()) return;
  std::string plain;
  append_any(value, budget, plain);
  if (budget.spend_bytes(plain.size())) out.append(plain, Origin::content);
}

bool jinja_to_json(const JinjaValue& value, std::optional<std::int64_t> indent, JinjaBudget& budget,
                   std::string& out) {
  return JsonWriter{indent, budget, out}.write(value, 0);
}

std::optional<JinjaValue> jinja_from_json(const boost::json::value& value) {
  return from_json(value, 0);
}

bool is_python_blank(char32_t code) noexcept {
  return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::pair<std::size_t, std::size_t> strip_offsets(std::string_view text, bool left,
                                                  bool right) noexcept {
  std::size_t begin = 0;
  std::size_t end = text.size();
  while (left && begin < end) {
    const std::size_t size = utf8_character_size(text.substr(begin));
    if (size == 0 || !is_python_blank(utf8_decode(text.substr(begin, size)))) break;
    begin += size;
  }
  while (right && begin < end) {
    std::size_t start = end - 1;
    while (start > begin && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) --start;
    const auto character = text.substr(start, end - start);
    if (utf8_character_size(character) != character.size()) break;
    if (!is_python_blank(utf8_decode(character))) break;
    end = start;
  }
  return {begin, end};
}

}   // namespace duet::text
