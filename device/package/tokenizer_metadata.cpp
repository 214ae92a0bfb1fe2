// tokenizer_metadata.cpp: converts GGUF tokenizer metadata to the tokenizer document.
#include "device/package/tokenizer_metadata.hpp"

#include "device/package/json_text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace duet::device {
namespace {

namespace json = boost::json;

constexpr std::uint64_t vocabulary_default_bos =
    1;   // of SentencePiece vocabularies, as in llama.cpp
constexpr std::uint64_t vocabulary_default_eos = 2;
constexpr std::uint64_t vocabulary_default_unknown = 0;

/// Pre-tokenizers whose models begin with BOS unless the file says otherwise, as in llama.cpp.
constexpr std::array<std::string_view, 4> pre_with_bos = {"llama3", "llama-v3", "llama-bpe",
                                                          "tekken"};

/// Collects the parts of one document; keeps the first error.
class Converter {
 public:
  explicit Converter(const Gguf& gguf) : gguf_(gguf) {}

  Result<std::string> run() {
    read_model();
    read_tokens();
    read_types();
    read_scores();
    read_merges();
    read_ids();
    read_flags();
    read_template();
    if (!error_.message.empty()) return error_;
    out_ += "\n}\n";
    if (out_.size() > tokenizer_limits::document_bytes_max) {
      return failure(gguf_.name(), ": the tokenizer takes ", out_.size(), " bytes, more than ",
                     tokenizer_limits::document_bytes_max);
    }
    return std::move(out_);
  }

 private:
  template <typename... T>
  void fail(const T&... parts) {
    if (error_.message.empty()) error_ = failure(gguf_.name(), ": ", parts...);
  }
  /// The value, or nothing with the error kept.
  template <typename T>
  std::optional<T> take(Result<T> value) {
    if (value.has_value()) return std::move(*value);
    if (error_.message.empty()) error_ = value.error();
    return std::nullopt;
  }
  [[nodiscard]] bool failed() const { return !error_.message.empty(); }
  void put(std::string_view key, const std::string& value) {
    out_ += out_.empty() ? "{\n" : ",\n";
    out_ += json_string(key) + ": " + value;
  }

  void read_model() {
    const auto model = take(gguf_.get_string("tokenizer.ggml.model"));
    const auto pre = take(gguf_.get_string("tokenizer.ggml.pre", "default"));
    if (!model || !pre) return;
    if (*model != "gpt2" && *model != "llama") {
      return fail("tokenizer model ", in_quotes(*model), " is not supported; gpt2 and llama are");
    }
    if (!is_plain_name(*pre))
      return fail("tokenizer.ggml.pre ", in_quotes(*pre), " is not a plain name");
    sentencepiece_ = *model == "llama";
    starts_with_bos_ = sentencepiece_ || std::find(pre_with_bos.begin(), pre_with_bos.end(),
                                                   *pre) != pre_with_bos.end();
    put("format", json_string("duet-tokenizer/v1"));
    put("model", json_string(*model));
    put("pre", json_string(*pre));
  }

  /// Writes an array of texts, each checked.
  void put_texts(std::string_view key, std::string_view name, std::uint64_t count_max,
                 std::uint64_t bytes_max, bool pairs) {
    const auto texts = take(gguf_.get_strings(key));
    if (!texts) return;
    if (texts->size() > count_max) {
      return fail("key ", in_quotes(key), " has ", texts->size(), " elements, more than ",
                  count_max);
    }
    for (std::size_t i = 0; i < texts->size(); ++i) {
      const std::string_view text = (*texts)[i];
      if (text.size() > bytes_max) {
        return fail("key ", in_quotes(key), ": element ", i, " is longer than ", bytes_max,
                    " bytes");
      }
      if (!is_utf8(text)) {
        return fail("key ", in_quotes(key), ": element ", i, " ", in_quotes(text), " is not UTF-8");
      }
      // A merge is "left right"; the left part may itself begin with a blank.
      const std::size_t blank = pairs ? text.find(' ', 1) : 0;
      if (pairs && (blank == std::string_view::npos || blank + 1 == text.size())) {
        return fail("key ", in_quotes(key), ": element ", i, " ", in_quotes(text),
                    " is no pair of tokens");
      }
    }
    if (!pairs) tokens_ = texts->size();
    put(name, json_array(*texts, [](std::string_view text) { return json_string(text); }));
  }

