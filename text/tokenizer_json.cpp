// tokenizer_json.cpp: reads the tokenizer document strictly.
#include "text/tokenizer_json.hpp"

#include "text/limits.hpp"
#include "text/utf8.hpp"

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <cmath>

namespace duet::text {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 16> known_keys = {
    "format",           "model",         "pre",        "tokens",    "token_types", "scores",
    "merges",           "bos_id",        "eos_id",     "add_bos",   "add_eos",     "eot_id",
    "add_space_prefix", "chat_template", "unknown_id", "padding_id"};

/// Reads one key after the other and keeps the first error; later calls then do nothing.
class Reader {
 public:
  explicit Reader(const json::object& object) : object_(object) {}

  void fail(std::string_view key, std::string_view what) {
    if (error_) return;
    std::string message = "tokenizer.json: ";
    if (!key.empty()) message.append("key '").append(key).append("': ");
    message.append(what).append("; build the package again");
    error_ = Error{errc::tokenizer_invalid, std::move(message)};
  }
  [[nodiscard]] bool failed() const { return error_.has_value(); }
  [[nodiscard]] Error take_error() { return std::move(*error_); }

  void check_keys() {
    for (const auto& member : object_) {
      bool known = false;
      for (const auto key : known_keys) known = known || key == std::string_view{member.key()};
      // The key itself may be of any length, so only its beginning is shown.
      if (!known) fail(std::string_view{member.key()}.substr(0, 64), "is not a key of this format");
    }
  }

  void text(std::string_view key, std::string& out) {
    const auto* value = find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return fail(key, "must be a string");
    out.assign(value->get_string().data(), value->get_string().size());
  }

  void flag(std::string_view key, bool& out) {
    const auto* value = find(key);
    if (value == nullptr) return;
    if (!value->is_bool()) return fail(key, "must be true or false");
    out = value->get_bool();
  }

  void id(std::string_view key, std::size_t vocabulary, std::optional<TokenId>& out) {
    const auto* value = find(key);
    if (value == nullptr || value->is_null()) return;
    const auto number = integer(*value);
    if (!number) return fail(key, "must be a token id or null");
    if (*number < 0 || static_cast<std::uint64_t>(*number) >= vocabulary) {
      return fail(key, "is " + std::to_string(*number) + ", but the vocabulary has " +
                           std::to_string(vocabulary) + " tokens");
    }
    out = static_cast<TokenId>(*number);
  }

  void chat_template(std::optional<std::string>& out) {
    const auto* value = find("chat_template");
    if (value == nullptr || value->is_null()) return;
    if (!value->is_string()) return fail("chat_template", "must be a string or null");
    const auto& text = value->get_string();
    if (text.size() > limits::template_bytes_max) {
      return fail("chat_template", "has " + std::to_string(text.size()) + " bytes, more than " +
                                       std::to_string(limits::template_bytes_max));
    }
    out.emplace(text.data(), text.size());
  }

  /// Null means an empty array where `may_be_null`.
  [[nodiscard]] const json::array* array(std::string_view key, bool may_be_null) {
    static const json::array empty;
    const auto* value = find(key);
    if (value == nullptr) return nullptr;
    if (may_be_null && value->is_null()) return &empty;
    if (!value->is_array()) {
      fail(key, may_be_null ? "must be an array or null" : "must be an array");
      return nullptr;
    }
    return &value->get_array();
  }

  void strings(std::string_view key, bool may_be_null, std::size_t count_max, std::size_t bytes_max,
               std::vector<std::string>& out) {
    const auto* values = array(key, may_be_null);
    if (values == nullptr) return;
    if (values->size() > count_max) {
      return fail(key, "has " + std::to_string(values->size()) + " entries, more than " +
                           std::to_string(count_max));
    }
    out.reserve(values->size());
    for (const auto& value : *values) {
      const std::string entry = "entry " + std::to_string(out.size());
      if (!value.is_string()) return fail(key, entry + " is not a string");
      const auto& text = value.get_string();
      if (text.size() > bytes_max) {
        return fail(key, entry + " has " + std::to_string(text.size()) + " bytes, more than " +
                             std::to_string(bytes_max));
      }
      out.emplace_back(text.data(), text.size());
    }
  }

  [[nodiscard]] static std::optional<std::int64_t> integer(const json::value& value) {
    if (value.is_int64()) return value.get_int64();
    return std::nullopt;   // an unsigned one that does not fit is out of every range here
  }

 private:
  const json::value* find(std::string_view key) {
    if (error_) return nullptr;
    const auto* value = object_.if_contains(json::string_view{key.data(), key.size()});
    if (value == nullptr) fail(key, "is missing");
    return value;
  }

