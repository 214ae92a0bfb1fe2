// golden.cpp: reads, writes, checks and imports golden files.
#include "device/package/golden.hpp"

#include "device/package/json_text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <cmath>
#include <set>

namespace duet::device {
namespace {

namespace json = boost::json;

constexpr const char* format = "duet-golden/v1";

/// Typed access to JSON; the first thing that is wrong is thrown as an Error and caught in the two
/// entry points below.
class Access {
 public:
  explicit Access(const std::string& file) : file_(file) {}

  template <typename... T>
  [[noreturn]] void fail(const T&... parts) const {
    throw failure(file_, ": ", parts...);
  }
  json::value parse(std::string_view text) const {
    if (text.size() > golden_limits::bytes_max) {
      fail("is larger than ", golden_limits::bytes_max, " bytes");
    }
    boost::system::error_code ec;
    json::value root = json::parse({text.data(), text.size()}, ec);
    if (ec) fail("is not JSON: ", ec.message());
    return root;
  }
  const json::object& object(const json::value& value, const char* what) const {
    if (!value.is_object()) fail(what, " is not an object");
    return value.get_object();
  }
  const json::value& member(const json::object& object, const char* key) const {
    const json::value* value = object.if_contains(key);
    if (value == nullptr) fail("the key '", key, "' is missing");
    return *value;
  }
  std::string text(const json::object& object, const char* key) const {
    const json::value& value = member(object, key);
    if (!value.is_string() || value.get_string().size() > 128) fail("'", key, "' is no short text");
    return std::string(value.get_string().data(), value.get_string().size());
  }
  const json::array& array(const json::value& value, const char* what, std::uint64_t max) const {
    if (!value.is_array()) fail("'", what, "' is not an array");
    if (value.get_array().size() > max) fail("'", what, "' has more than ", max, " elements");
    return value.get_array();
  }
  double real(const json::value& value, const char* what) const {
    boost::system::error_code ec;
    const auto number = value.is_number() ? value.to_number<double>(ec) : std::nan("");
    if (ec || !std::isfinite(number)) fail("'", what, "' holds something else than finite numbers");
    return number;
  }
  std::uint32_t id(const json::value& value, const char* what) const {
    if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() > 0xffffffffLL) {
      fail("'", what, "' holds something else than token ids");
    }
    return static_cast<std::uint32_t>(value.get_int64());
  }
  std::vector<std::uint32_t> ids(const json::object& object, const char* key) const {
    std::vector<std::uint32_t> out;
    for (const json::value& value : array(member(object, key), key, golden_limits::tokens_max)) {
      out.push_back(id(value, key));
    }
    return out;
  }
  std::optional<std::uint32_t> optional_id(const json::object& object, const char* key) const {
    const json::value& value = member(object, key);
    if (value.is_null()) return std::nullopt;
    return id(value, key);
  }
  std::vector<double> reals(const json::object& object, const char* key) const {
    std::vector<double> out;
    for (const json::value& value : array(member(object, key), key, golden_limits::tokens_max)) {
      out.push_back(real(value, key));
    }
    return out;
  }
  void top(const json::object& object, const char* key, GoldenPrompt& prompt) const {
    for (const json::value& step : array(member(object, key), key, golden_limits::tokens_max)) {
      auto& best = prompt.top.emplace_back();
      for (const json::value& pair : array(step, key, golden_limits::top_max)) {
        const json::array& two = array(pair, key, 2);
        if (two.size() != 2) fail("'", key, "' holds something else than pairs");
        best.emplace_back(id(two[0], key), real(two[1], key));
      }
    }
  }
  void only(const json::object& object, const std::set<std::string_view>& keys) const {
    for (const auto& member : object) {
      const std::string_view key{member.key().data(), member.key().size()};
      if (keys.count(key) == 0) fail("the key ", in_quotes(key), " is not known");
    }
  }