  void read_tokens() {
    if (failed()) return;
    put_texts("tokenizer.ggml.tokens", "tokens", tokenizer_limits::tokens_max,
              tokenizer_limits::token_bytes_max, false);
    if (!failed() && tokens_ == 0) fail("key 'tokenizer.ggml.tokens' is empty");
  }

  void read_types() {
    if (failed()) return;
    static constexpr std::string_view key = "tokenizer.ggml.token_type";
    std::vector<std::int64_t> types(tokens_, 1);   // absent: all are normal
    if (gguf_.find(key) != nullptr) {
      auto given = take(gguf_.get_integers(key));
      if (!given) return;
      types = std::move(*given);
    }
    if (types.size() != tokens_) {
      return fail("key ", in_quotes(key), " has ", types.size(), " elements for ", tokens_,
                  " tokens");
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] < 1 || types[i] > 6) {
        return fail("key ", in_quotes(key), ": element ", i, ": type ", types[i], " is not 1 to 6");
      }
    }
    put("token_types", json_array(types, number_text<std::int64_t>));
  }

  void read_scores() {
    if (failed()) return;
    std::vector<float> scores;
    if (sentencepiece_) {
      auto given = take(gguf_.get_reals("tokenizer.ggml.scores"));
      if (!given) return;
      scores = std::move(*given);
      if (scores.size() != tokens_) {
        return fail("key 'tokenizer.ggml.scores' has ", scores.size(), " elements for ", tokens_,
                    " tokens");
      }
    }
    put("scores", json_array(scores, number_text<float>));
  }

  void read_merges() {
    if (failed()) return;
    if (sentencepiece_) return put("merges", "[]");
    put_texts("tokenizer.ggml.merges", "merges", tokenizer_limits::merges_max,
              2 * tokenizer_limits::token_bytes_max + 1, true);
  }

  std::optional<std::uint64_t> read_id(std::string_view key, std::string_view name,
                                       std::optional<std::uint64_t> fallback) {
    if (failed()) return {};
    std::optional<std::uint64_t> id = fallback;
    if (gguf_.find(key) != nullptr) {
      id = take(gguf_.get_unsigned(key));
      if (id && *id >= tokens_) {
        fail("key ", in_quotes(key), ": token ", *id, " does not exist; there are ", tokens_);
      }
    }
    put(name, id ? number_text(*id) : "null");
    return id;
  }

  void read_ids() {
    const auto fallback = [&](std::uint64_t id) {
      return sentencepiece_ && id < tokens_ ? std::optional(id) : std::nullopt;
    };
    bos_ = read_id("tokenizer.ggml.bos_token_id", "bos_id", fallback(vocabulary_default_bos));
    eos_ = read_id("tokenizer.ggml.eos_token_id", "eos_id", fallback(vocabulary_default_eos));
    read_id("tokenizer.ggml.unknown_token_id", "unknown_id", fallback(vocabulary_default_unknown));
    read_id("tokenizer.ggml.padding_token_id", "padding_id", {});
    read_id("tokenizer.ggml.eot_token_id", "eot_id", {});
  }

  std::optional<bool> read_flag(std::string_view key, std::string_view name, bool fallback) {
    if (failed()) return {};
    const auto flag = take(gguf_.get_bool(key, fallback));
    if (flag) put(name, *flag ? "true" : "false");
    return flag;
  }

  void read_flags() {
    const auto add_bos = read_flag("tokenizer.ggml.add_bos_token", "add_bos", starts_with_bos_);
    const auto add_eos = read_flag("tokenizer.ggml.add_eos_token", "add_eos", false);
    read_flag("tokenizer.ggml.add_space_prefix", "add_space_prefix", sentencepiece_);
    if (failed()) return;
    if (*add_bos && !bos_) fail("add_bos_token is true but there is no bos_token_id");
    if (*add_eos && !eos_) fail("add_eos_token is true but there is no eos_token_id");
  }

  void read_template() {
    if (failed()) return;
    static constexpr std::string_view key = "tokenizer.chat_template";
    if (gguf_.find(key) == nullptr) return put("chat_template", "null");
    const auto text = take(gguf_.get_string(key));
    if (!text) return;
    if (text->size() > tokenizer_limits::template_bytes_max) {
      return fail("key ", in_quotes(key), " is longer than ", tokenizer_limits::template_bytes_max,
                  " bytes");
    }
    if (!is_utf8(*text)) return fail("key ", in_quotes(key), " is not UTF-8");
    put("chat_template", json_string(*text));
  }

  const Gguf& gguf_;
  bool sentencepiece_ = false;
  bool starts_with_bos_ = false;
  std::uint64_t tokens_ = 0;
  std::optional<std::uint64_t> bos_;
  std::optional<std::uint64_t> eos_;
  std::string out_;
  Error error_;
};