  const json::object& object_;
  std::optional<Error> error_;
};

void read_model(Reader& reader, TokenizerData& data) {
  std::string format;
  std::string model;
  reader.text("format", format);
  if (!reader.failed() && format != "duet-tokenizer/v1") {
    reader.fail("format", "must be \"duet-tokenizer/v1\"");
  }
  reader.text("model", model);
  if (model == "llama") {
    data.model = TokenizerModel::sentencepiece_bpe;
  } else if (model != "gpt2") {
    reader.fail("model", "must be \"gpt2\" or \"llama\"");
  }
  reader.text("pre", data.pre);
}

void read_types(Reader& reader, TokenizerData& data) {
  const auto* values = reader.array("token_types", false);
  if (values == nullptr) return;
  if (values->size() != data.tokens.size()) {
    return reader.fail("token_types", "has " + std::to_string(values->size()) + " entries for " +
                                          std::to_string(data.tokens.size()) + " tokens");
  }
  data.types.reserve(values->size());
  for (const auto& value : *values) {
    const auto number = Reader::integer(value);
    if (!number || *number < 1 || *number > 6) {
      return reader.fail("token_types", "entry " + std::to_string(data.types.size()) +
                                            " is not an integer of 1 to 6");
    }
    data.types.push_back(static_cast<TokenType>(*number));
  }
}

void read_scores(Reader& reader, TokenizerData& data) {
  const bool needed = data.model == TokenizerModel::sentencepiece_bpe;
  const auto* values = reader.array("scores", !needed);
  if (values == nullptr) return;
  const std::size_t expected = needed ? data.tokens.size() : 0;
  if (values->size() != expected && !(values->size() == data.tokens.size())) {
    return reader.fail("scores", "has " + std::to_string(values->size()) + " entries, not " +
                                     std::to_string(expected));
  }
  if (!needed) return;
  data.scores.reserve(values->size());
  for (const auto& value : *values) {
    boost::system::error_code failed;
    const auto number = static_cast<float>(value.to_number<double>(failed));
    if (failed || !std::isfinite(number)) {
      return reader.fail("scores",
                         "entry " + std::to_string(data.scores.size()) + " is not a finite number");
    }
    data.scores.push_back(number);
  }
}

void read_members(Reader& reader, TokenizerData& data) {
  reader.check_keys();
  read_model(reader, data);
  reader.strings("tokens", false, limits::vocabulary_max, limits::token_bytes_max, data.tokens);
  if (!reader.failed() && data.tokens.empty()) reader.fail("tokens", "is empty");
  read_types(reader, data);
  read_scores(reader, data);
  const bool merges_needed = data.model == TokenizerModel::byte_bpe;
  reader.strings("merges", !merges_needed, limits::merges_max, 2 * limits::token_bytes_max + 1,
                 data.merges);
  if (!reader.failed() && !merges_needed && !data.merges.empty()) {
    reader.fail("merges", "must be empty for model \"llama\"");
  }
  reader.id("bos_id", data.tokens.size(), data.bos);
  reader.id("eos_id", data.tokens.size(), data.eos);
  reader.id("unknown_id", data.tokens.size(), data.unknown);
  reader.id("padding_id", data.tokens.size(), data.padding);
  reader.id("eot_id", data.tokens.size(), data.eot);
  reader.flag("add_bos", data.add_bos);
  reader.flag("add_eos", data.add_eos);
  reader.flag("add_space_prefix", data.add_space_prefix);
  reader.chat_template(data.chat_template);
  if (!reader.failed() && data.add_bos && !data.bos) {
    reader.fail("add_bos", "is true, but 'bos_id' is null");
  }
  if (!reader.failed() && data.add_eos && !data.eos) {
    reader.fail("add_eos", "is true, but 'eos_id' is null");
  }
}

Error whole(std::string what) {
  return {errc::tokenizer_invalid,
          "tokenizer.json: " + std::move(what) + "; build the package again"};
}

}   // namespace

Result<TokenizerData> parse_tokenizer_json(std::string_view document) {
  if (document.size() > limits::document_bytes_max) {
    return whole("has " + std::to_string(document.size()) + " bytes, more than " +
                 std::to_string(limits::document_bytes_max));
  }
  if (const auto valid = utf8_valid_prefix(document); valid != document.size()) {
    return whole("is not UTF-8 at byte " + std::to_string(valid));
  }
  json::monotonic_resource memory;
  json::parse_options options;
  options.max_depth = limits::document_depth_max;
  boost::system::error_code failed;
  const json::value root =
      json::parse(json::string_view{document.data(), document.size()}, failed, &memory, options);
  if (failed) return whole("is not JSON (" + failed.message() + ")");
  if (!root.is_object()) return whole("is not a JSON object");
  Reader reader{root.get_object()};
  TokenizerData data;
  read_members(reader, data);
  if (reader.failed()) return reader.take_error();
  return data;
}

}   // namespace duet::text