 private:
  const std::string& file_;
};

Golden read_all(std::string_view text, const Access& access) {
  const json::value root = access.parse(text);
  const json::object& top = access.object(root, "the document");
  access.only(top, {"format", "model", "source", "rule", "prompts"});
  if (access.text(top, "format") != format) access.fail("is not of the format ", format);
  Golden golden;
  golden.model = access.text(top, "model");
  golden.source = access.text(top, "source");
  const json::object& rule = access.object(access.member(top, "rule"), "'rule'");
  access.only(rule, {"kind", "margin_min", "logprob_mean_max", "logprob_p99_max"});
  golden.rule.kind = access.text(rule, "kind");
  golden.rule.margin_min = access.real(access.member(rule, "margin_min"), "margin_min");
  golden.rule.logprob_mean_max =
      access.real(access.member(rule, "logprob_mean_max"), "logprob_mean_max");
  golden.rule.logprob_p99_max =
      access.real(access.member(rule, "logprob_p99_max"), "logprob_p99_max");
  for (const json::value& value :
       access.array(access.member(top, "prompts"), "prompts", golden_limits::prompts_max)) {
    const json::object& entry = access.object(value, "a prompt");
    access.only(entry, {"prompt_ids", "tokens", "stop_id", "margins", "top"});
    GoldenPrompt prompt;
    prompt.prompt_ids = access.ids(entry, "prompt_ids");
    prompt.tokens = access.ids(entry, "tokens");
    prompt.stop_id = access.optional_id(entry, "stop_id");
    prompt.margins = access.reals(entry, "margins");
    access.top(entry, "top", prompt);
    golden.prompts.push_back(std::move(prompt));
  }
  return golden;
}

Golden import_all(std::string_view text, const std::string& source, const Access& access) {
  const json::value root = access.parse(text);
  const json::object& top = access.object(root, "the document");
  Golden golden;
  golden.model = access.text(top, "model");
  golden.source = source;
  for (const json::value& value :
       access.array(access.member(top, "prompts"), "prompts", golden_limits::prompts_max)) {
    const json::object& entry = access.object(value, "a prompt");
    const json::object& answer = access.object(access.member(entry, source.c_str()), "an answer");
    GoldenPrompt prompt;
    prompt.prompt_ids = access.ids(entry, "prompt_ids");
    prompt.tokens = access.ids(answer, "output_ids");
    prompt.stop_id = access.optional_id(answer, "stop_id");
    if (prompt.stop_id) prompt.tokens.push_back(*prompt.stop_id);
    prompt.margins = access.reals(answer, "margins");
    access.top(answer, "top5_logprobs", prompt);
    // Without a stop there may be a margin too many: of the step that was not taken.
    if (!prompt.stop_id && prompt.margins.size() == prompt.tokens.size() + 1)
      prompt.margins.pop_back();
    golden.prompts.push_back(std::move(prompt));
  }
  return golden;
}

/// Empty if the prompt is sound.
std::string prompt_fault(const GoldenPrompt& prompt, std::uint64_t vocabulary,
                         std::uint64_t context) {
  if (prompt.prompt_ids.empty() || prompt.tokens.empty()) return "has no prompt or no answer";
  // The last token of the answer is compared, never fed in.
  const std::uint64_t positions = prompt.prompt_ids.size() + prompt.tokens.size() - 1;
  if (positions > context) return concat("needs ", positions, " positions of ", context);
  if (prompt.margins.size() != prompt.tokens.size()) return "has not one margin a token";
  if (prompt.top.size() > prompt.tokens.size()) return "has more log-probabilities than tokens";
  if (prompt.stop_id && prompt.tokens.back() != *prompt.stop_id)
    return "does not end with its stop";
  for (const auto* ids : {&prompt.prompt_ids, &prompt.tokens}) {
    for (const std::uint32_t id : *ids) {
      if (id >= vocabulary) return concat("has the token ", id, " of a vocabulary of ", vocabulary);
    }
  }
  for (const double margin : prompt.margins) {
    if (!(margin >= 0)) return "has a negative margin";
  }
  for (std::size_t step = 0; step < prompt.top.size(); ++step) {
    const auto& best = prompt.top[step];
    if (best.empty() || best[0].first != prompt.tokens[step]) {
      return concat("has at step ", step, " another best token than its answer");
    }
    for (const auto& [id, logprob] : best) {
      if (id >= vocabulary || logprob > 0)
        return concat("has a wrong log-probability at step ", step);
    }
  }
  return {};
}

}   // namespace

std::string write_golden(const Golden& golden) {
  const auto id = [](std::uint32_t value) { return number_text(value); };
  const auto real = [](double value) { return number_text(value); };
  std::string out =
      "{\"format\": " + json_string(format) + ",\n\"model\": " + json_string(golden.model) +
      ",\n\"source\": " + json_string(golden.source) +
      ",\n\"rule\": {\"kind\": " + json_string(golden.rule.kind) +
      ", \"margin_min\": " + real(golden.rule.margin_min) +
      ", \"logprob_mean_max\": " + real(golden.rule.logprob_mean_max) +
      ", \"logprob_p99_max\": " + real(golden.rule.logprob_p99_max) + "},\n\"prompts\": [";
  for (const GoldenPrompt& prompt : golden.prompts) {
    out += &prompt == golden.prompts.data() ? "\n" : ",\n";
    out += "{\"prompt_ids\": " + json_array(prompt.prompt_ids, id) +
           ",\n \"tokens\": " + json_array(prompt.tokens, id) +
           ",\n \"stop_id\": " + (prompt.stop_id ? id(*prompt.stop_id) : "null") +
           ",\n \"margins\": " + json_array(prompt.margins, real) + ",\n \"top\": " +
           json_array(prompt.top,
                      [&](const auto& best) {
                        return json_array(best, [&](const auto& pair) {
                          return "[" + id(pair.first) + "," + real(pair.second) + "]";
                        });
                      }) +
           "}";
  }
  return out + "\n]}\n";
}

Result<Golden> read_golden(std::string_view text, const std::string& file) {
  try {
    return read_all(text, Access{file});
  } catch (const Error& error) {
    return error;
  }
}

Result<Golden> import_golden(std::string_view text, const std::string& source,
                             const std::string& file) {
  try {
    return import_all(text, source, Access{file});
  } catch (const Error& error) {
    return error;
  }
}

Result<void> check_golden(const Golden& golden, std::uint64_t vocabulary, std::uint64_t context,
                          const std::string& file) {
  if (golden.prompts.empty()) return failure(file, ": has no prompt");
  const GoldenRule& rule = golden.rule;
  if (rule.kind != "tokens" || !(rule.margin_min >= 0) || !(rule.logprob_mean_max > 0) ||
      !(rule.logprob_p99_max > 0)) {
    return failure(file, ": the rule is not of the kind 'tokens' with positive bounds");
  }
  for (std::size_t i = 0; i < golden.prompts.size(); ++i) {
    const std::string fault = prompt_fault(golden.prompts[i], vocabulary, context);
    if (!fault.empty()) return failure(file, ": prompt ", i, " ", fault);
  }
  return {};
}

}   // namespace duet::device