const json::array* array_of(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}

}   // namespace

Result<std::string> tokenizer_document(const Gguf& gguf) {
  return Converter{gguf}.run();
}

Result<void> check_tokenizer_document(std::string_view document, std::uint64_t vocabulary,
                                      const std::string& file) {
  if (document.size() > tokenizer_limits::document_bytes_max) {
    return failure(file, ": is larger than ", tokenizer_limits::document_bytes_max, " bytes");
  }
  boost::system::error_code ec;
  const json::value root = json::parse({document.data(), document.size()}, ec);
  if (ec) return failure(file, ": is not JSON: ", ec.message());
  const json::object* object = root.if_object();
  const json::value* format = object == nullptr ? nullptr : object->if_contains("format");
  if (format == nullptr || *format != json::value("duet-tokenizer/v1")) {
    return failure(file, ": is no tokenizer document of format duet-tokenizer/v1");
  }
  const json::array* tokens = array_of(*object, "tokens");
  const json::array* types = array_of(*object, "token_types");
  if (tokens == nullptr || tokens->empty() || types == nullptr || types->size() != tokens->size()) {
    return failure(file, ": 'tokens' and 'token_types' are not arrays of the same length");
  }
  if (tokens->size() > vocabulary) {
    return failure(file, ": has ", tokens->size(), " tokens but the model only ", vocabulary);
  }
  for (const char* key : {"bos_id", "eos_id", "unknown_id", "padding_id", "eot_id"}) {
    const json::value* id = object->if_contains(key);
    const bool fits =
        id != nullptr &&
        (id->is_null() || (id->is_int64() && id->get_int64() >= 0 &&
                           static_cast<std::uint64_t>(id->get_int64()) < tokens->size()));
    if (!fits) return failure(file, ": '", key, "' is neither null nor the number of a token");
  }
  return {};
}

Result<std::vector<std::uint32_t>> ordinary_tokens(std::string_view document,
                                                   const std::string& file) {
  constexpr std::int64_t normal = 1;   // GGUF's number of the type.
  const auto checked = check_tokenizer_document(document, tokenizer_limits::tokens_max, file);
  if (!checked) return checked.error();
  boost::system::error_code ec;
  const json::value root = json::parse({document.data(), document.size()}, ec);
  if (ec) return failure(file, ": is not JSON: ", ec.message());
  const json::object& object = root.get_object();
  std::vector<std::uint32_t> found;
  std::uint32_t id = 0;
  for (const json::value& type : *array_of(object, "token_types")) {
    if (type.is_int64() && type.get_int64() == normal) found.push_back(id);
    ++id;
  }
  // Some files call their special tokens normal.
  for (const char* key : {"bos_id", "eos_id", "unknown_id", "padding_id", "eot_id"}) {
    const json::value& special = object.at(key);
    if (special.is_int64()) std::erase(found, static_cast<std::uint32_t>(special.get_int64()));
  }
  return found;
}

}   // namespace duet::device
